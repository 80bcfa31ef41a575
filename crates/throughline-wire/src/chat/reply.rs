//! A whole answer, both ways.
//!
//! Only the first choice counts. An answer that came in this dialect and is still what it was goes back with
//! all its fields, under the model name that the client knows; its finish reason is corrected where it hides
//! calls. Anything else is built.

use super::WITHOUT_ID;
use super::calls::write_call;
use super::decode::top_level_fields;
use super::error::{find_failure, write_error};
use super::extras::{filled, given};
use super::finish::{decode_finish, finish_reason, settled};
use super::history::{decode_assistant, enveloped};
use super::usage::{decode_usage, write_usage};
use crate::Stamp;
use crate::json::{DecodeError, Document, Edit, Node, Writer, patch};
use throughline_core::{
    Ask, Call, Content, Dialect, Ending, Entry, Extra, Failure, FailureKind, Input, Kind, Part, Reply,
    Report, Rules, Said, Stop, Text,
};

/// Reads an answer.
pub(crate) fn decode_reply(document: &Document) -> Result<Reply, DecodeError> {
    let root = document.root().expect_object()?;
    let id = filled(root, "id");
    let failure = given(root, "error").and_then(|_| find_failure(None, root));
    let choice = match given(root, "choices") {
        Some(choices) => choices.expect_array()?.items().next(),
        None if failure.is_some() => None,
        None => {
            return Err(root.expect_field("choices").err().unwrap_or_else(|| root.error("has no choices")));
        }
    };
    let entries = choice.map_or(Ok(Vec::new()), |choice| decode_choice(choice, id.as_ref()))?;
    let ending = match (failure, choice) {
        (Some(failure), _) => Ending::Failed(failure),
        (None, Some(choice)) => decode_ending(choice, &entries),
        (None, None) => Ending::Failed(Failure::new(FailureKind::Backend, "the answer has no choices")),
    };
    Ok(Reply {
        id,
        model: filled(root, "model"),
        entries,
        ending,
        usage: root.field("usage").and_then(decode_usage),
        fields: Some((Dialect::Chat, top_level_fields(root))),
    })
}

fn decode_choice(choice: Node<'_>, id: Option<&Text>) -> Result<Vec<Entry>, DecodeError> {
    // Some servers answer with the delta of a stream although no stream was asked for.
    let Some(message) = given(choice, "message").or_else(|| given(choice, "delta")) else {
        return Ok(Vec::new());
    };
    message.expect_object()?;
    let stem = id.map_or_else(|| format!("{WITHOUT_ID}0"), |id| format!("call_{id}"));
    let held = decode_assistant(message, &stem)?;
    Ok(enveloped(held, message, 0).filter(|entry| !is_empty(entry)).collect())
}

/// Says whether the entry is there only because a message must have one; an answer need not.
fn is_empty(entry: &Entry) -> bool {
    let says_nothing = |part: &Part| part.as_text().is_some_and(|text| text.is_empty());
    entry.as_said().is_some_and(|said| said.parts.iter().all(says_nothing))
}

fn decode_ending(choice: Node<'_>, entries: &[Entry]) -> Ending {
    if let Some(failure) = given(choice, "error").and_then(|_| find_failure(None, choice)) {
        return Ending::Failed(failure);
    }
    let reason = choice.field("finish_reason").and_then(|reason| reason.as_str()).unwrap_or_default();
    settled(decode_finish(&reason), has_calls(entries), has_refusal(entries))
}

fn has_calls(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.as_call().is_some())
}

fn has_refusal(entries: &[Entry]) -> bool {
    let is_refusal = |part: &Part| matches!(part.content, Content::Refusal(_));
    entries.iter().filter_map(Entry::as_said).any(|said| said.parts.iter().any(is_refusal))
}

/// Says whether the client knows functions but no tools.
pub(super) fn is_of_old(ask: &Ask) -> bool {
    let has = |name: &str| ask.fields.iter().any(|field| field.name == name);
    ask.dialect == Dialect::Chat && has("functions") && !has("tools")
}

/// Writes an answer.
pub(crate) fn encode_reply(reply: &Reply, stamp: &Stamp, ask: &Ask) -> String {
    let mut writer = Writer::with_capacity(1024);
    writer.begin_object();
    match &reply.fields {
        Some((Dialect::Chat, fields)) if reply.entries.iter().all(|entry| entry.intact) => {
            write_as_given(&mut writer, fields, reply, stamp);
        }
        _ => write_anew(&mut writer, reply, stamp, ask),
    }
    writer.end_object();
    writer.into_string()
}

