//! Whole answers, both ways.
//!
//! An answer of this dialect that goes to a client of this dialect keeps every field; only the model name
//! becomes the client's, and items that were altered on the way are written anew. Any other answer gets the
//! whole 31-field object.

use super::error::decode_stream_error;
use super::output_item::{ItemStatus, OutputItem};
use super::response_object::{BROKEN_CODE, CANCELLED_CODE, ResponseObject, Verdict, write_usage};
use super::{fields, item};
use crate::Stamp;
use crate::json::{DecodeError, Document, Node, Writer};
use throughline_core::{
    Ask, Content, Dialect, Ending, Entry, Extra, Kind, Reply, Stop, Text, Usage, settled_stop,
};

/// What the items of an answer say about how it ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// Tools were called.
    pub calls: bool,
    /// The model refused in words.
    pub refused: bool,
}

/// Reads the body of an answer.
pub(crate) fn decode_reply(document: &Document) -> Result<Reply, DecodeError> {
    let root = document.root().expect_object()?;
    if !["object", "output", "status", "error"].iter().any(|name| root.field(name).is_some()) {
        return Err(root.error("is no response"));
    }
    let entries = fields::items(root, "output")?
        .zip(0..)
        .map(|(node, index)| item::decode_item(node, index))
        .collect::<Result<Vec<Entry>, _>>()?;
    Ok(Reply {
        id: fields::lenient_text(root, "id"),
        model: fields::lenient_text(root, "model"),
        ending: ending_of(root, "completed", facts_of(&entries)),
        entries,
        usage: fields::given(root, "usage").map(usage_of),
        fields: Some((Dialect::Responses, fields::all(root))),
    })
}

fn facts_of(entries: &[Entry]) -> Facts {
    let refuses = |entry: &Entry| {
        entry
            .as_said()
            .is_some_and(|said| said.parts.iter().any(|part| matches!(part.content, Content::Refusal(_))))
    };
    Facts {
        calls: entries.iter().any(|entry| matches!(entry.kind, Kind::Called(_))),
        refused: entries.iter().any(refuses),
    }
}

/// Reads how a response ended; `otherwise` is the status of one that does not say.
pub(super) fn ending_of(response: Node<'_>, otherwise: &str, facts: Facts) -> Ending {
    let error = fields::given(response, "error");
    let status = fields::lenient_text(response, "status");
    match status.as_deref().unwrap_or(if error.is_some() { "failed" } else { otherwise }) {
        "failed" => failed_ending(error.unwrap_or(response)),
        "cancelled" => Ending::Cancelled,
        "incomplete" => Ending::Stopped(incomplete_stop(response)),
        // Answered in the background: there is more to come, but not here.
        "queued" | "in_progress" => Ending::Stopped(Stop::Paused),
        _ if facts.refused && !facts.calls => Ending::Stopped(Stop::Refusal),
        _ => Ending::Stopped(settled_stop(Stop::EndTurn, facts.calls)),
    }
}

/// Reads why a response failed; what was called off or broken off further back comes out as that.
fn failed_ending(error: Node<'_>) -> Ending {
    let failure = decode_stream_error(error);
    match failure.code.as_deref() {
        Some(CANCELLED_CODE) => Ending::Cancelled,
        Some(BROKEN_CODE) => Ending::Broken,
        _ => Ending::Failed(failure),
    }
}

fn incomplete_stop(response: Node<'_>) -> Stop {
    let details = fields::given(response, "incomplete_details");
    let reason = details.and_then(|details| fields::lenient_text(details, "reason"));
    match reason.as_deref() {
        Some("max_output_tokens" | "max_tokens") | None => Stop::MaxTokens,
        Some("content_filter") => Stop::Filtered,
        Some("paused") => Stop::Paused,
        Some(other) => Stop::Other(Text::from(other)),
    }
}

/// Reads what an answer cost; servers leave out whatever they do not count.
pub(super) fn usage_of(usage: Node<'_>) -> Usage {
    let count = |node: Node<'_>, name: &str| node.field(name).and_then(|value| value.as_u64()).unwrap_or(0);
    let detail = |details: &str, name: &str| usage.field(details).map_or(0, |details| count(details, name));
    Usage {
        input: count(usage, "input_tokens"),
        cache_read: detail("input_tokens_details", "cached_tokens"),
        cache_written: detail("input_tokens_details", "cache_write_tokens"),
        output: count(usage, "output_tokens"),
        reasoning: detail("output_tokens_details", "reasoning_tokens"),
    }
}

/// Writes the body of an answer to `ask`.
pub(crate) fn encode_reply(reply: &Reply, stamp: &Stamp, ask: &Ask) -> String {
    let verdict = Verdict::of(&reply.ending, facts_of(&reply.entries).refused);
    let mut object = ResponseObject::new(stamp, ask);
    object.learn_model(reply.model.as_ref().or(ask.model.as_ref()));
    let mut writer = Writer::with_capacity(4096);
    match &reply.fields {
        Some((Dialect::Responses, fields)) => write_own(&mut writer, reply, fields, stamp, &object, &verdict),
        _ => {
            let items = output_items(reply, stamp, verdict.is_complete());
            object.write(&mut writer, &verdict, reply.usage, |writer| write_output(writer, &items));
        }
    }
    writer.into_string()
}

