//! Items of an answer as they are written: whole in a reply, growing in a stream.
//!
//! One writer serves `output_item.added` (still empty), `output_item.done` and the final `output`, so the
//! three cannot disagree. Every item has an id and a status; what the specification wants omitted rather
//! than `null` is omitted.

use crate::json::{Document, Edit, Kind as JsonKind, Node, Writer, patch, quote};
use throughline_core::{
    Call, Content, Dialect, Entry, Extra, Input, Kind, Part, Role, Said, Seal, Text, Thought,
};

/// What a call is given when its model wrote nothing: clients parse it.
pub(super) const EMPTY_ARGUMENTS: &str = "{}";

/// An item of an answer.
#[derive(Debug)]
pub(super) struct OutputItem {
    /// Its id, made here.
    pub id: String,
    /// How far it has come.
    pub status: ItemStatus,
    /// What it is.
    pub body: Body,
    /// Fields that the canonical model has no word for, of an item that came in this dialect.
    pub extras: Vec<Extra>,
}

/// How far an item has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemStatus {
    /// It is being written.
    InProgress,
    /// It is all there.
    Completed,
    /// It was cut off.
    Incomplete,
}

/// What an item is.
#[derive(Debug)]
pub(super) enum Body {
    /// Words for the user.
    Message(Vec<OutputPart>),
    /// Reasoning.
    Reasoning(OutputThought),
    /// A tool call.
    Call(OutputCall),
    /// An item of this dialect that nobody here looks into, whole.
    Whole(String),
}

/// A part of a message.
#[derive(Debug)]
pub(super) enum OutputPart {
    /// Text, and the remarks on it.
    Text { text: String, annotations: Vec<Text> },
    /// A refusal.
    Refusal(String),
    /// A part of this dialect, as it came.
    Whole(Text),
}

/// Reasoning as this dialect shows it.
#[derive(Debug, Default)]
pub(super) struct OutputThought {
    /// The paragraphs of its summary.
    pub summary: Vec<String>,
    /// The reasoning itself.
    pub content: Option<String>,
    /// Its sealed form.
    pub encrypted: Option<String>,
}

/// A call of a function or of a custom tool.
#[derive(Debug)]
pub(super) struct OutputCall {
    pub call_id: Text,
    pub name: Text,
    pub namespace: Option<Text>,
    pub freeform: bool,
    pub input: String,
}

impl ItemStatus {
    const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

impl Body {
    /// Returns what the id of such an item begins with; clients drop ids that have no prefix.
    fn prefix(&self) -> &'static str {
        match self {
            Self::Message(_) => "msg",
            Self::Reasoning(_) => "rs",
            Self::Call(OutputCall { freeform: true, .. }) => "ctc",
            Self::Call(_) => "fc",
            Self::Whole(item) => prefix_of_item(item),
        }
    }
}

impl OutputItem {
    /// Returns the item at position `index` of the answer that is stamped with `stamp_id`.
    pub(super) fn new(body: Body, stamp_id: &str, index: usize) -> Self {
        let id = format!("{}_{stamp_id}_{index}", body.prefix());
        let body = match body {
            Body::Whole(text) => Body::Whole(mended(&text, &id)),
            Body::Call(OutputCall { call_id, name, namespace, freeform, input }) if call_id.is_empty() => {
                let call_id = Text::from(format!("call_{stamp_id}_{index}"));
                Body::Call(OutputCall { call_id, name, namespace, freeform, input })
            }
            body => body,
        };
        Self { id, status: ItemStatus::InProgress, body, extras: Vec::new() }
    }

