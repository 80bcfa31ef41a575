//! A whole answer, both ways.
//!
//! An answer that came in this dialect goes to a client of this dialect as it came, but for the model's name
//! and a stop reason that its own calls contradict. Any other is built. One that did not come to a stop has
//! `stop_reason` null and an `error` beside its content, so that what was said is kept and nobody takes it
//! for complete; with no content it is an error body.

use super::blocks::{BlockReader, write_redacted, write_thinking, write_tool_use};
use super::decode::fields;
use super::error::{decode_event, encode_error, write_error};
use super::kept::{OWN, given, given_text, own};
use super::parts::{BlockList, Destination, Head, write_parts};
use super::usage::{decode_stop, decode_usage, stop_words, write_stop, write_usage};
use crate::Stamp;
use crate::input;
use crate::json::{DecodeError, Document, Node, Writer};
use throughline_core::{
    Ask, Ending, Entry, Extra, Failure, FailureKind, Kind, Reply, Report, Role, Seal, Stop, Thought,
    settled_stop,
};

/// Reads an answer.
pub(crate) fn decode_reply(document: &Document) -> Result<Reply, DecodeError> {
    let root = document.root().expect_object()?;
    let fields = Some((OWN, fields(root)));
    if root.field("type").is_some_and(|kind| kind.is_str("error")) {
        let ending = Ending::Failed(decode_event(root));
        return Ok(Reply { id: None, model: None, entries: Vec::new(), ending, usage: None, fields });
    }
    let entries = decode_content(root)?;
    let has_calls = entries.iter().any(|entry| entry.as_call().is_some());
    let ending = match (decode_stop(root), given(root, "error")) {
        (None, Some(_)) => Ending::Failed(decode_event(root)),
        (stop, _) => Ending::Stopped(settled_stop(stop.unwrap_or(Stop::EndTurn), has_calls)),
    };
    Ok(Reply {
        id: given_text(root, "id")?,
        model: given_text(root, "model")?,
        ending,
        entries,
        usage: given(root, "usage").map(decode_usage),
        fields,
    })
}

fn decode_content(root: Node<'_>) -> Result<Vec<Entry>, DecodeError> {
    match given(root, "content").filter(|content| content.as_text().is_some() || !content.is_empty()) {
        Some(content) => BlockReader::new(Role::Assistant, None).read(content),
        None => Ok(Vec::new()),
    }
}

/// Writes an answer.
pub(crate) fn encode_reply(reply: &Reply, stamp: &Stamp, _ask: &Ask) -> String {
    if let Some((OWN, fields)) = &reply.fields {
        return write_kept(reply, fields, stamp);
    }
    match (&reply.ending, reply.entries.is_empty()) {
        (Ending::Stopped(_), _) | (_, false) => write_anew(reply, stamp),
        (ending, true) => encode_error(&failure_of(ending)),
    }
}

fn write_kept(reply: &Reply, fields: &[Extra], stamp: &Stamp) -> String {
    let size: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 4).sum();
    let mut writer = Writer::with_capacity(size + 64);
    let stop = stop_of(reply);
    writer.begin_object();
    for field in fields {
        match (field.name.as_str(), &stamp.model, &stop) {
            ("model", Some(model), _) => writer.field_str("model", model),
            ("stop_reason", _, Some(stop)) if is_contradicted(&field.value, stop) => {
                writer.field_str("stop_reason", stop_words(stop).0);
            }
            ("content", ..) if reply.entries.iter().any(|entry| !entry.intact) => {
                write_content(&mut writer, &reply.entries);
            }
            (name, ..) => writer.field_raw(name, &field.value),
        }
    }
    writer.end_object();
    writer.into_string()
}

