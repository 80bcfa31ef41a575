//! Content parts, both ways: text, refusals, images and files; the rest is carried whole.
//!
//! The dialect names a text by who says it (`input_text`, `output_text`) and gives the model's texts a list
//! of annotations. Bytes come as data URLs, but the specification also allows bare base64 in `file_data`,
//! whose type then has to be guessed from the name or the first bytes.

use super::fields;
use crate::json::{DecodeError, Node, Writer};
use throughline_core::{Action, Content, Dialect, File, Image, Media, Part, Place, Report, Text};

/// Whose words a list of parts is, which decides how a text is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// What the model is given.
    Input,
    /// What the model said.
    Output,
}

/// Reads content: a string, a list of parts, or nothing.
pub(super) fn decode_content(content: Option<Node<'_>>) -> Result<Vec<Part>, DecodeError> {
    let Some(content) = content else { return Ok(Vec::new()) };
    if let Some(text) = content.as_text() {
        return Ok(vec![Part::text(text)]);
    }
    let list = content.expect_array().map_err(|_| content.error("must be a string or an array of parts"))?;
    list.items().map(decode_part).collect()
}

fn decode_part(node: Node<'_>) -> Result<Part, DecodeError> {
    node.expect_object()?;
    let tag = fields::text(node, "type")?.unwrap_or_default();
    let (content, known): (_, &[&str]) = match tag.as_str() {
        "input_text" | "output_text" | "text" => {
            (Some(Content::Text(fields::text(node, "text")?.unwrap_or_default())), &["type", "text"])
        }
        "refusal" => {
            let words = fields::text(node, "refusal")?.unwrap_or_default();
            (Some(Content::Refusal(words)), &["type", "refusal"])
        }
        "input_image" => (decode_image(node)?, &["type", "image_url", "file_id", "detail"]),
        "input_file" => (decode_file(node)?, &["type", "filename", "file_data", "file_url", "file_id"]),
        _ => (None, &[]),
    };
    Ok(match content {
        Some(content) => Part { content, wire: Some(fields::wire(node, known)) },
        None => Part { content: Content::Opaque { kind: tag }, wire: Some(fields::whole(node)) },
    })
}

fn decode_image(node: Node<'_>) -> Result<Option<Content>, DecodeError> {
    let media = match fields::text(node, "image_url")? {
        Some(url) => Some(media_of_url(url)),
        None => fields::text(node, "file_id")?.map(Media::Stored),
    };
    let detail = fields::text(node, "detail")?;
    Ok(media.map(|media| Content::Image(Image { media, detail })))
}

fn decode_file(node: Node<'_>) -> Result<Option<Content>, DecodeError> {
    let name = fields::text(node, "filename")?;
    let media = if let Some(data) = fields::text(node, "file_data")? {
        Some(media_of_data(&data, name.as_deref()))
    } else if let Some(url) = fields::text(node, "file_url")? {
        Some(media_of_url(url))
    } else {
        fields::text(node, "file_id")?.map(Media::Stored)
    };
    Ok(media.map(|media| Content::File(File { media, name })))
}

fn media_of_url(url: Text) -> Media {
    media_of_data_url(&url).unwrap_or(Media::Url(url))
}

fn media_of_data(data: &Text, name: Option<&str>) -> Media {
    let bare = || Media::Inline { media_type: guessed_type(data, name), base64: data.clone() };
    media_of_data_url(data).unwrap_or_else(bare)
}

/// Takes `data:image/png;base64,…` apart into the type and the base64 text, without copying the bytes.
fn media_of_data_url(url: &Text) -> Option<Media> {
    const SCHEME: &str = "data:";
    let (media_type, base64) = url.strip_prefix(SCHEME)?.split_once(";base64,")?;
    Some(Media::Inline {
        media_type: url.sliced(SCHEME.len()..SCHEME.len() + media_type.len()),
        base64: url.sliced(url.len() - base64.len()..url.len()),
    })
}

