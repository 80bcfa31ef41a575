//! Blocks that are entries of their own, both ways: tool calls, tool results, thinking.
//!
//! One message holds blocks of all kinds. What is said in a row becomes one entry; a call, a result or a
//! thought ends it, so that the order of the wire is kept. A call or a result in the wrong role is read as
//! what it is: who may say what is for the rules of the backend to decide.

use super::kept::{extras, given, given_bool, given_text, own, tag, wire, write_extras};
use super::known;
use super::parts::{BlockList, Destination, Head, decode_part, decode_parts, write_parts};
use crate::input;
use crate::json::{DecodeError, Kind as JsonKind, Node, Writer};
use crate::shape;
use std::borrow::Cow;
use throughline_core::{
    Action, Call, Content, Entry, Input, Kind, Outcome, Part, Place, Report, Return, Role, Said, Seal, Text,
    Thought, outcome,
};

/// Reads the blocks of one message into entries.
pub(super) struct BlockReader {
    role: Role,
    message: Option<u32>,
    entries: Vec<Entry>,
    /// What is being said, and the block it began with.
    saying: Option<(u32, Vec<Part>)>,
}

impl BlockReader {
    /// Returns a reader for a message of `role`, which is number `message` of a request.
    pub(super) fn new(role: Role, message: Option<u32>) -> Self {
        Self { role, message, entries: Vec::new(), saying: None }
    }

    /// Reads a string or a list of blocks.
    pub(super) fn read(mut self, content: Node<'_>) -> Result<Vec<Entry>, DecodeError> {
        if content.kind() != JsonKind::Array {
            let said = self.said(decode_parts(content)?);
            return Ok(vec![said]);
        }
        for (block, index) in content.items().zip(0..) {
            self.read_block(block, index)?;
        }
        self.end_saying();
        if self.entries.is_empty() {
            let nothing = self.nothing();
            self.entries.push(nothing);
        }
        Ok(self.entries)
    }

    /// Returns the entry of a message that has no content.
    pub(super) fn nothing(&self) -> Entry {
        self.said(Vec::new())
    }

    fn read_block(&mut self, block: Node<'_>, index: u32) -> Result<(), DecodeError> {
        let mut entry = match tag(block)?.as_str() {
            "tool_use" => decode_call(block)?,
            "tool_result" => decode_return(block)?,
            "thinking" => decode_thinking(block)?,
            "redacted_thinking" => decode_redacted(block)?,
            _ => {
                let (_, parts) = self.saying.get_or_insert((index, Vec::new()));
                parts.push(decode_part(block)?);
                return Ok(());
            }
        };
        shape::check(block, known::BLOCK)?;
        self.end_saying();
        entry.place = self.place(Some(index));
        self.entries.push(entry);
        Ok(())
    }

    fn end_saying(&mut self) {
        if let Some((index, parts)) = self.saying.take() {
            let mut said = self.said(parts);
            said.place = self.place(Some(index));
            self.entries.push(said);
        }
    }

    fn said(&self, parts: Vec<Part>) -> Entry {
        let mut entry = Entry::new(Kind::Said(Said { role: self.role, parts, standing: false }));
        entry.place = self.place(None);
        entry
    }

    fn place(&self, block: Option<u32>) -> Option<Place> {
        self.message.map(|message| Place { message, block })
    }
}

fn decode_call(block: Node<'_>) -> Result<Entry, DecodeError> {
    let input = given(block, "input");
    let call = Call {
        id: block.expect_field("id")?.expect_text()?,
        item_id: None,
        name: block.expect_field("name")?.expect_text()?,
        namespace: None,
        input: input.map_or_else(|| Input::Arguments(Text::default()), decode_input),
    };
    let mut entry = Entry::new(Kind::Called(call));
    entry.wire = Some(wire(block, &["type", "id", "name", "input"]));
    // The API refuses any input but an object, so the block cannot go back as it came.
    entry.intact = input.is_some_and(|input| input.kind() == JsonKind::Object);
    Ok(entry)
}

/// Reads an input. Some programs put the text of the arguments where the object should be.
fn decode_input(input: Node<'_>) -> Input {
    input::from_arguments(input.as_text().unwrap_or_else(|| input.raw_text()))
}

