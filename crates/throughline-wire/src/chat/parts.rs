//! Content parts of a message, read.
//!
//! Content is a string, `null`, absent, or an array of parts. Pictures and files come as `data:` URLs, which
//! are taken apart without copying the bytes. Audio and whatever else has a type of its own stays opaque.

use super::extras::{given, given_text, wire_of};
use super::known;
use crate::json::{DecodeError, Kind, Node};
use crate::shape;
use std::ops::Range;
use throughline_core::{Content, File, Image, Media, Part, Text};

/// Reads the content of a message.
pub(super) fn decode_content(content: Option<Node<'_>>) -> Result<Vec<Part>, DecodeError> {
    let Some(content) = content else { return Ok(Vec::new()) };
    match content.kind() {
        Kind::Null => Ok(Vec::new()),
        Kind::String => Ok(vec![Part::text(content.expect_text()?)]),
        Kind::Array => content.items().map(decode_part).collect(),
        kind => Err(content.error(format!("must be a string, an array or null, not {kind}"))),
    }
}

/// Types of content parts that only other dialects have.
const FOREIGN: [&str; 8] = [
    "input_text",
    "output_text",
    "input_image",
    "image",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
];

/// Says whether a part is of another dialect.
pub(super) fn is_foreign_block(kind: &str) -> bool {
    FOREIGN.contains(&kind)
}

/// Reads one part.
pub(super) fn decode_part(node: Node<'_>) -> Result<Part, DecodeError> {
    // Not in the specification, but some clients write a bare string among the parts.
    if let Some(text) = node.as_text() {
        return Ok(Part { content: Content::Text(text), wire: Some(wire_of(node, &[])) });
    }
    node.expect_object()?;
    let kind = match given(node, "type") {
        Some(kind) => kind.expect_text()?,
        None if node.field("text").is_some() => Text::from_static("text"),
        None => Text::default(),
    };
    let content = match kind.as_str() {
        "text" => Content::Text(node.expect_field("text")?.expect_text()?),
        "refusal" => Content::Refusal(node.expect_field("refusal")?.expect_text()?),
        "image_url" => Content::Image(decode_image(node.expect_field("image_url")?)?),
        "file" => match decode_file(node)? {
            Some(file) => Content::File(file),
            None => Content::Opaque { kind: kind.clone() },
        },
        "input_audio" => {
            shape::check(node, known::AUDIO_PART)?;
            Content::Opaque { kind: kind.clone() }
        }
        "input_text" | "output_text" => return foreign_text(node),
        "input_image" | "image" => match foreign_image(node) {
            Some(media) => {
                return Ok(Part { content: Content::Image(Image { media, detail: None }), wire: None });
            }
            None => Content::Opaque { kind: kind.clone() },
        },
        _ => Content::Opaque { kind: kind.clone() },
    };
    let known: &[&str] = match content {
        Content::Text(_) => &["type", "text"],
        Content::Refusal(_) => &["type", "refusal"],
        Content::Image(_) => &["type", "image_url"],
        Content::File(_) => &["type", "file"],
        // It is dropped abroad as a whole, and reported as such.
        Content::Opaque { .. } => return Ok(Part { content, wire: Some(wire_of(node, &[])) }),
    };
    Ok(Part { content, wire: Some(wire_of(node, known)) })
}

/// Reads a text as the Responses dialect has it.
fn foreign_text(node: Node<'_>) -> Result<Part, DecodeError> {
    Ok(Part::text(node.expect_field("text")?.expect_text()?))
}

/// Reads a picture as another dialect has it: its address, or where its bytes are.
fn foreign_image(node: Node<'_>) -> Option<Media> {
    if let Some(url) = node.field("image_url") {
        return decode_url(url).ok();
    }
    let source = node.field("source")?;
    let text = |name: &str| source.field(name).and_then(|value| value.as_text());
    match text("type")?.as_str() {
        "base64" => Some(Media::Inline { media_type: text("media_type")?, base64: text("data")? }),
        "url" => text("url").map(Media::Url),
        _ => None,
    }
}

fn decode_image(image: Node<'_>) -> Result<Image, DecodeError> {
    // Mistral also takes the address itself in place of the object.
    if image.kind() == Kind::String {
        return Ok(Image { media: decode_url(image)?, detail: None });
    }
    let media = decode_url(image.expect_field("url")?)?;
    let detail = given_text(image, "detail")?;
    Ok(Image { media, detail })
}