/// Writes an answer of this dialect as it came, with what it must have and its server left out.
fn write_own(
    writer: &mut Writer,
    reply: &Reply,
    fields: &[Extra],
    stamp: &Stamp,
    object: &ResponseObject,
    verdict: &Verdict,
) {
    writer.begin_object();
    for field in fields {
        match (field.name.as_str(), &stamp.model) {
            ("model", Some(model)) => writer.field_str("model", model),
            ("output", _) => {
                writer.key("output");
                write_output(writer, &output_items(reply, stamp, true));
            }
            ("usage", _) if !field.value.contains("_details") && reply.usage.is_some() => {
                write_usage(writer, reply.usage);
            }
            _ => writer.field_raw(&field.name, &field.value),
        }
    }
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    object.write_missing(writer, verdict, reply.usage, has);
    writer.end_object();
}

/// Returns the items of an answer; where it was cut off, the last one was.
fn output_items(reply: &Reply, stamp: &Stamp, complete: bool) -> Vec<OutputItem> {
    let mut items: Vec<OutputItem> = Vec::with_capacity(reply.entries.len());
    for entry in &reply.entries {
        if let Some(mut item) = OutputItem::of_entry(entry, &stamp.id, items.len()) {
            item.status = ItemStatus::Completed;
            items.push(item);
        }
    }
    if let Some(last) = items.last_mut().filter(|_| !complete) {
        last.status = ItemStatus::Incomplete;
    }
    items
}

fn write_output(writer: &mut Writer, items: &[OutputItem]) {
    writer.begin_array();
    items.iter().for_each(|item| item.write(writer));
    writer.end_array();
}

#[cfg(test)]
mod tests {
    use super::super::conformance::check_response;
    use super::super::decode::decode_request;
    use super::*;
    use serde_json::{Value, json};
    use throughline_core::{Call, Failure, FailureKind, Input, Part, Role, Said};

    fn stamp() -> Stamp {
        Stamp { id: "x1".into(), created_at: 7, model: Some("asked".into()), input_tokens: None }
    }

    fn ask(json: &str) -> Ask {
        decode_request(&Document::parse(json).unwrap()).unwrap()
    }

    fn decode(json: &str) -> Reply {
        decode_reply(&Document::parse(json).unwrap()).unwrap()
    }

    fn reply(entries: Vec<Entry>, ending: Ending) -> Reply {
        Reply { id: None, model: Some("real".into()), entries, ending, usage: None, fields: None }
    }

    fn encode(reply: &Reply, ask: &Ask) -> Value {
        serde_json::from_str(&encode_reply(reply, &stamp(), ask)).unwrap()
    }

    fn call(input: Input) -> Entry {
        let name = "f".into();
        Entry::new(Kind::Called(Call { id: "c1".into(), item_id: None, name, namespace: None, input }))
    }

    #[test]
    fn a_lean_answer_is_read() {
        let reply = decode(include_str!("../../tests/golden/responses/responses/deviations-lean.json"));
        assert_eq!(reply.ending, Ending::Stopped(Stop::ToolCalls));
        assert_eq!(reply.usage, Some(Usage { input: 9, output: 3, ..Usage::default() }));
        assert_eq!(reply.entries.len(), 2);
    }

    #[test]
    fn a_lean_answer_is_passed_on_whole() {
        let reply = decode(include_str!("../../tests/golden/responses/responses/deviations-lean.json"));
        let sent = encode(&reply, &ask("{}"));
        check_response(&sent);
        assert_eq!((&sent["id"], &sent["status"]), (&json!("resp_1"), &json!("completed")));
        assert_eq!(sent["usage"]["total_tokens"], 12);
    }