/// Says whether the stop reason is one that the calls beside it proved wrong.
fn is_contradicted(raw: &str, stop: &Stop) -> bool {
    matches!(stop, Stop::ToolCalls | Stop::EndTurn)
        && matches!(raw, r#""end_turn""# | r#""tool_use""#)
        && raw.trim_matches('"') != stop_words(stop).0
}

fn write_anew(reply: &Reply, stamp: &Stamp) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.key("id");
    writer.string_with(|sink| {
        sink.push("msg_");
        sink.push(&stamp.id);
    });
    writer.field_str("type", "message");
    writer.field_str("role", "assistant");
    writer.field_str("model", stamp.model.as_ref().or(reply.model.as_ref()).map_or("", |model| model));
    write_content(&mut writer, &reply.entries);
    let stop = stop_of(reply);
    write_stop(&mut writer, stop.as_ref());
    writer.key("usage");
    write_usage(&mut writer, reply.usage.unwrap_or_default());
    if stop.is_none() {
        writer.key("error");
        write_error(&mut writer, &failure_of(&reply.ending));
    }
    writer.end_object();
    writer.into_string()
}

fn stop_of(reply: &Reply) -> Option<Stop> {
    let has_calls = reply.entries.iter().any(|entry| entry.as_call().is_some());
    match &reply.ending {
        Ending::Stopped(stop) => Some(settled_stop(stop.clone(), has_calls)),
        Ending::Failed(_) | Ending::Broken | Ending::Cancelled => None,
    }
}

/// Returns the failure that an ending is told as.
pub(super) fn failure_of(ending: &Ending) -> Failure {
    match ending {
        Ending::Failed(failure) => failure.clone(),
        Ending::Cancelled => Failure::new(FailureKind::Backend, "the answer was called off"),
        Ending::Broken | Ending::Stopped(_) => {
            Failure::new(FailureKind::Backend, "the backend's answer broke off")
        }
    }
}

fn write_content(writer: &mut Writer, entries: &[Entry]) {
    let mut list = BlockList::new(writer, Head::Field("content"));
    list.begin();
    for entry in entries {
        write_answer(&mut list, entry);
    }
    list.end();
}

/// Writes one entry of an answer; what this dialect has no block for is left out.
fn write_answer(list: &mut BlockList<'_>, entry: &Entry) {
    let is_said = matches!(entry.kind, Kind::Said(_));
    if let Some(wire) = own(entry.wire.as_ref()).filter(|_| entry.intact && !is_said) {
        return list.next().raw(&wire.text);
    }
    match &entry.kind {
        Kind::Said(said) => {
            let mut unread = Report::default();
            let mut to = Destination { takes_media: false, place: None, report: &mut unread };
            write_parts(list, &said.parts, &mut to);
        }
        Kind::Called(call) => write_tool_use(list.next(), call, &input::as_object(&call.input), |_| ()),
        Kind::Thought(thought) => write_answered_thought(list, thought),
        Kind::Summarised(summary) => list.text(&summary.text),
        Kind::Returned(_) | Kind::HandedOver(_) | Kind::Reference { .. } | Kind::Opaque { .. } => {}
    }
}

