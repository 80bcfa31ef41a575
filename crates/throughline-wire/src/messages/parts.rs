//! Content parts, both ways: text, images, documents, and whatever else stands in a message.
//!
//! What came in this dialect goes out as it came. What came in another one is built, and what this dialect
//! has no block for leaves a line of text in its place, so that the model knows that something was there.

use super::base64;
use super::kept::{given_text, own, tag, wire};
use super::known;
use crate::json::{DecodeError, Kind, Node, Writer};
use crate::shape;
use throughline_core::{Action, Content, File, Image, Media, Part, Place, Report, Text};

/// The pictures that the API takes.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Reads the content of a message or a result: a string or a list of blocks.
pub(super) fn decode_parts(content: Node<'_>) -> Result<Vec<Part>, DecodeError> {
    match content.kind() {
        Kind::Null => Ok(Vec::new()),
        Kind::String => Ok(vec![Part::text(content.expect_text()?)]),
        Kind::Array => content.items().map(decode_part).collect(),
        kind => Err(content.error(format!("must be a string or an array of blocks, not {kind}"))),
    }
}

/// Reads one block that is a part.
pub(super) fn decode_part(block: Node<'_>) -> Result<Part, DecodeError> {
    let kind = tag(block)?;
    shape::check(block, known::BLOCK)?;
    let (content, known): (_, &[&str]) = match kind.as_str() {
        "text" => (Some(Content::Text(block.expect_field("text")?.expect_text()?)), &["type", "text"]),
        "image" => {
            let image = |media| Content::Image(Image { media, detail: None });
            (decode_media(block)?.map(image), &["type", "source"])
        }
        "document" => {
            let name = given_text(block, "title")?;
            let file = |media| Content::File(File { media, name });
            (decode_media(block)?.map(file), &["type", "source", "title"])
        }
        _ => (None, &[]),
    };
    Ok(match content {
        Some(content) => Part { content, wire: Some(wire(block, known)) },
        None => opaque(kind, block),
    })
}

/// A part of which the wire form is all there is; its fields are not told apart.
fn opaque(kind: Text, block: Node<'_>) -> Part {
    let mut kept = wire(block, &[]);
    kept.extras = Vec::new();
    Part { content: Content::Opaque { kind }, wire: Some(kept) }
}

/// Reads where the bytes of an image or a document are; nothing for a source that nobody here knows.
fn decode_media(block: Node<'_>) -> Result<Option<Media>, DecodeError> {
    let source = block.expect_field("source")?.expect_object()?;
    let text = |name| source.expect_field(name)?.expect_text();
    Ok(Some(match tag(source)?.as_str() {
        "base64" => Media::Inline { media_type: text("media_type")?, base64: text("data")? },
        "text" => Media::Plain(text("data")?),
        "url" => Media::Url(text("url")?),
        "file" => Media::Stored(text("file_id")?),
        _ => return Ok(None),
    }))
}

/// A list of blocks that is begun with its first block, since an empty one is refused.
pub(super) struct BlockList<'w> {
    writer: &'w mut Writer,
    head: Head<'w>,
    begun: bool,
    /// How many blocks were written.
    pub(super) count: u32,
}

/// What stands before a list of blocks.
pub(super) enum Head<'w> {
    /// A message of this role.
    Message(&'w str),
    /// A field of the object that is being written.
    Field(&'w str),
}

impl<'w> BlockList<'w> {
    /// Returns a list of which nothing is written yet.
    pub(super) fn new(writer: &'w mut Writer, head: Head<'w>) -> Self {
        Self { writer, head, begun: false, count: 0 }
    }

    /// Returns the writer, for one more block.
    pub(super) fn next(&mut self) -> &mut Writer {
        if !self.begun {
            self.begin();
        }
        self.count += 1;
        self.writer
    }

    /// Writes what stands before the list.
    pub(super) fn begin(&mut self) {
        self.begun = true;
        match self.head {
            Head::Message(role) => {
                self.writer.begin_object();
                self.writer.field_str("role", role);
                self.writer.key("content");
            }
            Head::Field(name) => self.writer.key(name),
        }
        self.writer.begin_array();
    }

    /// Ends the list, but not the message; says whether there was one.
    pub(super) fn end(self) -> bool {
        if self.begun {
            self.writer.end_array();
        }
        self.begun
    }

    /// Adds a text block, unless it would be empty.
    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let writer = self.next();
        writer.begin_object();
        writer.field_str("type", "text");
        writer.field_str("text", text);
        writer.end_object();
    }
}