    #[test]
    fn statuses_become_endings() {
        let ending = |json| decode(json).ending;
        let incomplete = r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}"#;
        assert_eq!(ending(incomplete), Ending::Stopped(Stop::Filtered));
        assert_eq!(ending(r#"{"status":"incomplete"}"#), Ending::Stopped(Stop::MaxTokens));
        assert_eq!(ending(r#"{"status":"in_progress"}"#), Ending::Stopped(Stop::Paused));
        assert_eq!(ending(r#"{"status":"cancelled"}"#), Ending::Cancelled);
        let failed = r#"{"error":{"code":"rate_limit_exceeded","message":"m"}}"#;
        let Ending::Failed(failure) = ending(failed) else { panic!("not failed") };
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::RateLimited, "m"));
        let refusal = r#"{"output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}"#;
        assert_eq!(ending(refusal), Ending::Stopped(Stop::Refusal));
    }

    #[test]
    fn an_own_answer_keeps_every_field_but_the_model() {
        let body = include_str!("../../tests/golden/responses/responses/unknown-fields.json");
        let mut expected: Value = serde_json::from_str(body).unwrap();
        expected["model"] = json!("asked");
        assert_eq!(encode(&decode(body), &ask("{}")), expected);
    }

    #[test]
    fn an_own_answer_with_a_renamed_call_is_written_anew_only_there() {
        let body = r#"{"id":"resp_1","x":1,"output":[{"type":"reasoning","id":"rs_1","summary":[],"y":2},
            {"type":"function_call","id":"fc_1","call_id":"c","name":"sent","arguments":"{}","z":3}]}"#;
        let mut reply = decode(body);
        let Kind::Called(call) = &mut reply.entries[1].kind else { panic!("no call") };
        call.name = "asked".into();
        reply.entries[1].intact = false;
        let sent = encode(&reply, &ask("{}"));
        assert_eq!(sent["x"], 1);
        let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "y": 2});
        assert_eq!(sent["output"][0], reasoning);
        assert_eq!(
            sent["output"][1],
            json!({"type": "function_call", "id": "fc_x1_1", "status": "completed", "call_id": "c",
                "name": "asked", "arguments": "{}", "z": 3})
        );
    }

    #[test]
    fn a_foreign_answer_gets_all_31_fields_and_the_request_is_repeated() {
        let ask = ask(
            r#"{"model":"m","input":"hi","instructions":"i","previous_response_id":"resp_0","store":false,
                "tools":[{"type":"function","name":"f"},{"type":"web_search"}],"temperature":0.20,
                "tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}]},
                "text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},
                "reasoning":{"effort":"low"},"metadata":{"a":"b"},"safety_identifier":"s","truncation":"auto"}"#,
        );
        let mut reply = reply(
            vec![Entry::said(Role::Assistant, "hello"), call(Input::Arguments("".into()))],
            Ending::Stopped(Stop::ToolCalls),
        );
        reply.usage = Some(Usage { input: 10, cache_read: 4, output: 3, reasoning: 1, cache_written: 0 });
        let sent = encode(&reply, &ask);
        check_response(&sent);
        assert_eq!(
            (&sent["id"], &sent["model"], &sent["status"]),
            (&json!("resp_x1"), &json!("asked"), &json!("completed"))
        );
        assert_eq!(sent["output"][0]["content"][0]["text"], "hello");
        assert_eq!(sent["output"][1]["arguments"], "{}");
        assert_eq!(
            sent["tools"][0],
            json!({"type": "function", "name": "f", "description": null, "parameters": null, "strict": null})
        );
        assert_eq!(sent["tool_choice"]["mode"], "auto");
        assert_eq!(sent["text"]["format"]["strict"], false);
        assert_eq!(sent["reasoning"], json!({"effort": "low", "summary": null}));
        assert_eq!(sent["usage"]["total_tokens"], 13);
        assert_eq!((&sent["previous_response_id"], &sent["instructions"]), (&json!("resp_0"), &json!("i")));
        assert_eq!(
            (&sent["temperature"], &sent["truncation"], &sent["store"]),
            (&json!(0.2), &json!("auto"), &json!(false))
        );
    }

    #[test]
    fn no_ending_but_a_good_one_looks_completed() {
        let failure = Failure::new(FailureKind::Overloaded, "busy");
        let endings = [
            (Ending::Stopped(Stop::MaxTokens), "incomplete"),
            (Ending::Stopped(Stop::ContextWindow), "incomplete"),
            (Ending::Stopped(Stop::Filtered), "incomplete"),
            (Ending::Stopped(Stop::Refusal), "incomplete"),
            (Ending::Stopped(Stop::Other("odd".into())), "incomplete"),
            (Ending::Failed(failure), "failed"),
            (Ending::Broken, "failed"),
            (Ending::Cancelled, "cancelled"),
        ];
        for (ending, status) in endings {
            let sent = encode(&reply(vec![Entry::said(Role::Assistant, "half")], ending), &ask("{}"));
            check_response(&sent);
            assert_eq!(sent["status"], status);
            assert_eq!(sent["output"][0]["status"], "incomplete");
        }
    }

    #[test]
    fn a_refusal_in_words_is_a_complete_answer() {
        let part = Part { content: Content::Refusal("no".into()), wire: None };
        let said = Said { role: Role::Assistant, parts: vec![part], standing: false };
        let sent =
            encode(&reply(vec![Entry::new(Kind::Said(said))], Ending::Stopped(Stop::Refusal)), &ask("{}"));
        check_response(&sent);
        assert_eq!(sent["status"], "completed");
        assert_eq!(sent["output"][0]["content"], json!([{"type": "refusal", "refusal": "no"}]));
    }

    #[test]
    fn an_answer_to_a_foreign_request_has_the_defaults() {
        let mut ask = ask(r#"{"model":"m","tools":[{"type":"function","name":"f"}]}"#);
        ask.dialect = Dialect::Chat;
        let sent = encode(&reply(Vec::new(), Ending::Stopped(Stop::EndTurn)), &ask);
        check_response(&sent);
        assert_eq!((&sent["tools"], &sent["output"]), (&json!([]), &json!([])));
    }
}