fn decode_return(block: Node<'_>) -> Result<Entry, DecodeError> {
    let content = block.field("content").filter(|content| !content.is_null());
    let is_object = |content: Node<'_>| content.kind() == JsonKind::Object;
    let parts = match content {
        // Some programs write what the tool returned itself, and not its text.
        Some(content) if is_object(content) => vec![Part::text(content.raw_text())],
        Some(content) => decode_parts(content)?,
        None => Vec::new(),
    };
    let is_error = given_bool(block, "is_error")?.unwrap_or(false);
    let (outcome, parts) = outcome::unmarked(parts, true, is_error);
    let returned = Return {
        call_id: Some(block.expect_field("tool_use_id")?.expect_text()?),
        item_id: None,
        name: None,
        parts,
        outcome,
        freeform: false,
    };
    let mut entry = Entry::new(Kind::Returned(returned));
    entry.wire = Some(wire(block, &["type", "tool_use_id", "content", "is_error"]));
    entry.intact = !block.field("content").is_some_and(is_object);
    Ok(entry)
}

fn decode_thinking(block: Node<'_>) -> Result<Entry, DecodeError> {
    let text = given_text(block, "thinking")?;
    // Backends that sign nothing send no signature or an empty one, and so do we for them.
    let signature = given_text(block, "signature")?.filter(|signature| !signature.is_empty());
    let thought = Thought {
        content: text.filter(|text| !text.is_empty()).into_iter().collect(),
        seal: signature.map(Seal::Signature),
        ..Thought::default()
    };
    let mut entry = Entry::new(Kind::Thought(thought));
    entry.wire = Some(wire(block, &["type", "thinking", "signature"]));
    Ok(entry)
}

fn decode_redacted(block: Node<'_>) -> Result<Entry, DecodeError> {
    let data = block.expect_field("data")?.expect_text()?;
    let thought = Thought { seal: Some(Seal::Redacted(data)), ..Thought::default() };
    let mut entry = Entry::new(Kind::Thought(thought));
    entry.wire = Some(wire(block, &["type", "data"]));
    Ok(entry)
}

/// Reads the fields of a message beside its role and content.
pub(super) fn message_extras(message: Node<'_>) -> Vec<throughline_core::Extra> {
    extras(message, &["role", "content", "type", "id"])
}

/// Writes entries as blocks, as they came where that still says the same.
pub(super) fn write_entry(list: &mut BlockList<'_>, entry: &Entry, needs_seal: bool, report: &mut Report) {
    if let Some(wire) = own(entry.wire.as_ref()).filter(|_| entry.intact && !is_spoken(entry)) {
        return list.next().raw(&wire.text);
    }
    match &entry.kind {
        Kind::Said(said) => {
            let takes_media = said.role == Role::User;
            write_parts(list, &said.parts, &mut Destination { takes_media, place: entry.place, report });
        }
        Kind::Called(call) => write_call(list.next(), entry, call, report),
        Kind::Returned(returned) => write_return(list.next(), entry, returned, report),
        Kind::Thought(thought) => write_thought(list, entry, thought, needs_seal, report),
        Kind::Summarised(summary) => list.text(&summary.text),
        Kind::HandedOver(_) => {}
        Kind::Opaque { kind } | Kind::Reference { id: kind } => {
            report.entry(Action::Dropped, entry.place, format!("`{kind}` has no counterpart here"));
        }
    }
}

/// Says whether the entry stands in the message itself; its wire form, if it has one, is a field's.
fn is_spoken(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Said(_))
}

fn write_call(writer: &mut Writer, entry: &Entry, call: &Call, report: &mut Report) {
    let input = input::as_object(&call.input);
    if let Some((action, reason)) =
        input_change(&call.input, matches!(input, Cow::Owned(_)), own(entry.wire.as_ref()).is_some())
    {
        report.entry(action, entry.place, reason);
    }
    write_tool_use(writer, call, &input, |writer| write_extras(writer, entry.wire.as_ref()));
}