fn write_as_given(writer: &mut Writer, fields: &[Extra], reply: &Reply, stamp: &Stamp) {
    for field in fields {
        match (field.name.as_str(), &stamp.model) {
            ("model", Some(model)) => writer.field_str("model", model),
            ("choices", _) => writer.field_raw("choices", &honest_choices(&field.value, reply)),
            _ => writer.field_raw(&field.name, &field.value),
        }
    }
}

/// Returns the choices with a finish reason that tells of the calls, if the first one's did not.
fn honest_choices(choices: &Text, reply: &Reply) -> Text {
    mended_choices(choices, reply).map_or_else(|| choices.clone(), Text::from)
}

fn mended_choices(choices: &Text, reply: &Reply) -> Option<String> {
    if reply.ending != Ending::Stopped(Stop::ToolCalls) {
        return None;
    }
    let document = Document::parse(choices.as_str()).ok()?;
    let mut items = document.root().items();
    let first = items.next()?;
    if matches!(filled(first, "finish_reason").as_deref(), Some("tool_calls" | "function_call")) {
        return None;
    }
    let mended = patch(first.raw(), &[Edit::Set { name: "finish_reason", value: "\"tool_calls\"" }]).ok()?;
    let mut writer = Writer::with_capacity(choices.len() + 16);
    writer.begin_array();
    writer.raw(&mended);
    items.for_each(|choice| writer.raw(choice.raw()));
    writer.end_array();
    Some(writer.into_string())
}

fn write_anew(writer: &mut Writer, reply: &Reply, stamp: &Stamp, ask: &Ask) {
    let model = stamp.model.as_ref().or(reply.model.as_ref());
    writer.field_str("id", &answer_id(stamp));
    writer.field_str("object", "chat.completion");
    writer.field_uint("created", stamp.created_at);
    writer.field_str("model", model.map_or("", Text::as_str));
    writer.key("choices");
    writer.begin_array();
    writer.begin_object();
    writer.field_uint("index", 0);
    writer.key("message");
    let calls: Vec<&Entry> = reply.entries.iter().filter(|entry| entry.as_call().is_some()).collect();
    let of_old = is_of_old(ask) && calls.len() == 1;
    write_message(writer, reply, &calls, of_old);
    writer.field_null("logprobs");
    writer.field_str("finish_reason", finish_reason(&reply.ending, of_old, has_refusal(&reply.entries)));
    writer.end_object();
    writer.end_array();
    if let Some(usage) = &reply.usage {
        writer.key("usage");
        write_usage(writer, usage);
    }
    if let Some(failure) = failure_of(&reply.ending) {
        write_error(writer, &failure);
    }
}

/// Returns the id that a client knows an answer by.
pub(super) fn answer_id(stamp: &Stamp) -> String {
    format!("chatcmpl-{}", stamp.id)
}

/// Returns what went wrong, if the answer did not come to an end by itself.
pub(super) fn failure_of(ending: &Ending) -> Option<Failure> {
    let failed = |message, code| Failure {
        code: Some(Text::from_static(code)),
        ..Failure::new(FailureKind::Backend, Text::from_static(message))
    };
    match ending {
        Ending::Stopped(_) => None,
        Ending::Failed(failure) => Some(failure.clone()),
        Ending::Broken => Some(failed("the connection to the backend broke off", "stream_interrupted")),
        Ending::Cancelled => Some(failed("the answer was called off", "cancelled")),
    }
}

fn write_message(writer: &mut Writer, reply: &Reply, calls: &[&Entry], of_old: bool) {
    let texts = Texts::of(&reply.entries);
    writer.begin_object();
    writer.field_str("role", "assistant");
    match texts.said {
        Some(said) => writer.field_str("content", &said),
        None if calls.is_empty() && texts.refusal.is_none() => writer.field_str("content", ""),
        None => writer.field_null("content"),
    }
    match texts.refusal {
        Some(refusal) => writer.field_str("refusal", &refusal),
        None => writer.field_null("refusal"),
    }
    if let Some(reasoning) = texts.reasoning {
        writer.field_str("reasoning_content", &reasoning);
    }
    match calls {
        [] => {}
        [entry] if of_old => {
            writer.key("function_call");
            entry.as_call().into_iter().for_each(|call| write_function(writer, call));
        }
        calls => write_calls(writer, calls),
    }
    let envelope = reply.entries.iter().find_map(|entry| entry.envelope.as_ref());
    for extra in envelope
        .iter()
        .filter(|(envelope, _)| envelope.wire.dialect == Dialect::Chat)
        .flat_map(|(envelope, _)| &envelope.wire.extras)
    {
        writer.field_raw(&extra.name, &extra.value);
    }
    writer.end_object();
}