    /// Returns the item that an entry of an answer is written as; nothing if it says nothing.
    pub(super) fn of_entry(entry: &Entry, stamp_id: &str, index: usize) -> Option<Self> {
        let own = entry.wire.as_ref().filter(|wire| wire.dialect == Dialect::Responses);
        let body = match (&entry.kind, own) {
            (Kind::Opaque { .. } | Kind::Reference { .. }, own) => Body::Whole(own?.text.as_str().to_owned()),
            (_, Some(wire)) if entry.intact => Body::Whole(wire.text.as_str().to_owned()),
            (Kind::Said(said), _) => message(said)?,
            (Kind::Thought(thought), _) => Body::Reasoning(OutputThought::of(thought)),
            (Kind::Called(call), _) => Body::Call(OutputCall::of(call)),
            (Kind::Returned(_) | Kind::HandedOver(_) | Kind::Summarised(_), _) => return None,
        };
        let mut item = Self::new(body, stamp_id, index);
        if !matches!(item.body, Body::Whole(_)) {
            item.extras = own.map(|wire| wire.extras.clone()).unwrap_or_default();
        }
        Some(item)
    }

    /// Writes the item.
    pub(super) fn write(&self, writer: &mut Writer) {
        if let Body::Whole(text) = &self.body {
            return writer.raw(text);
        }
        writer.begin_object();
        let tag = match &self.body {
            Body::Message(_) => "message",
            Body::Reasoning(_) => "reasoning",
            Body::Call(call) if call.freeform => "custom_tool_call",
            Body::Call(_) | Body::Whole(_) => "function_call",
        };
        writer.field_str("type", tag);
        writer.field_str("id", &self.id);
        writer.field_str("status", self.status.name());
        match &self.body {
            Body::Message(parts) => {
                writer.field_str("role", "assistant");
                writer.key("content");
                writer.begin_array();
                parts.iter().for_each(|part| part.write(writer));
                writer.end_array();
            }
            Body::Reasoning(thought) => thought.write(writer),
            Body::Call(call) => call.write(writer),
            Body::Whole(_) => {}
        }
        for extra in &self.extras {
            writer.field_raw(&extra.name, &extra.value);
        }
        writer.end_object();
    }
}

impl OutputPart {
    /// Returns the refusal or text that has grown so far.
    pub(super) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Text { text, .. } | Self::Refusal(text) => Some(text),
            Self::Whole(_) => None,
        }
    }

    /// Writes the part.
    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            Self::Whole(text) => writer.raw(text),
            Self::Refusal(words) => write_text_part(writer, "refusal", "refusal", words),
            Self::Text { text, annotations } => {
                writer.begin_object();
                writer.field_str("type", "output_text");
                writer.field_str("text", text);
                writer.key("annotations");
                writer.begin_array();
                annotations.iter().for_each(|annotation| writer.raw(annotation));
                writer.end_array();
                writer.field_raw("logprobs", "[]");
                writer.end_object();
            }
        }
    }
}

impl OutputThought {
    fn of(thought: &Thought) -> Self {
        let content = (!thought.content.is_empty())
            .then(|| thought.content.iter().map(Text::as_str).collect::<Vec<_>>().join("\n\n"));
        let encrypted = match &thought.seal {
            Some(Seal::Encrypted(sealed)) => Some(sealed.as_str().to_owned()),
            // The seals of other dialects would be taken for this one's, and refused when they come back.
            Some(Seal::Signature(_) | Seal::Redacted(_)) | None => None,
        };
        let summary = thought.summary.iter().map(|text| text.as_str().to_owned()).collect();
        Self { summary, content, encrypted }
    }

    fn write(&self, writer: &mut Writer) {
        writer.key("summary");
        writer.begin_array();
        self.summary.iter().for_each(|text| write_summary_part(writer, text));
        writer.end_array();
        if let Some(content) = &self.content {
            writer.key("content");
            writer.begin_array();
            write_reasoning_part(writer, content);
            writer.end_array();
        }
        if let Some(encrypted) = &self.encrypted {
            writer.field_str("encrypted_content", encrypted);
        }
    }
}