/// Returns what was done to an input to make it an object.
fn input_change(input: &Input, was_wrapped: bool, is_own: bool) -> Option<(Action, &'static str)> {
    match input {
        Input::Freeform(_) => Some((Action::Translated, "free text was wrapped into an object")),
        Input::Arguments(_) if was_wrapped => {
            Some((Action::Repaired, "arguments that are no JSON object were wrapped into one"))
        }
        Input::Arguments(text) if is_own && text.is_empty() => {
            Some((Action::Repaired, "the call had no input"))
        }
        Input::Arguments(_) => None,
    }
}

/// Writes a `tool_use` block with the input given as the text of an object.
pub(super) fn write_tool_use(
    writer: &mut Writer,
    call: &Call,
    input: &str,
    extras: impl FnOnce(&mut Writer),
) {
    writer.begin_object();
    writer.field_str("type", "tool_use");
    writer.field_str("id", &call.id);
    writer.field_str("name", &call.name);
    writer.field_raw("input", input);
    extras(writer);
    writer.end_object();
}

fn write_return(writer: &mut Writer, entry: &Entry, returned: &Return, report: &mut Report) {
    writer.begin_object();
    writer.field_str("type", "tool_result");
    writer.field_str("tool_use_id", returned.call_id.as_deref().unwrap_or_default());
    let parts = outcome::marked(&returned.parts, returned.outcome, true);
    write_result_content(writer, &parts, Destination { takes_media: true, place: entry.place, report });
    if returned.outcome != Outcome::Ok {
        writer.field_bool("is_error", true);
    }
    write_extras(writer, entry.wire.as_ref());
    writer.end_object();
}

/// Writes a result's content: nothing if there is none, a string if it is one text.
fn write_result_content(writer: &mut Writer, parts: &[Part], mut to: Destination<'_>) {
    if let [Part { content: Content::Text(text), wire }] = parts
        && own(wire.as_ref()).is_none()
    {
        if !text.is_empty() {
            writer.field_str("content", text);
        }
        return;
    }
    let mut list = BlockList::new(writer, Head::Field("content"));
    write_parts(&mut list, parts, &mut to);
    list.end();
}

/// Writes a thought that has no block to go back as: one that was streamed, or of another dialect.
fn write_thought(
    list: &mut BlockList<'_>,
    entry: &Entry,
    thought: &Thought,
    needs_seal: bool,
    report: &mut Report,
) {
    match &thought.seal {
        Some(Seal::Signature(signature)) => write_thinking(list.next(), thought, signature),
        Some(Seal::Redacted(data)) => write_redacted(list.next(), data),
        _ if !needs_seal && !thought.content.is_empty() => {
            write_thinking(list.next(), thought, "");
        }
        _ => report.entry(Action::Dropped, entry.place, "reasoning without a signature is refused"),
    }
}

/// Writes a `thinking` block.
///
/// A client gets one with an empty signature where the backend signed nothing: it is shown and sent back,
/// and whoever reads it here knows that there was no signature.
pub(super) fn write_thinking(writer: &mut Writer, thought: &Thought, signature: &str) {
    writer.begin_object();
    writer.field_str("type", "thinking");
    writer.key("thinking");
    writer.string_with(|sink| {
        let texts = if thought.content.is_empty() { &thought.summary } else { &thought.content };
        for (at, text) in texts.iter().enumerate() {
            // A signature is over the exact text; only what was never signed gets line breaks.
            if at > 0 && signature.is_empty() {
                sink.push("\n\n");
            }
            sink.push(text);
        }
    });
    writer.field_str("signature", signature);
    writer.end_object();
}