/// Where parts are written to, and whom to tell what became of them.
pub(super) struct Destination<'r> {
    /// Whether images and documents may stand here: not beside the conversation, nor in the model's mouth.
    pub(super) takes_media: bool,
    /// Where the parts stood.
    pub(super) place: Option<Place>,
    /// Where changes are noted.
    pub(super) report: &'r mut Report,
}

impl Destination<'_> {
    fn note(&mut self, action: Action, reason: impl Into<Text>) {
        self.report.entry(action, self.place, reason);
    }

    /// Leaves a line of text in the place of something that cannot be sent.
    fn leave_out(&mut self, list: &mut BlockList<'_>, what: &str, why: &str) {
        list.text(&format!("[{what} left out]"));
        self.note(Action::Dropped, format!("{what}: {why}"));
    }
}

/// Writes parts as blocks.
pub(super) fn write_parts(list: &mut BlockList<'_>, parts: &[Part], to: &mut Destination<'_>) {
    for part in parts {
        write_part(list, part, to);
    }
}

fn write_part(list: &mut BlockList<'_>, part: &Part, to: &mut Destination<'_>) {
    if part.as_text().is_some_and(|text| text.is_empty()) {
        return;
    }
    if let Some(wire) = own(part.wire.as_ref()) {
        return list.next().raw(&wire.text);
    }
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => list.text(text),
        Content::Image(image) => write_image(list, &image.media, to),
        Content::File(file) => write_file(list, file, to),
        Content::Opaque { kind } => to.note(Action::Dropped, format!("`{kind}` has no counterpart here")),
    }
}

fn write_image(list: &mut BlockList<'_>, media: &Media, to: &mut Destination<'_>) {
    if !to.takes_media {
        return to.leave_out(list, "image", "only the user and tools can show images");
    }
    match media {
        Media::Inline { media_type, base64 } => match image_type(media_type) {
            Some(known) => write_source(list.next(), "image", None, |writer| {
                writer.field_str("type", "base64");
                writer.field_str("media_type", known);
                writer.field_str("data", base64);
            }),
            None => to.leave_out(list, &format!("image of type {media_type}"), "not a type that is taken"),
        },
        Media::Url(url) if is_fetchable(url) => write_source(list.next(), "image", None, |writer| {
            writer.field_str("type", "url");
            writer.field_str("url", url);
        }),
        Media::Url(url) => to.leave_out(list, &format!("image at {url}"), "only https addresses are fetched"),
        Media::Stored(id) => to.leave_out(list, &format!("image {id}"), "it is stored with another provider"),
        Media::Plain(_) => to.leave_out(list, "image", "text is no image"),
    }
}

fn write_file(list: &mut BlockList<'_>, file: &File, to: &mut Destination<'_>) {
    let name = file.name.as_deref();
    let what = name.map_or_else(|| "file".to_owned(), |name| format!("file {name}"));
    if !to.takes_media {
        return to.leave_out(list, &what, "only the user and tools can show files");
    }
    match &file.media {
        Media::Inline { media_type, .. } if image_type(media_type).is_some() => {
            write_image(list, &file.media, to);
        }
        Media::Inline { media_type, base64 } => match readable(media_type, base64) {
            Readable::Pdf => write_source(list.next(), "document", name, |writer| {
                writer.field_str("type", "base64");
                writer.field_str("media_type", "application/pdf");
                writer.field_str("data", base64);
            }),
            Readable::Text(text) => write_plain(list, name, &text),
            Readable::Nothing => {
                to.leave_out(list, &format!("{what} of type {media_type}"), "not a type that is taken");
            }
        },
        Media::Plain(text) if text.is_empty() => to.leave_out(list, &what, "it is empty"),
        Media::Plain(text) => write_plain(list, name, text),
        Media::Url(url) if is_fetchable(url) => write_source(list.next(), "document", name, |writer| {
            writer.field_str("type", "url");
            writer.field_str("url", url);
        }),
        Media::Url(url) => to.leave_out(list, &format!("file at {url}"), "only https addresses are fetched"),
        Media::Stored(_) => to.leave_out(list, &what, "it is stored with another provider"),
    }
}

fn write_plain(list: &mut BlockList<'_>, name: Option<&str>, text: &str) {
    write_source(list.next(), "document", name, |writer| {
        writer.field_str("type", "text");
        writer.field_str("media_type", "text/plain");
        writer.field_str("data", text);
    });
}