fn write_function(writer: &mut Writer, call: &Call) {
    writer.begin_object();
    writer.field_str("name", &call.name);
    writer.field_str("arguments", call.input.text());
    writer.end_object();
}

fn write_calls(writer: &mut Writer, calls: &[&Entry]) {
    let rules = Rules::of_dialect(Dialect::Chat);
    // A client is sent what the model said; there is nobody to report to.
    let mut unread = Report::default();
    writer.key("tool_calls");
    writer.begin_array();
    for entry in calls {
        let Some(call) = entry.as_call() else { continue };
        match &call.input {
            // Clients parse this text, and an empty one is no JSON.
            Input::Arguments(text) if text.is_empty() => {
                let input = Input::Arguments(Text::from_static("{}"));
                let altered = Entry { intact: false, ..(*entry).clone() };
                write_call(writer, &altered, &Call { input, ..call.clone() }, &rules, &mut unread);
            }
            _ => write_call(writer, entry, call, &rules, &mut unread),
        }
    }
    writer.end_array();
}

/// The three texts of an answer, each in one piece.
#[derive(Default)]
struct Texts {
    said: Option<String>,
    refusal: Option<String>,
    reasoning: Option<String>,
}

impl Texts {
    fn of(entries: &[Entry]) -> Self {
        let mut texts = Self::default();
        let mut follows_text = false;
        for entry in entries {
            match &entry.kind {
                Kind::Said(said) => {
                    // Blocks of one message may part in the middle of a sentence; messages do not.
                    let glued = follows_text && entry.wire.is_none();
                    texts.add_said(said, if glued { "" } else { "\n" });
                    follows_text = true;
                    continue;
                }
                Kind::Thought(thought) => {
                    let paragraphs =
                        if thought.content.is_empty() { &thought.summary } else { &thought.content };
                    paragraphs.iter().for_each(|text| append(&mut texts.reasoning, text, "\n\n"));
                }
                _ => {}
            }
            follows_text = false;
        }
        texts
    }

    fn add_said(&mut self, said: &Said, joint: &str) {
        let mut joint = joint;
        for part in &said.parts {
            match &part.content {
                Content::Text(text) => {
                    append(&mut self.said, text, joint);
                    joint = "";
                }
                Content::Refusal(text) => append(&mut self.refusal, text, "\n"),
                Content::Image(_) | Content::File(_) | Content::Opaque { .. } => {}
            }
        }
    }
}

fn append(texts: &mut Option<String>, text: &str, joint: &str) {
    let so_far = texts.get_or_insert_default();
    if needs_joint(so_far, text) {
        so_far.push_str(joint);
    }
    so_far.push_str(text);
}

/// Says whether two texts run into each other unless something is put between them.
pub(super) fn needs_joint(before: &str, after: &str) -> bool {
    !before.is_empty() && !after.is_empty() && !before.ends_with('\n') && !after.starts_with('\n')
}

#[cfg(test)]
mod tests {
    use super::super::decode_request;
    use super::*;
    use serde_json::{Value, json};
    use throughline_core::{Role, Thought, Usage};

    fn decode(body: &str) -> Reply {
        decode_reply(&Document::parse(body).unwrap()).unwrap()
    }

    fn stamp() -> Stamp {
        Stamp { id: "7".into(), created_at: 17, model: Some("mine".into()), input_tokens: None }
    }

    fn ask(body: &Value) -> Ask {
        decode_request(&Document::parse(body.to_string()).unwrap()).unwrap()
    }

    fn encode(reply: &Reply) -> Value {
        serde_json::from_str(&encode_reply(reply, &stamp(), &ask(&json!({"messages": []})))).unwrap()
    }

    fn reply(entries: Vec<Entry>, ending: Ending) -> Reply {
        Reply { id: None, model: Some("theirs".into()), entries, ending, usage: None, fields: None }
    }

    fn called(id: &str, input: Input) -> Entry {
        let call = Call { id: id.into(), item_id: None, name: "f".into(), namespace: None, input };
        Entry::new(Kind::Called(call))
    }

