//! Reading a value as what it has to be.
//!
//! Decoders of a dialect say what they need; when the body has something else, the error names the place
//! the way a client would (`messages[3].content`) and the byte, since a body may be half a megabyte.

use std::borrow::Cow;
use std::fmt;

use throughline_core::Text;

use super::index::{Kind, Node, push_key};
use super::scan::SyntaxError;

/// What is wrong with a value, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// The way to the value, like `messages[3].content`; empty for the whole body.
    pub path: String,
    /// Where the value starts, in bytes.
    pub offset: usize,
    /// What is wrong, as a phrase whose subject is the value: `must be a string, not null`.
    pub problem: String,
}

impl<'d> Node<'d> {
    /// Returns the error that this value has the given problem.
    #[must_use]
    pub fn error(&self, problem: impl Into<String>) -> DecodeError {
        DecodeError { path: self.path(), offset: self.offset(), problem: problem.into() }
    }

    /// Returns what the string means; an error if this is no string.
    pub fn expect_str(&self) -> Result<Cow<'d, str>, DecodeError> {
        self.as_str().ok_or_else(|| self.mismatch(Kind::String))
    }

    /// Returns what the string means as shared text; an error if this is no string.
    pub fn expect_text(&self) -> Result<Text, DecodeError> {
        self.as_text().ok_or_else(|| self.mismatch(Kind::String))
    }

    /// Returns the truth value; an error if this is none.
    pub fn expect_bool(&self) -> Result<bool, DecodeError> {
        self.as_bool().ok_or_else(|| self.mismatch(Kind::Bool))
    }

    /// Returns the number; an error if this is no whole number from zero up.
    pub fn expect_u64(&self) -> Result<u64, DecodeError> {
        self.as_u64().ok_or_else(|| match self.kind() {
            Kind::Number => self.error(format!("must be a whole number from zero up, not {}", self.raw())),
            _ => self.mismatch(Kind::Number),
        })
    }

    /// Returns the value itself; an error if it is no object.
    pub fn expect_object(&self) -> Result<Self, DecodeError> {
        self.expect_kind(Kind::Object)
    }

    /// Returns the value itself; an error if it is no array.
    pub fn expect_array(&self) -> Result<Self, DecodeError> {
        self.expect_kind(Kind::Array)
    }

    /// Returns the field of this name; an error if this is no object or lacks the field.
    pub fn expect_field(&self, name: &str) -> Result<Self, DecodeError> {
        self.expect_object()?.field(name).ok_or_else(|| {
            let mut missing = self.error("is required");
            push_key(&mut missing.path, name);
            missing
        })
    }

    fn expect_kind(&self, kind: Kind) -> Result<Self, DecodeError> {
        if self.kind() == kind { Ok(*self) } else { Err(self.mismatch(kind)) }
    }

    fn mismatch(&self, wanted: Kind) -> DecodeError {
        self.error(format!("must be {wanted}, not {}", self.kind()))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{} (at byte {})", self.problem, self.offset)
    }
}

impl std::error::Error for DecodeError {}

impl From<SyntaxError> for DecodeError {
    fn from(error: SyntaxError) -> Self {
        Self { path: String::new(), offset: error.offset, problem: error.problem.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    #[test]
    fn an_error_names_the_place_and_both_kinds() {
        let document = Document::parse(r#"{"messages":[{"content":{}}]}"#).expect("valid JSON");
        let message =
            document.root().field("messages").and_then(|all| all.items().next()).expect("a message");
        let content = message.expect_field("content").expect("content");
        let error = content.expect_str().expect_err("an object");
        assert_eq!(error.to_string(), "messages[0].content: must be a string, not an object (at byte 24)");
        assert_eq!(content.expect_text().expect_err("an object"), error);
        assert!(content.expect_object().is_ok());
        assert!(content.expect_array().is_err());
    }

    #[test]
    fn a_missing_field_is_named_with_its_way() {
        let document = Document::parse(r#"{"messages":[{}]}"#).expect("valid JSON");
        let message =
            document.root().field("messages").and_then(|all| all.items().next()).expect("a message");
        let error = message.expect_field("role").expect_err("missing");
        assert_eq!(error.to_string(), "messages[0].role: is required (at byte 13)");
        assert_eq!(document.root().expect_field("model").expect_err("missing").path, "model");
    }

    #[test]
    fn numbers_are_refused_for_what_they_are() {
        let document = Document::parse("[1.5,true,3]").expect("valid JSON");
        let said: Vec<_> =
            document.root().items().map(|item| item.expect_u64().map_err(|error| error.problem)).collect();
        assert_eq!(said[0], Err("must be a whole number from zero up, not 1.5".to_owned()));
        assert_eq!(said[1], Err("must be a number, not a boolean".to_owned()));
        assert_eq!(said[2], Ok(3));
    }

    #[test]
    fn broken_json_is_an_error_of_the_whole_body() {
        let error = super::DecodeError::from(Document::parse("[1,").expect_err("cut off"));
        assert_eq!(error.to_string(), "the JSON text ends too early (at byte 3)");
    }
}