fn write_source(writer: &mut Writer, kind: &str, title: Option<&str>, source: impl FnOnce(&mut Writer)) {
    writer.begin_object();
    writer.field_str("type", kind);
    writer.key("source");
    writer.begin_object();
    source(writer);
    writer.end_object();
    if let Some(title) = title {
        writer.field_str("title", title);
    }
    writer.end_object();
}

/// How a file given by value can be shown.
enum Readable {
    Pdf,
    Text(String),
    Nothing,
}

fn readable(media_type: &str, base64: &str) -> Readable {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/pdf") {
        return Readable::Pdf;
    }
    let textual = essence.starts_with("text/")
        || ["json", "xml", "yaml", "javascript", "toml"].iter().any(|form| essence.ends_with(form));
    if !textual {
        return Readable::Nothing;
    }
    match base64::decode_text(base64) {
        Some(text) if !text.is_empty() => Readable::Text(text),
        _ => Readable::Nothing,
    }
}

/// Returns the API's name of a picture type; `image/jpg` is a common slip.
fn image_type(media_type: &str) -> Option<&'static str> {
    let media_type = if media_type.eq_ignore_ascii_case("image/jpg") { "image/jpeg" } else { media_type };
    IMAGE_TYPES.into_iter().find(|known| media_type.eq_ignore_ascii_case(known))
}

fn is_fetchable(url: &str) -> bool {
    url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn written(content: Content, takes_media: bool) -> (String, usize) {
        let mut writer = Writer::new();
        let mut report = Report::default();
        let mut list = BlockList::new(&mut writer, Head::Message("user"));
        let mut to = Destination { takes_media, place: None, report: &mut report };
        write_parts(&mut list, &[Part { content, wire: None }], &mut to);
        list.end();
        let blocks = writer.into_string().strip_prefix(r#"{"role":"user","content":"#).map(str::to_owned);
        (blocks.unwrap_or_default(), report.changes.len())
    }

    fn inline(media_type: &str, base64: &str) -> Media {
        Media::Inline { media_type: media_type.into(), base64: base64.into() }
    }

    fn decoded(block: &str) -> Part {
        decode_part(Document::parse(block).unwrap().root()).unwrap()
    }

    #[test]
    fn sources_of_all_kinds_are_read() {
        let document = decoded(
            r#"{"type":"document","title":"a.txt","source":{"type":"text","media_type":"text/plain","data":"x"},"context":"c"}"#,
        );
        let file = File { media: Media::Plain("x".into()), name: Some("a.txt".into()) };
        assert_eq!(document.content, Content::File(file));
        assert_eq!(document.wire.unwrap().extras.len(), 1);
        let image = decoded(r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#);
        assert!(matches!(image.content, Content::Image(Image { media: Media::Stored(id), .. }) if id == "f"));
    }

    #[test]
    fn a_document_made_of_blocks_is_opaque() {
        let part = decoded(r#"{"type":"document","source":{"type":"content","content":"x"}}"#);
        assert_eq!(part.content, Content::Opaque { kind: "document".into() });
    }

    #[test]
    fn a_picture_of_a_type_that_is_not_taken_leaves_a_line() {
        let media = inline("image/bmp", "Qk0=");
        let (blocks, changes) = written(Content::Image(Image { media, detail: None }), true);
        assert_eq!(blocks, r#"[{"type":"text","text":"[image of type image/bmp left out]"}]"#);
        assert_eq!(changes, 1);
    }

    #[test]
    fn image_jpg_is_sent_as_image_jpeg() {
        let media = inline("image/jpg", "/9g=");
        let (blocks, changes) = written(Content::Image(Image { media, detail: None }), true);
        assert!(blocks.contains(r#""media_type":"image/jpeg""#) && changes == 0, "{blocks}");
    }

    #[test]
    fn a_text_file_is_sent_as_text() {
        let file = File { media: inline("text/csv; charset=utf-8", "YSxi"), name: Some("t.csv".into()) };
        let (blocks, _) = written(Content::File(file), true);
        let expected = r#"[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b"},"title":"t.csv"}]"#;
        assert_eq!(blocks, expected);
    }

    #[test]
    fn an_empty_text_block_is_never_written() {
        assert_eq!(written(Content::Text("".into()), true), (String::new(), 0));
    }

    #[test]
    fn the_model_shows_no_pictures() {
        let media = Media::Url("https://a/b.png".into());
        let (blocks, changes) = written(Content::Image(Image { media, detail: None }), false);
        assert_eq!((blocks.as_str(), changes), (r#"[{"type":"text","text":"[image left out]"}]"#, 1));
    }
}
