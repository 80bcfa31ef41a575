//! Content of a message, written.
//!
//! One text is written as a string, several parts as an array, and a part that came in this dialect as it
//! came. Only a user may send pictures and files; a result may where the target says so. What has no form
//! here is retold as text, or left out and reported.

use super::extras::own;
use crate::json::Writer;
use throughline_core::{Action, Content, File, Image, Media, Part, Place, Report, Rules, Text, joined_text};

/// Whose content it is, which decides what it may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Anyone who may send nothing but text.
    Text,
    /// A user, or a result where the target takes media in results.
    Media,
}

/// Writes content as a string or an array of parts; says whether it says anything.
pub(super) fn write_content(
    writer: &mut Writer,
    parts: &[&Part],
    holder: Holder,
    rules: &Rules,
    place: Option<Place>,
    report: &mut Report,
) -> bool {
    // Fields that the target does not know stay behind, and with them the form in which the part came.
    let plain: Vec<Part> = parts.iter().map(|part| plain(part, rules, place, report)).collect();
    let parts: Vec<&Part> = plain.iter().filter(|part| is_writable(part, holder, place, report)).collect();
    match parts[..] {
        [] => {
            writer.string("");
            false
        }
        [Part { content: Content::Text(text), wire }] if own(wire.as_ref()).is_none() => {
            writer.string(text);
            !text.is_empty()
        }
        _ => {
            writer.begin_array();
            parts.iter().for_each(|part| write_part(writer, part, place, report));
            writer.end_array();
            true
        }
    }
}

/// Writes the content of a result.
///
/// Where the target takes nothing but a string, texts are joined by line breaks.
pub(super) fn write_result(
    writer: &mut Writer,
    parts: &[Part],
    rules: &Rules,
    place: Option<Place>,
    report: &mut Report,
) {
    if rules.parts_in_results {
        let holder = if rules.media_in_results { Holder::Media } else { Holder::Text };
        write_content(writer, &parts.iter().collect::<Vec<_>>(), holder, rules, place, report);
        return;
    }
    let texts = parts.iter().filter(|part| is_writable(part, Holder::Text, place, report)).count();
    if texts > 1 {
        report.entry(Action::Translated, place, "the texts of the result are joined into one");
    }
    writer.string(&joined_text(parts));
}

/// Says whether a part can go out as it came: it has no fields that the target does not know.
pub(super) fn suits(part: &Part, rules: &Rules) -> bool {
    let is_opaque = matches!(part.content, Content::Opaque { .. });
    rules.own_extensions || is_opaque || own(part.wire.as_ref()).is_none_or(|wire| wire.extras.is_empty())
}

fn plain(part: &Part, rules: &Rules, place: Option<Place>, report: &mut Report) -> Part {
    if suits(part, rules) {
        return part.clone();
    }
    for extra in part.wire.iter().flat_map(|wire| &wire.extras) {
        report.entry(Action::Dropped, place, format!("the target refuses parts with a field {}", extra.name));
    }
    Part { content: part.content.clone(), wire: None }
}

fn is_writable(part: &Part, holder: Holder, place: Option<Place>, report: &mut Report) -> bool {
    let is_own = own(part.wire.as_ref()).is_some();
    let problem = match &part.content {
        Content::Text(_) => return true,
        Content::Refusal(_) | Content::Opaque { .. } if is_own => return true,
        // Outside the assistant's messages a refusal is nothing but words.
        Content::Refusal(_) => return true,
        Content::Image(_) | Content::File(_) if holder == Holder::Text => {
            "only the user sends pictures and files"
        }
        Content::Image(Image { media: Media::Stored(_) | Media::Plain(_), .. }) if !is_own => {
            "a picture must come by value or by address"
        }
        Content::Image(_) | Content::File(_) => return true,
        Content::Opaque { .. } => "chat has no such part",
    };
    report.entry(Action::Dropped, place, problem);
    false
}

fn write_part(writer: &mut Writer, part: &Part, place: Option<Place>, report: &mut Report) {
    if let Some(wire) = own(part.wire.as_ref()) {
        return writer.raw(&wire.text);
    }
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => write_text(writer, text),
        Content::Image(image) => write_image(writer, image),
        Content::File(file) => write_file(writer, file, place, report),
        // Sorted out before.
        Content::Opaque { .. } => {}
    }
}

