//! Parts: the pieces that the content of an entry is made of.

use crate::{Text, Wire};

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub content: Content,
    /// How it stood on the wire, unless it was made here or stood as a bare string.
    pub wire: Option<Wire>,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Plain text.
    Text(Text),
    /// A model's refusal, in its words.
    Refusal(Text),
    /// A picture.
    Image(Image),
    /// A document or another file.
    File(File),
    /// Something only its own dialect understands; the wire form is all there is.
    Opaque {
        /// The type tag on the wire.
        kind: Text,
    },
}

/// A picture, by value or by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where its bytes are.
    pub media: Media,
    /// How closely the model should look, in the words of the client.
    pub detail: Option<Text>,
}

/// A document or another file, by value or by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where its bytes are.
    pub media: Media,
    /// Its name.
    pub name: Option<Text>,
}

/// Where the bytes of an image or a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Media {
    /// At an address the backend can fetch.
    Url(Text),
    /// Here, base64-encoded.
    Inline {
        /// The MIME type.
        media_type: Text,
        /// The bytes, base64-encoded.
        base64: Text,
    },
    /// Here, as plain text.
    Plain(Text),
    /// With the provider that issued this id, and nowhere else.
    Stored(Text),
}

impl Part {
    /// Returns a text part made here.
    #[must_use]
    pub fn text(text: impl Into<Text>) -> Self {
        Self { content: Content::Text(text.into()), wire: None }
    }

    /// Returns the text of a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&Text> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Says whether this is text without a visible character.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.as_text().is_some_and(|text| text.trim().is_empty())
    }
}

/// Returns the text parts joined by line breaks.
#[must_use]
pub fn joined_text(parts: &[Part]) -> Text {
    let mut texts = parts.iter().filter_map(Part::as_text);
    match (texts.next(), texts.next()) {
        (None, _) => Text::default(),
        (Some(only), None) => only.clone(),
        (Some(first), Some(second)) => {
            let mut joined = format!("{first}\n{second}");
            for text in texts {
                joined.push('\n');
                joined.push_str(text);
            }
            joined.into()
        }
    }
}