impl OutputCall {
    fn of(call: &Call) -> Self {
        let freeform = matches!(call.input, Input::Freeform(_));
        let text = call.input.text();
        let input = if text.is_empty() && !freeform { EMPTY_ARGUMENTS } else { text };
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            namespace: call.namespace.clone(),
            freeform,
            input: input.to_owned(),
        }
    }

    fn write(&self, writer: &mut Writer) {
        writer.field_str("call_id", &self.call_id);
        writer.field_str("name", &self.name);
        if let Some(namespace) = &self.namespace {
            writer.field_str("namespace", namespace);
        }
        writer.field_str(if self.freeform { "input" } else { "arguments" }, &self.input);
    }
}

/// Writes a paragraph of a reasoning summary.
pub(super) fn write_summary_part(writer: &mut Writer, text: &str) {
    write_text_part(writer, "summary_text", "text", text);
}

/// Writes a part of reasoning.
pub(super) fn write_reasoning_part(writer: &mut Writer, text: &str) {
    write_text_part(writer, "reasoning_text", "text", text);
}

fn write_text_part(writer: &mut Writer, tag: &str, field: &str, text: &str) {
    writer.begin_object();
    writer.field_str("type", tag);
    writer.field_str(field, text);
    writer.end_object();
}

/// Returns the message that something said is, unless nothing was said or not by the model.
fn message(said: &Said) -> Option<Body> {
    let parts: Vec<OutputPart> = said.parts.iter().filter_map(output_part).collect();
    (said.role == Role::Assistant && !parts.is_empty()).then_some(Body::Message(parts))
}

fn output_part(part: &Part) -> Option<OutputPart> {
    match (&part.wire, &part.content) {
        (Some(wire), _) if wire.dialect == Dialect::Responses => Some(OutputPart::Whole(wire.text.clone())),
        (_, Content::Text(text)) => {
            Some(OutputPart::Text { text: text.as_str().to_owned(), annotations: Vec::new() })
        }
        (_, Content::Refusal(words)) => Some(OutputPart::Refusal(words.as_str().to_owned())),
        (_, Content::Image(_) | Content::File(_) | Content::Opaque { .. }) => None,
    }
}

fn prefix_of_item(item: &str) -> &'static str {
    let Ok(document) = Document::parse(item) else { return "item" };
    let tag = document.root().field("type").and_then(|tag| tag.as_str());
    match tag.as_deref() {
        Some("message") => "msg",
        Some("reasoning") => "rs",
        Some("function_call" | "function_call_output") => "fc",
        Some("custom_tool_call" | "custom_tool_call_output") => "ctc",
        Some("compaction") => "cmp",
        Some("web_search_call") => "ws",
        _ => "item",
    }
}