/// Reads a file part; one that names no file in the known ways is nobody's but its server's.
fn decode_file(node: Node<'_>) -> Result<Option<File>, DecodeError> {
    let Some(file) = given(node, "file") else { return Ok(None) };
    file.expect_object()?;
    let name = given_text(file, "filename")?;
    if let Some(data) = given(file, "file_data") {
        let media = match decode_url(data)? {
            Media::Url(text) if !text.contains("://") => {
                Media::Inline { media_type: guessed_type(name.as_ref()), base64: text }
            }
            media => media,
        };
        return Ok(Some(File { media, name }));
    }
    let id = given_text(file, "file_id")?.filter(|id| !id.is_empty());
    Ok(id.map(|id| File { media: Media::Stored(id), name }))
}

/// Returns the type of bytes that came without one.
fn guessed_type(name: Option<&Text>) -> Text {
    let is_pdf = name.is_none_or(|name| name.to_ascii_lowercase().ends_with(".pdf"));
    Text::from_static(if is_pdf { "application/pdf" } else { "application/octet-stream" })
}

fn decode_url(node: Node<'_>) -> Result<Media, DecodeError> {
    let text = node.expect_text()?;
    let Some((media_type, base64)) = split_data_url(&text) else { return Ok(Media::Url(text)) };
    Ok(Media::Inline { media_type: text.sliced(media_type), base64: text.sliced(base64) })
}

/// Returns where in a base64 `data:` URL the type and the bytes are.
fn split_data_url(url: &str) -> Option<(Range<usize>, Range<usize>)> {
    const SCHEME: &str = "data:";
    let head = url.strip_prefix(SCHEME)?.split_once(',')?.0;
    let parameters = head.strip_suffix(";base64")?;
    let media_type = parameters.split(';').next().unwrap_or_default();
    let bytes = SCHEME.len() + head.len() + 1..url.len();
    Some((SCHEME.len()..SCHEME.len() + media_type.len(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn decode(content: &str) -> Result<Vec<Part>, DecodeError> {
        let document = Document::parse(content).unwrap();
        decode_content(Some(document.root()))
    }

    fn only(content: &str) -> Content {
        decode(content).unwrap().pop().unwrap().content
    }

    #[test]
    fn a_data_url_is_taken_apart() {
        let image =
            r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO","detail":"low"}}]"#;
        let media = Media::Inline { media_type: "image/png".into(), base64: "iVBO".into() };
        assert_eq!(only(image), Content::Image(Image { media, detail: Some("low".into()) }));
        let escaped = r#"[{"type":"image_url","image_url":"data:image\/png;charset=x;base64,iVBO"}]"#;
        let media = Media::Inline { media_type: "image/png".into(), base64: "iVBO".into() };
        assert_eq!(only(escaped), Content::Image(Image { media, detail: None }));
    }

    #[test]
    fn a_data_url_that_is_not_base64_stays_an_address() {
        let image = r#"[{"type":"image_url","image_url":{"url":"data:image/svg+xml,<svg/>"}}]"#;
        let media = Media::Url("data:image/svg+xml,<svg/>".into());
        assert_eq!(only(image), Content::Image(Image { media, detail: None }));
    }

    #[test]
    fn files_come_by_value_by_id_and_as_bare_base64() {
        let stored = only(r#"[{"type":"file","file":{"file_id":"file-1"}}]"#);
        assert_eq!(stored, Content::File(File { media: Media::Stored("file-1".into()), name: None }));
        let bare = only(r#"[{"type":"file","file":{"filename":"a.PDF","file_data":"JVBE"}}]"#);
        let media = Media::Inline { media_type: "application/pdf".into(), base64: "JVBE".into() };
        assert_eq!(bare, Content::File(File { media, name: Some("a.PDF".into()) }));
    }

    #[test]
    fn audio_and_the_unknown_stay_as_they_came() {
        let parts = decode(r#"[{"type":"input_audio","input_audio":{"data":"UklG"}},{"x":1}]"#).unwrap();
        assert_eq!(parts[0].content, Content::Opaque { kind: "input_audio".into() });
        assert_eq!(parts[1].content, Content::Opaque { kind: "".into() });
        assert_eq!(parts[1].wire.as_ref().unwrap().text, r#"{"x":1}"#);
    }

    #[test]
    fn a_part_keeps_the_fields_that_nobody_knows() {
        let parts = decode(r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]"#).unwrap();
        assert_eq!(parts[0].wire.as_ref().unwrap().extras[0].name, "cache_control");
    }

    #[test]
    fn content_of_a_wrong_type_is_refused() {
        assert_eq!(decode("7").unwrap_err().problem, "must be a string, an array or null, not a number");
        let error = decode(r#"[{"type":"text","text":{}}]"#).unwrap_err();
        assert_eq!(error.path, "[0].text");
    }
}
