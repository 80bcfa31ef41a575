//! The key that a client presents, by reference.

use std::path::PathBuf;
use throughline_gateway::config::{Config, Credential};
use throughline_gateway::secret::SecretRef;

/// What clients present where nobody looks at it; most refuse to start without a key.
pub const PLACEHOLDER: &str = "throughline";

/// The variable for a key that the configuration does not keep in one.
const VARIABLE: &str = "THROUGHLINE_KEY";

/// The key that a client presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Anything: no key is asked for.
    Any,
    /// The one that the client has anyway: a backend is shown it.
    Own,
    /// The value of this variable.
    Variable(String),
    /// The content of this file.
    File(PathBuf),
    /// One that is written out in the configuration, and not printed.
    Hidden,
}

impl Key {
    /// Returns the key that the gateway of this configuration asks for.
    pub fn of(config: &Config) -> Self {
        let passes = |credential: &Credential| matches!(credential, Credential::Passthrough);
        match config.access_from.first() {
            Some(SecretRef::Variable(name)) => Self::Variable(name.clone()),
            Some(SecretRef::File(path)) => Self::File(path.clone()),
            _ if !config.access.is_empty() => Self::Hidden,
            _ if config.backends.iter().any(|backend| passes(&backend.credential)) => Self::Own,
            _ => Self::Any,
        }
    }

    /// Returns an expression of the shell for it, quoted.
    pub fn in_shell(&self) -> String {
        match self {
            Self::Any => quoted(PLACEHOLDER),
            Self::Own => format!("\"${{{VARIABLE}:?set it to your own key}}\""),
            Self::Variable(name) => format!("\"${{{name}:?}}\""),
            Self::File(path) => format!("\"$(cat {})\"", quoted(&path.display().to_string())),
            Self::Hidden => format!("\"${{{VARIABLE}:?set it to one of auth.keys}}\""),
        }
    }

    /// Returns the variable that a file can refer to; none where anything will do.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Any => None,
            Self::Variable(name) => Some(name),
            Self::Own | Self::File(_) | Self::Hidden => Some(VARIABLE),
        }
    }

    /// Returns what the shell must be told before a file can refer to the key.
    pub fn export_for_files(&self) -> Option<String> {
        match self {
            Self::Any | Self::Variable(_) => None,
            Self::File(_) => Some(format!("export {VARIABLE}={}", self.in_shell())),
            Self::Own => Some(format!("export {VARIABLE}=YOUR-OWN-KEY")),
            Self::Hidden => Some(format!("export {VARIABLE}=ONE-OF-auth.keys")),
        }
    }

    /// Returns where the key comes from, as the configuration writes it.
    pub fn origin(&self) -> String {
        match self {
            Self::Any => "none".to_owned(),
            Self::Own => "client".to_owned(),
            Self::Variable(name) => format!("env:{name}"),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Hidden => "auth.keys".to_owned(),
        }
    }
}

/// Returns text as one word of a shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_key_is_referred_to_and_never_told() {
        let variable = Key::Variable("MY_KEY".into());
        assert_eq!((variable.in_shell().as_str(), variable.variable()), (r#""${MY_KEY:?}""#, Some("MY_KEY")));
        assert_eq!(Key::File("/run/key".into()).in_shell(), r#""$(cat '/run/key')""#);
        assert_eq!(Key::Hidden.in_shell(), r#""${THROUGHLINE_KEY:?set it to one of auth.keys}""#);
        assert_eq!((Key::Any.in_shell().as_str(), Key::Any.variable()), ("'throughline'", None));
    }
}