/// Guesses the type of base64 data that came without one.
fn guessed_type(base64: &str, name: Option<&str>) -> Text {
    // What `%PDF-` looks like in base64.
    if base64.starts_with("JVBERi") {
        return Text::from_static("application/pdf");
    }
    let extension = name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    Text::from_static(match extension {
        Some("pdf") => "application/pdf",
        Some("txt" | "md" | "log") => "text/plain",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        Some("html") => "text/html",
        _ => "application/octet-stream",
    })
}

/// Writes a list of parts.
pub(super) fn write_parts(
    writer: &mut Writer,
    parts: &[Part],
    voice: Voice,
    place: Option<Place>,
    report: &mut Report,
) {
    writer.begin_array();
    for part in parts {
        match &part.wire {
            Some(wire) if wire.dialect == Dialect::Responses => writer.raw(&wire.text),
            _ => write_part(writer, part, voice, place, report),
        }
    }
    writer.end_array();
}

fn write_part(writer: &mut Writer, part: &Part, voice: Voice, place: Option<Place>, report: &mut Report) {
    match (&part.content, voice) {
        (Content::Text(text), Voice::Output) => write_output_text(writer, text),
        (Content::Refusal(words), Voice::Output) => write_tagged(writer, "refusal", "refusal", words),
        (Content::Text(text) | Content::Refusal(text), Voice::Input) => {
            write_tagged(writer, "input_text", "text", text);
        }
        (Content::Image(_) | Content::File(_), _) if is_stored_elsewhere(part) => {
            report.entry(Action::Dropped, place, "the file is stored with another provider");
        }
        (Content::Image(_) | Content::File(_), Voice::Output) => {
            report.entry(Action::Dropped, place, "the model's own messages hold text only");
        }
        (
            Content::Image(Image { media: Media::Plain(text), .. })
            | Content::File(File { media: Media::Plain(text), .. }),
            Voice::Input,
        ) => {
            report.entry(Action::Translated, place, "a plain-text document is sent as text");
            write_tagged(writer, "input_text", "text", text);
        }
        (Content::Image(image), Voice::Input) => write_image(writer, image),
        (Content::File(file), Voice::Input) => write_file(writer, file),
        (Content::Opaque { kind }, _) => {
            report.entry(Action::Dropped, place, format!("no counterpart for a `{kind}` part"));
        }
    }
}

/// Says whether the bytes are with a provider that this dialect's backend is not.
///
/// Chat Completions and Responses share one file store; Messages has its own.
fn is_stored_elsewhere(part: &Part) -> bool {
    let (Content::Image(Image { media, .. }) | Content::File(File { media, .. })) = &part.content else {
        return false;
    };
    matches!(media, Media::Stored(_))
        && part.wire.as_ref().is_some_and(|wire| wire.dialect == Dialect::Messages)
}

fn write_output_text(writer: &mut Writer, text: &str) {
    writer.begin_object();
    writer.field_str("type", "output_text");
    writer.field_str("text", text);
    // Optional in the specification, but several servers refuse an `output_text` without it.
    writer.field_raw("annotations", "[]");
    writer.end_object();
}

fn write_tagged(writer: &mut Writer, tag: &str, field: &str, text: &str) {
    writer.begin_object();
    writer.field_str("type", tag);
    writer.field_str(field, text);
    writer.end_object();
}

fn write_image(writer: &mut Writer, image: &Image) {
    writer.begin_object();
    writer.field_str("type", "input_image");
    match &image.media {
        Media::Url(url) => writer.field_str("image_url", url),
        Media::Inline { media_type, base64 } => {
            writer.key("image_url");
            write_data_url(writer, media_type, base64);
        }
        Media::Stored(id) => writer.field_str("file_id", id),
        Media::Plain(_) => {}
    }
    // Has a default, yet some servers require it.
    writer.field_str("detail", image.detail.as_deref().unwrap_or("auto"));
    writer.end_object();
}