    #[test]
    fn an_answer_of_this_dialect_keeps_its_fields() {
        let body = include_str!("../../tests/golden/responses/chat/unknown-fields.json");
        let mut expected: Value = serde_json::from_str(body).unwrap();
        expected["model"] = json!("mine");
        let reply = decode(body);
        assert_eq!(reply.ending, Ending::Stopped(Stop::Other("acme_reason".into())));
        assert_eq!(encode(&reply), expected);
    }

    #[test]
    fn a_finish_reason_that_hides_calls_is_corrected_in_place() {
        let body = include_str!("../../tests/golden/responses/chat/deviations-lean.json");
        let reply = decode(body);
        assert_eq!(reply.ending, Ending::Stopped(Stop::ToolCalls));
        let ids: Vec<_> =
            reply.entries.iter().filter_map(Entry::as_call).map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["call_without_id_0_0", "call_without_id_0_1"]);
        assert_eq!(encode(&reply)["choices"][0]["finish_reason"], json!("tool_calls"));
    }

    #[test]
    fn an_error_in_a_200_is_a_failure() {
        let reply = decode(include_str!("../../tests/golden/responses/chat/deviations-error-in-200.json"));
        let Ending::Failed(failure) = reply.ending else { panic!("failed") };
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (FailureKind::Backend, "Provider returned error")
        );
        assert!(matches!(decode(r#"{"choices":[]}"#).ending, Ending::Failed(_)));
        let error = decode_reply(&Document::parse("{}").unwrap()).unwrap_err();
        assert_eq!(error.path, "choices");
    }

    #[test]
    fn a_refusal_is_told_from_an_answer() {
        let reply = decode(include_str!("../../tests/golden/responses/chat/refusal.json"));
        assert_eq!(reply.ending, Ending::Stopped(Stop::Refusal));
    }

    #[test]
    fn usage_counts_the_cached_tokens_among_the_prompt() {
        let reply = decode(include_str!("../../tests/golden/responses/chat/usage-details.json"));
        let usage =
            Usage { input: 12_300, cache_read: 10_240, cache_written: 2_048, output: 140, reasoning: 128 };
        assert_eq!(reply.usage, Some(usage));
    }

    #[test]
    fn an_answer_of_another_dialect_is_built() {
        let thought = Thought { content: vec!["Hm.".into()], ..Thought::default() };
        let entries = vec![
            Entry::new(Kind::Thought(thought)),
            Entry::said(Role::Assistant, "One"),
            Entry::said(Role::Assistant, " two."),
            called("a", Input::Arguments("".into())),
            Entry::said(Role::Assistant, "Three."),
            called("b", Input::Freeform("*** x".into())),
        ];
        assert_eq!(
            encode(&reply(entries, Ending::Stopped(Stop::ToolCalls))),
            json!({
                "id": "chatcmpl-7", "object": "chat.completion", "created": 17, "model": "mine",
                "choices": [{
                    "index": 0,
                    "message": {
                        "role": "assistant", "content": "One two.\nThree.", "refusal": null, "reasoning_content": "Hm.",
                        "tool_calls": [
                            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                            {"id": "b", "type": "custom", "custom": {"name": "f", "input": "*** x"}},
                        ],
                    },
                    "logprobs": null,
                    "finish_reason": "tool_calls",
                }],
            })
        );
    }

    #[test]
    fn an_answer_that_broke_off_does_not_look_complete() {
        for ending in
            [Ending::Broken, Ending::Cancelled, Ending::Failed(Failure::new(FailureKind::Overloaded, "m"))]
        {
            let sent = encode(&reply(vec![Entry::said(Role::Assistant, "Half")], ending));
            assert_eq!(sent["choices"][0]["finish_reason"], json!("length"));
            assert_eq!(sent["choices"][0]["message"]["content"], json!("Half"));
            assert!(sent["error"]["message"].is_string());
        }
    }

    #[test]
    fn a_client_of_the_time_before_tools_gets_a_function_call() {
        let ask = ask(&json!({"messages": [], "functions": [{"name": "f"}]}));
        let reply = reply(vec![called("a", Input::Arguments("{}".into()))], Ending::Stopped(Stop::ToolCalls));
        let sent: Value = serde_json::from_str(&encode_reply(&reply, &stamp(), &ask)).unwrap();
        assert_eq!(sent["choices"][0]["message"]["function_call"], json!({"name": "f", "arguments": "{}"}));
        assert_eq!(sent["choices"][0]["finish_reason"], json!("function_call"));
    }
}