/// Writes a `redacted_thinking` block.
pub(super) fn write_redacted(writer: &mut Writer, data: &str) {
    writer.begin_object();
    writer.field_str("type", "redacted_thinking");
    writer.field_str("data", data);
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn read(content: &str) -> Vec<Entry> {
        let document = Document::parse(content).unwrap();
        BlockReader::new(Role::Assistant, Some(3)).read(document.root()).unwrap()
    }

    fn written(entry: &Entry) -> (String, Report) {
        let mut writer = Writer::new();
        let mut report = Report::default();
        let mut list = BlockList::new(&mut writer, Head::Message("user"));
        write_entry(&mut list, entry, true, &mut report);
        list.end();
        let text = writer.into_string();
        (text.strip_prefix(r#"{"role":"user","content":"#).unwrap_or_default().to_owned(), report)
    }

    #[test]
    fn the_order_of_text_calls_and_thoughts_is_kept() {
        let entries = read(
            r#"[{"type":"thinking","thinking":"","signature":"S"},{"type":"text","text":"a"},{"type":"hologram"},
                {"type":"tool_use","id":"1","name":"f","input":{"a": 1.10}},{"type":"text","text":"b"}]"#,
        );
        let blocks: Vec<_> = entries.iter().map(|entry| entry.place.unwrap().block).collect();
        assert_eq!(blocks, [Some(0), Some(1), Some(3), Some(4)]);
        assert_eq!(entries[1].as_said().unwrap().parts.len(), 2);
        assert_eq!(entries[2].as_call().unwrap().input, Input::Arguments(r#"{"a": 1.10}"#.into()));
        let thought = Thought { seal: Some(Seal::Signature("S".into())), ..Thought::default() };
        assert_eq!(entries[0].kind, Kind::Thought(thought));
    }

    #[test]
    fn a_message_without_content_is_still_an_entry() {
        for content in ["null", "[]"] {
            assert_eq!(read(content)[0].as_said().unwrap().parts, []);
        }
        assert_eq!(read(r#""""#)[0].as_said().unwrap().parts, [Part::text("")]);
    }

    #[test]
    fn an_empty_signature_is_none() {
        let entries = read(r#"[{"type":"thinking","thinking":"t","signature":""}]"#);
        assert!(matches!(&entries[0].kind, Kind::Thought(thought) if thought.seal.is_none()));
    }

    #[test]
    fn an_input_that_is_no_object_is_repaired() {
        for (input, repaired) in [
            (r#""{\"a\": ""#, r#"{"throughline_arguments":"{\"a\": "}"#),
            ("[1, 2]", r#"{"throughline_arguments":"[1, 2]"}"#),
            ("null", "{}"),
        ] {
            let entries =
                read(&format!(r#"[{{"type":"tool_use","id":"1","name":"f","input":{input},"x":1}}]"#));
            let (text, report) = written(&entries[0]);
            let expected = format!(r#"[{{"type":"tool_use","id":"1","name":"f","input":{repaired},"x":1}}]"#);
            assert_eq!(text, expected);
            assert_eq!(report.count(Action::Repaired), 1);
        }
    }

    #[test]
    fn our_own_wrapper_is_unwrapped_and_comes_back() {
        let block = r#"[{"type":"tool_use","id":"1","name":"f","input":{"throughline_input":"*** Begin"}}]"#;
        let entries = read(block);
        assert_eq!(entries[0].as_call().unwrap().input, Input::Freeform("*** Begin".into()));
        assert_eq!(written(&entries[0]).0, block);
        assert_eq!(written(&entries[0].altered(entries[0].kind.clone())).0, block);
    }

    #[test]
    fn an_empty_result_has_no_content() {
        let mut returned = Return {
            call_id: Some("1".into()),
            item_id: None,
            name: None,
            parts: vec![Part::text("")],
            outcome: Outcome::Ok,
            freeform: false,
        };
        let expected = r#"[{"type":"tool_result","tool_use_id":"1"}]"#;
        assert_eq!(written(&Entry::new(Kind::Returned(returned.clone()))).0, expected);
        returned.outcome = Outcome::Interrupted;
        let (text, _) = written(&Entry::new(Kind::Returned(returned)));
        assert!(text.contains(r#""content":"[tool interrupted]\n","is_error":true"#), "{text}");
    }

    #[test]
    fn a_thought_that_was_streamed_goes_back_with_its_signature() {
        let thought = Thought {
            content: vec!["a".into(), "b".into()],
            seal: Some(Seal::Signature("S".into())),
            ..Thought::default()
        };
        let (text, _) = written(&Entry::new(Kind::Thought(thought)));
        assert_eq!(text, r#"[{"type":"thinking","thinking":"ab","signature":"S"}]"#);
    }

    #[test]
    fn a_foreign_seal_is_never_written() {
        let thought = Thought { seal: Some(Seal::Encrypted("E".into())), ..Thought::default() };
        let (text, report) = written(&Entry::new(Kind::Thought(thought)));
        assert_eq!((text.as_str(), report.count(Action::Dropped)), ("", 1));
    }
}
