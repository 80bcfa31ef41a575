//! Where a value of the configuration came from, and what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Where a value came from. A later variant overrides an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said otherwise.
    Default,
    /// A file says so.
    File {
        /// Which one.
        path: PathBuf,
        /// In which line, counted from one.
        line: usize,
    },
    /// An environment variable says so, or its presence does.
    Variable(String),
    /// The command line says so.
    Flag(&'static str),
}

/// Where each value came from, by its path in the file form.
pub type Sources = BTreeMap<String, Source>;

/// What is wrong with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where the value came from.
    pub source: Source,
    /// Which key it is; empty when it is the file as a whole.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// Something that is not wrong, but that its writer should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where the value came from.
    pub source: Source,
    /// Which key it is about.
    pub key: String,
    /// What there is to know.
    pub what: String,
}

impl ConfigError {
    /// Returns an error in the value of `key`.
    pub fn new(source: Source, key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { source, key: key.into(), what: what.into(), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_located(f, &self.source, &self.key, &self.what)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_located(f, &self.source, &self.key, &self.what)
    }
}

fn write_located(f: &mut fmt::Formatter<'_>, source: &Source, key: &str, what: &str) -> fmt::Result {
    if *source != Source::Default {
        write!(f, "{source}: ")?;
    }
    if !key.is_empty() {
        write!(f, "{key}: ")?;
    }
    f.write_str(what)
}