fn write_file(writer: &mut Writer, file: &File) {
    writer.begin_object();
    writer.field_str("type", "input_file");
    match &file.media {
        Media::Url(url) => writer.field_str("file_url", url),
        Media::Stored(id) => writer.field_str("file_id", id),
        Media::Inline { media_type, base64 } => {
            // Data without a name is refused.
            let name = file.name.as_deref().unwrap_or(default_name(media_type));
            writer.field_str("filename", name);
            writer.key("file_data");
            write_data_url(writer, media_type, base64);
        }
        Media::Plain(_) => {}
    }
    if let (Some(name), Media::Url(_)) = (&file.name, &file.media) {
        writer.field_str("filename", name);
    }
    writer.end_object();
}

fn default_name(media_type: &str) -> &'static str {
    match media_type {
        "application/pdf" => "document.pdf",
        "text/plain" => "document.txt",
        _ => "document",
    }
}

fn write_data_url(writer: &mut Writer, media_type: &str, base64: &str) {
    writer.string_with(|sink| {
        sink.push("data:");
        sink.push(media_type);
        sink.push(";base64,");
        sink.push(base64);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn decode(json: &str) -> Part {
        let document = Document::parse(json).unwrap();
        decode_part(document.root()).unwrap()
    }

    fn written(part: &Part, voice: Voice) -> (String, Report) {
        let mut writer = Writer::new();
        let mut report = Report::default();
        write_parts(&mut writer, std::slice::from_ref(part), voice, None, &mut report);
        (writer.into_string(), report)
    }

    #[test]
    fn bare_base64_gets_a_type_from_its_name_or_first_bytes() {
        let media_type = |json| match decode(json).content {
            Content::File(File { media: Media::Inline { media_type, .. }, .. }) => media_type,
            other => panic!("{other:?}"),
        };
        assert_eq!(media_type(r#"{"type":"input_file","file_data":"JVBERi0xLjQK"}"#), "application/pdf");
        assert_eq!(media_type(r#"{"type":"input_file","filename":"a.csv","file_data":"YQ=="}"#), "text/csv");
        let unknown = r#"{"type":"input_file","filename":"a","file_data":"YQ=="}"#;
        assert_eq!(media_type(unknown), "application/octet-stream");
    }

    #[test]
    fn an_image_without_a_source_is_kept_whole() {
        let part = decode(r#"{"type":"input_image","image_url":null,"detail":"low"}"#);
        assert_eq!(part.content, Content::Opaque { kind: "input_image".into() });
        assert_eq!(
            written(&part, Voice::Input).0,
            r#"[{"type":"input_image","image_url":null,"detail":"low"}]"#
        );
    }

    #[test]
    fn annotations_are_extras_only_when_there_are_any() {
        let none = decode(r#"{"type":"output_text","text":"a","annotations":[],"logprobs":null}"#);
        assert!(none.wire.unwrap().extras.is_empty());
        let some = decode(r#"{"type":"output_text","text":"a","annotations":[{"type":"x"}]}"#);
        assert_eq!(some.wire.unwrap().extras[0].name, "annotations");
    }

    #[test]
    fn a_foreign_image_becomes_a_data_url_with_a_detail() {
        let media = Media::Inline { media_type: "image/png".into(), base64: "iVBOR".into() };
        let part = Part { content: Content::Image(Image { media, detail: None }), wire: None };
        let expected =
            r#"[{"type":"input_image","image_url":"data:image/png;base64,iVBOR","detail":"auto"}]"#;
        assert_eq!(written(&part, Voice::Input).0, expected);
        let (nothing, report) = written(&part, Voice::Output);
        assert_eq!((nothing.as_str(), report.count(Action::Dropped)), ("[]", 1));
    }

    #[test]
    fn inline_files_always_have_a_name() {
        let media = Media::Inline { media_type: "application/pdf".into(), base64: "JVBE".into() };
        let part = Part { content: Content::File(File { media, name: None }), wire: None };
        assert!(written(&part, Voice::Input).0.contains(r#""filename":"document.pdf""#));
    }
}