fn write_answered_thought(list: &mut BlockList<'_>, thought: &Thought) {
    let is_silent = thought.content.is_empty() && thought.summary.is_empty();
    match &thought.seal {
        Some(Seal::Signature(signature)) => write_thinking(list.next(), thought, signature),
        Some(Seal::Redacted(data)) => write_redacted(list.next(), data),
        // Nothing to read, and a seal that means nothing to a client of this dialect.
        Some(Seal::Encrypted(_)) | None if is_silent => {}
        Some(Seal::Encrypted(_)) | None => write_thinking(list.next(), thought, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::decode_request;
    use crate::messages::goldens::json_goldens;
    use serde_json::{Value, json};
    use throughline_core::{Call, Input, Usage};

    fn stamp(model: Option<&str>) -> Stamp {
        Stamp { id: "7".into(), created_at: 0, model: model.map(Into::into), input_tokens: None }
    }

    fn ask() -> Ask {
        decode_request(&Document::parse(r#"{"messages":[]}"#).unwrap()).unwrap()
    }

    fn decoded(body: &str) -> Reply {
        decode_reply(&Document::parse(body).unwrap()).unwrap()
    }

    fn encoded(reply: &Reply) -> Value {
        serde_json::from_str(&encode_reply(reply, &stamp(Some("asked")), &ask())).unwrap()
    }

    fn built(entries: Vec<Entry>, ending: Ending) -> Reply {
        Reply { id: None, model: Some("m".into()), entries, ending, usage: None, fields: None }
    }

    #[test]
    fn an_error_beside_the_content_is_no_stop() {
        let body = r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":null,
            "error":{"type":"overloaded_error","message":"too much"}}"#;
        let reply = decode_reply(&Document::parse(body).expect("JSON")).expect("an answer");
        assert_eq!(reply.ending, Ending::Failed(Failure::new(FailureKind::Overloaded, "too much")));
        assert_eq!(reply.entries.len(), 1);
    }

    #[test]
    fn an_answer_in_this_dialect_goes_out_as_it_came() {
        for (name, body) in json_goldens("responses") {
            let mut expected: Value = serde_json::from_str(&body).unwrap();
            let again = encode_reply(&decoded(&body), &stamp(None), &ask());
            if name == "deviations-lean" {
                // It called a tool and said that the turn was over.
                expected["stop_reason"] = json!("tool_use");
            }
            assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn the_client_sees_the_model_it_asked_for() {
        let reply =
            decoded(r#"{"id":"msg_1","model":"m-2026","content":[],"stop_reason":"end_turn","x":1.10}"#);
        assert_eq!(reply.entries, []);
        assert_eq!(encoded(&reply)["model"], "asked");
    }

    #[test]
    fn the_usage_counts_the_whole_prompt() {
        let reply = decoded(
            r#"{"content":"hi","stop_reason":"end_turn","usage":{"input_tokens":1,"cache_read_input_tokens":10,"output_tokens":2}}"#,
        );
        assert_eq!(reply.usage, Some(Usage { input: 11, cache_read: 10, output: 2, ..Usage::default() }));
    }

    #[test]
    fn an_answer_of_another_dialect_is_built() {
        let call = Call {
            id: "1".into(),
            item_id: None,
            name: "f".into(),
            namespace: None,
            input: Input::Arguments("{\"a\"".into()),
        };
        let thought = Thought { summary: vec!["one".into(), "two".into()], ..Thought::default() };
        let entries = vec![
            Entry::new(Kind::Thought(thought)),
            Entry::said(Role::Assistant, "Hello."),
            Entry::new(Kind::Called(call)),
        ];
        let body = encoded(&built(entries, Ending::Stopped(Stop::EndTurn)));
        let expected = json!({
            "id": "msg_7", "type": "message", "role": "assistant", "model": "asked",
            "content": [
                {"type": "thinking", "thinking": "one\n\ntwo", "signature": ""},
                {"type": "text", "text": "Hello."},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"throughline_arguments": "{\"a\""}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {
                "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": 0,
            },
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn an_answer_that_broke_off_does_not_look_complete() {
        let body = encoded(&built(vec![Entry::said(Role::Assistant, "Hel")], Ending::Broken));
        assert_eq!((&body["stop_reason"], &body["content"][0]["text"]), (&Value::Null, &json!("Hel")));
        assert_eq!(body["error"]["type"], "api_error");
        let failed = Ending::Failed(Failure::new(FailureKind::Overloaded, "busy"));
        assert_eq!(encoded(&built(Vec::new(), failed))["error"]["type"], "overloaded_error");
    }

    #[test]
    fn an_error_with_a_good_status_is_a_failure() {
        let reply = decoded(r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#);
        assert_eq!(reply.ending, Ending::Failed(Failure::new(FailureKind::Overloaded, "m")));
    }
}