/// Returns an item of this dialect with what it must have and servers forget: an id, a status where the
/// schema demands one, and the annotations of a text.
fn mended(item: &str, id: &str) -> String {
    let Ok(document) = Document::parse(item) else { return item.to_owned() };
    let root = document.root();
    let lacks = |name: &str, kind| root.field(name).is_none_or(|value| value.kind() != kind);
    let tag = root.field("type").and_then(|tag| tag.as_str());
    let (id, content) = (quote(id), root.field("content").and_then(mended_content));
    let mut edits = Vec::new();
    if lacks("id", JsonKind::String) {
        edits.push(Edit::Set { name: "id", value: &id });
    }
    if matches!(tag.as_deref(), Some("message" | "function_call" | "custom_tool_call"))
        && lacks("status", JsonKind::String)
    {
        edits.push(Edit::Set { name: "status", value: r#""completed""# });
    }
    if let Some(content) = &content {
        edits.push(Edit::Set { name: "content", value: content });
    }
    if edits.is_empty() {
        return item.to_owned();
    }
    patch(item, &edits).unwrap_or_else(|_| item.to_owned())
}

/// Returns the content of a message with the annotations that its texts lack; nothing if they lack none.
fn mended_content(content: Node<'_>) -> Option<String> {
    let lacks = |part: &Node<'_>| {
        part.field("type").is_some_and(|tag| tag.is_str("output_text")) && part.field("annotations").is_none()
    };
    content.items().find(lacks)?;
    let mut writer = Writer::with_capacity(content.raw().len() + 32);
    writer.begin_array();
    for part in content.items() {
        let none = Edit::Set { name: "annotations", value: "[]" };
        match patch(part.raw(), &[none]).ok().filter(|_| lacks(&part)) {
            Some(mended) => writer.raw(&mended),
            None => writer.raw(part.raw()),
        }
    }
    writer.end_array();
    Some(writer.into_string())
}

/// Returns an annotation in this dialect's form, if it is one.
///
/// Chat Completions nests a `url_citation` in an object of its own; other dialects cite in ways that have no
/// counterpart here.
pub(super) fn own_annotation(annotation: &Text) -> Option<Text> {
    let document = Document::parse(annotation.as_str()).ok()?;
    let root = document.root();
    let tag = root.field("type")?.as_str()?;
    if !matches!(&*tag, "url_citation" | "file_citation" | "container_file_citation" | "file_path") {
        return None;
    }
    let Some(nested) = root.field(&tag).filter(|nested| nested.kind() == JsonKind::Object) else {
        return Some(annotation.clone());
    };
    let mut writer = Writer::with_capacity(annotation.len());
    writer.begin_object();
    writer.field_str("type", &tag);
    nested.fields().for_each(|(name, value)| writer.field_raw(&name, value.raw()));
    writer.end_object();
    Some(Text::from(writer.into_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(item: &str) -> String {
        let mut writer = Writer::new();
        OutputItem::new(Body::Whole(item.to_owned()), "a", 2).write(&mut writer);
        writer.into_string()
    }

    #[test]
    fn an_item_gets_what_its_server_forgot() {
        assert_eq!(whole(r#"{"type":"compaction","id":null}"#), r#"{"type":"compaction","id":"cmp_a_2"}"#);
        assert_eq!(
            whole(
                r#"{"type":"message","id":"m","content":[{"type":"output_text","text":"a"},{"type":"refusal"}]}"#
            ),
            concat!(
                r#"{"type":"message","id":"m","content":[{"type":"output_text","text":"a","annotations":[]},"#,
                r#"{"type":"refusal"}],"status":"completed"}"#
            )
        );
        let proper = r#"{ "type": "reasoning", "id": "rs_1", "summary": [] }"#;
        assert_eq!(whole(proper), proper);
    }

    #[test]
    fn nested_citations_are_flattened_and_foreign_ones_left_out() {
        let nested = Text::from(r#"{"type":"url_citation","url_citation":{"url":"u","start_index":0}}"#);
        assert_eq!(own_annotation(&nested).unwrap(), r#"{"type":"url_citation","url":"u","start_index":0}"#);
        let flat = Text::from(r#"{"type":"file_path","file_id":"f","index":1}"#);
        assert_eq!(own_annotation(&flat).unwrap(), flat);
        assert_eq!(own_annotation(&Text::from(r#"{"type":"char_location"}"#)), None);
    }

    #[test]
    fn the_seals_of_other_dialects_are_not_passed_off_as_this_ones() {
        let seal = Some(Seal::Signature("sig".into()));
        let thought = Thought { seal, content: vec!["a".into(), "b".into()], ..Thought::default() };
        let item = OutputItem::of_entry(&Entry::new(Kind::Thought(thought)), "x", 0).unwrap();
        let mut writer = Writer::new();
        item.write(&mut writer);
        let expected = concat!(
            r#"{"type":"reasoning","id":"rs_x_0","status":"in_progress","summary":[],"#,
            r#""content":[{"type":"reasoning_text","text":"a\n\nb"}]}"#
        );
        assert_eq!(writer.into_string(), expected);
    }
}