fn write_text(writer: &mut Writer, text: &str) {
    writer.begin_object();
    writer.field_str("type", "text");
    writer.field_str("text", text);
    writer.end_object();
}

fn write_image(writer: &mut Writer, image: &Image) {
    writer.begin_object();
    writer.field_str("type", "image_url");
    writer.key("image_url");
    writer.begin_object();
    writer.key("url");
    write_address(writer, &image.media);
    if let Some(detail) = &image.detail {
        writer.field_str("detail", detail);
    }
    writer.end_object();
    writer.end_object();
}

fn write_address(writer: &mut Writer, media: &Media) {
    match media {
        Media::Url(text) | Media::Stored(text) | Media::Plain(text) => writer.string(text),
        Media::Inline { media_type, base64 } => writer.string_with(|sink| {
            sink.push("data:");
            sink.push(media_type);
            sink.push(";base64,");
            sink.push(base64);
        }),
    }
}

fn write_file(writer: &mut Writer, file: &File, place: Option<Place>, report: &mut Report) {
    let name = file.name.as_ref().map_or("document", Text::as_str);
    match &file.media {
        Media::Plain(text) => {
            report.entry(Action::Translated, place, "a plain document is sent as text");
            return write_text(writer, &format!("{name}:\n{text}"));
        }
        Media::Url(url) => {
            report.entry(
                Action::Translated,
                place,
                "chat takes no files by address; the address is sent as text",
            );
            return write_text(writer, &format!("{name}: {url}"));
        }
        Media::Inline { .. } | Media::Stored(_) => {}
    }
    writer.begin_object();
    writer.field_str("type", "file");
    writer.key("file");
    writer.begin_object();
    if let Media::Stored(id) = &file.media {
        writer.field_str("file_id", id);
    } else {
        // The name is required beside the bytes.
        writer.field_str("filename", name);
        writer.key("file_data");
        write_address(writer, &file.media);
    }
    writer.end_object();
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Dialect;

    fn part(content: Content) -> Part {
        Part { content, wire: None }
    }

    fn written(parts: &[Part], holder: Holder) -> (String, Report) {
        let (mut writer, mut report) = (Writer::new(), Report::default());
        let rules = Rules::of_dialect(Dialect::Chat);
        write_content(&mut writer, &parts.iter().collect::<Vec<_>>(), holder, &rules, None, &mut report);
        (writer.into_string(), report)
    }

    #[test]
    fn one_text_is_a_string_and_several_are_parts() {
        assert_eq!(written(&[], Holder::Text).0, r#""""#);
        assert_eq!(written(&[Part::text("a")], Holder::Text).0, r#""a""#);
        let two = written(&[Part::text("a"), Part::text("b")], Holder::Text).0;
        assert_eq!(two, r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#);
    }

    #[test]
    fn only_those_who_may_send_pictures_do() {
        let media = Media::Inline { media_type: "image/png".into(), base64: "iVBO".into() };
        let image = part(Content::Image(Image { media, detail: None }));
        let (json, report) = written(std::slice::from_ref(&image), Holder::Media);
        assert_eq!(json, r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]"#);
        assert_eq!(report.count(Action::Dropped), 0);
        let (json, report) = written(&[image, Part::text("a")], Holder::Text);
        assert_eq!((json.as_str(), report.count(Action::Dropped)), (r#""a""#, 1));
    }

    #[test]
    fn a_file_by_address_is_told_in_words() {
        let file = File { media: Media::Url("https://x/a.pdf".into()), name: None };
        let (json, report) = written(&[part(Content::File(file))], Holder::Media);
        assert_eq!(json, r#"[{"type":"text","text":"document: https://x/a.pdf"}]"#);
        assert_eq!(report.count(Action::Translated), 1);
    }

    #[test]
    fn results_are_joined_where_they_must_be_a_string() {
        let mut rules = Rules::of_dialect(Dialect::Chat);
        rules.parts_in_results = false;
        let (mut writer, mut report) = (Writer::new(), Report::default());
        write_result(&mut writer, &[Part::text("a"), Part::text("b")], &rules, None, &mut report);
        assert_eq!((writer.into_string().as_str(), report.count(Action::Translated)), (r#""a\nb""#, 1));
    }
}
