//! Secrets: credentials that are held, compared and sent, and never shown.
//!
//! A [`Secret`] has no `Display`, and its `Debug` says only that it is one. What is shown of it, in
//! `config show` or in an error, is the [`SecretRef`] that it came from. The keys that clients present are not
//! kept at all: [`AccessKeys`] holds their digests, and comparing digests takes the same time whichever
//! character differs.

use serde::de::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// A credential as the configuration refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretRef {
    /// `env:NAME`: the value of an environment variable.
    Variable(String),
    /// `file:PATH`: the content of a file, without the line break at its end.
    File(PathBuf),
    /// `passthrough`: whatever the client presented.
    Passthrough,
    /// `none`: nothing is sent.
    None,
    /// The secret itself.
    Literal(Secret),
}

/// The keys that clients may present, as digests.
#[derive(Clone, Default)]
pub struct AccessKeys(Vec<blake3::Hash>);

impl Secret {
    /// Returns the secret that `text` is.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the secret in the clear, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl SecretRef {
    /// Reads a reference as it is written.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match (text.split_once(':'), text) {
            (Some(("env", name)), _) => Self::Variable(name.to_owned()),
            (Some(("file", path)), _) => Self::File(PathBuf::from(path)),
            (_, "passthrough") => Self::Passthrough,
            (_, "none") => Self::None,
            _ => Self::Literal(Secret::new(text)),
        }
    }
}

impl fmt::Display for SecretRef {
    /// Writes the reference; of a literal, only that it is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Passthrough => f.write_str("passthrough"),
            Self::None => f.write_str("none"),
            Self::Literal(_) => f.write_str("(hidden)"),
        }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::parse(&text))
    }
}

impl AccessKeys {
    /// Returns the digests of `keys`.
    #[must_use]
    pub fn new(keys: &[Secret]) -> Self {
        Self(keys.iter().map(|key| blake3::hash(key.expose().as_bytes())).collect())
    }

    /// Says whether there are no keys, so that only loopback may connect.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many keys there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether `presented` is one of the keys. All of them are compared, each in constant time.
    #[must_use]
    pub fn admit(&self, presented: &str) -> bool {
        let presented = blake3::hash(presented.as_bytes());
        // `blake3::Hash` compares in constant time; `|` does not stop at the first that fits.
        self.0.iter().fold(false, |admitted, key| admitted | (*key == presented))
    }
}

impl fmt::Debug for AccessKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessKeys({} hidden)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("sk-very-secret");
        let keys = AccessKeys::new(&[Secret::new("sk-very-secret")]);
        let reference = SecretRef::parse("sk-very-secret");
        for shown in
            [format!("{secret:?}"), format!("{keys:?}"), format!("{reference:?}"), reference.to_string()]
        {
            assert!(!shown.contains("very"), "{shown}");
        }
        assert_eq!(secret.expose(), "sk-very-secret");
    }

    #[test]
    fn a_reference_is_read_and_shown_as_it_is_written() {
        for text in ["env:KEY", "file:/run/secrets/key", "file:C:\\key", "passthrough", "none"] {
            let reference = SecretRef::parse(text);
            assert!(!matches!(reference, SecretRef::Literal(_)), "{text}");
            assert_eq!(reference.to_string(), text);
        }
        assert_eq!(SecretRef::parse("sk:odd"), SecretRef::Literal(Secret::new("sk:odd")));
    }

    #[test]
    fn a_key_is_admitted_only_whole() {
        let keys = AccessKeys::new(&[Secret::new("first"), Secret::new("second")]);
        assert!(keys.admit("first") && keys.admit("second"));
        for wrong in ["", "firs", "first ", "FIRST", "firstsecond"] {
            assert!(!keys.admit(wrong), "{wrong:?}");
        }
        assert!(!AccessKeys::default().admit(""));
    }
}
