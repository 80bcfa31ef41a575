//! A prompt, written as a request of this dialect.
//!
//! A request that came in this dialect is written field by field as it came, and only what the prompt changed
//! is written anew. One that came in another dialect is written from the canonical model; what has no
//! counterpart here is reported.

use super::decode::declares_tools;
use super::request_item::ItemWriter;
use super::{settings, tools};
use crate::json::{Document, Writer};
use crate::length::expected_length;
use throughline_core::{
    Action, Dialect, Entry, Extra, Kind, Part, Prompt, Report, SentPlace, Text, Tool, ToolChoice,
};

/// Writes the body of a request.
pub(crate) fn encode_request(prompt: &Prompt<'_>, report: &mut Report) -> String {
    let mut writer = Writer::with_capacity(expected_length(prompt));
    writer.begin_object();
    land_instructions(prompt, report);
    if prompt.stays_in_dialect() {
        write_own(&mut writer, prompt, report);
    } else {
        write_translated(&mut writer, prompt, report);
    }
    writer.end_object();
    writer.into_string()
}

fn write_own(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    for field in &prompt.ask.fields {
        write_own_field(writer, field, prompt, report);
    }
    let is_new = |name: &str| prompt.ask.fields.iter().all(|field| field.name != name);
    if is_new("model") {
        write_model(writer, prompt);
    }
    if is_new("instructions") && instructions_at(prompt).is_some() {
        write_instructions(writer, prompt);
    }
    if is_new("input") && has_conversation(prompt) {
        write_input(writer, prompt, report);
    }
    if is_new("tools")
        && !tools::are_untouched(prompt)
        && prompt.tools.iter().any(|tool| !is_declared(prompt, tool))
    {
        write_tools(writer, prompt, report);
    }
    if is_new("tool_choice")
        && let Some(choice) = &prompt.tool_choice
    {
        tools::write_choice(writer, choice, prompt, report);
    }
}

fn write_own_field(writer: &mut Writer, field: &Extra, prompt: &Prompt<'_>, report: &mut Report) {
    match field.name.as_str() {
        "model" if prompt.model != prompt.ask.model => write_model(writer, prompt),
        "instructions" if !same_standing(prompt) => write_instructions(writer, prompt),
        "input" if !is_input_untouched(prompt, field) => write_input(writer, prompt, report),
        "input" => {
            land_untouched(prompt, report);
            writer.field_raw(&field.name, &field.value);
        }
        "tools" if !tools::are_untouched(prompt) => write_tools(writer, prompt, report),
        "tool_choice" if prompt.tool_choice != prompt.ask.tool_choice => {
            if let Some(choice) = &prompt.tool_choice {
                tools::write_choice(writer, choice, prompt, report);
            }
        }
        // Whoever has put the earlier answers in front of the request takes the reference away.
        "previous_response_id" if prompt.ask.previous.is_none() && field.value != "null" => {}
        "conversation" if prompt.ask.conversation.is_none() && field.value != "null" => {}
        "reasoning" if prompt.without_reasoning => {}
        "include" if prompt.without_reasoning => write_include(writer, field),
        _ => writer.field_raw(&field.name, &field.value),
    }
}

/// Writes `include` without what only makes sense together with reasoning.
fn write_include(writer: &mut Writer, field: &Extra) {
    let Ok(document) = Document::parse(field.value.as_str()) else { return };
    writer.key("include");
    writer.begin_array();
    for item in document.root().items().filter(|item| !item.is_str("reasoning.encrypted_content")) {
        writer.raw(item.raw());
    }
    writer.end_array();
}

fn write_translated(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    write_model(writer, prompt);
    write_instructions(writer, prompt);
    write_input(writer, prompt, report);
    if !prompt.tools.is_empty() {
        write_tools(writer, prompt, report);
    }
    match &prompt.tool_choice {
        Some(ToolChoice::Auto | ToolChoice::None) if prompt.tools.is_empty() => {}
        Some(_) if prompt.tools.is_empty() => {
            report.field(Action::Dropped, "tool_choice", "there are no tools to choose from");
        }
        Some(choice) => tools::write_choice(writer, choice, prompt, report),
        None => {}
    }
    settings::write_settings(writer, prompt, report);
    if let Some(previous) = &prompt.ask.previous {
        writer.field_str("previous_response_id", previous);
    }
    if prompt.ask.stream {
        writer.field_bool("stream", true);
    }
}

fn write_model(writer: &mut Writer, prompt: &Prompt<'_>) {
    if let Some(model) = &prompt.model {
        writer.field_str("model", model);
    }
}

fn write_tools(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    writer.key("tools");
    tools::write_tools(writer, prompt, |tool| is_declared(prompt, tool), report);
}

/// Says whether an item of the conversation puts the tool on offer, so that `tools` must not.
fn is_declared(prompt: &Prompt<'_>, tool: &Tool) -> bool {
    let Some(wire) = tool.wire.as_ref().filter(|wire| wire.dialect == Dialect::Responses) else {
        return false;
    };
    prompt.entries.iter().any(|entry| {
        matches!(&entry.kind, Kind::Opaque { kind } if declares_tools(kind))
            && entry.wire.as_ref().is_some_and(|item| item.text.contains(wire.text.as_str()))
    })
}

fn is_standing(entry: &Entry) -> bool {
    entry.as_said().is_some_and(|said| said.standing)
}

fn has_conversation(prompt: &Prompt<'_>) -> bool {
    prompt.entries.len() > usize::from(instructions_at(prompt).is_some())
}

/// Returns which entry goes into `instructions`: the only one that stands, if it is one text.
///
/// Several, or one of several parts, stay apart as messages at the head of the conversation.
fn instructions_at(prompt: &Prompt<'_>) -> Option<usize> {
    let mut standing = prompt.entries.iter().enumerate().filter(|(_, entry)| is_standing(entry));
    let (at, only) = standing.next()?;
    (standing.next().is_none() && instructions_text(only).is_some()).then_some(at)
}

fn instructions_text(entry: &Entry) -> Option<&Text> {
    match entry.as_said()?.parts.as_slice() {
        [only] => Part::as_text(only),
        _ => None,
    }
}

fn same_standing(prompt: &Prompt<'_>) -> bool {
    let now = prompt.entries.iter().filter(|entry| is_standing(entry));
    now.eq(prompt.ask.entries.iter().filter(|entry| is_standing(entry)))
}

fn write_instructions(writer: &mut Writer, prompt: &Prompt<'_>) {
    let entry = instructions_at(prompt).and_then(|at| prompt.entries.get(at));
    if let Some(text) = entry.and_then(instructions_text) {
        writer.field_str("instructions", text);
    }
}

/// Says whether `input` was no list of items and still says the same.
fn is_input_untouched(prompt: &Prompt<'_>, field: &Extra) -> bool {
    if !has_conversation(prompt) {
        return field.value == "null"
            || field.value.starts_with('[') && prompt.ask.entries.iter().all(is_standing);
    }
    // A string is one message: with a history in front of it, it is no longer all that was said.
    let said =
        |entries: &[Entry]| entries.iter().filter(|entry| !is_standing(entry)).cloned().collect::<Vec<_>>();
    field.value.starts_with('"')
        && prompt.entries.iter().filter(|entry| !is_standing(entry)).count() == 1
        && said(&prompt.entries) == said(&prompt.ask.entries)
}

fn write_input(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let beside = instructions_at(prompt);
    writer.key("input");
    writer.begin_array();
    let mut items = ItemWriter::new(writer, prompt.rules, report);
    for (at, entry) in prompt.entries.iter().enumerate() {
        if Some(at) != beside {
            items.write(entry);
        }
    }
    writer.end_array();
}

/// Notes what `instructions` comes from; empty ones say nothing.
fn land_instructions(prompt: &Prompt<'_>, report: &mut Report) {
    let Some(entry) = instructions_at(prompt).and_then(|at| prompt.entries.get(at)) else { return };
    if instructions_text(entry).is_some_and(|text| !text.is_empty()) {
        report.provenance.land(SentPlace::beside(), &entry.trace);
    }
}

/// Notes what an input comes from that is a string, which is one message.
fn land_untouched(prompt: &Prompt<'_>, report: &mut Report) {
    for entry in prompt.entries.iter().filter(|entry| !is_standing(entry)) {
        report.provenance.land(SentPlace::within(0, 0), &entry.trace);
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::decode_request;
    use super::*;
    use serde_json::{Value, json};
    use throughline_core::{
        Ask, Call, Content, Input, Media, NameMap, Outcome, Reasoning, Return, Role, Rules, Said, Seal,
        Settings, Subject, Thought, ToolForm,
    };

    fn own(json: &str) -> Ask {
        decode_request(&Document::parse(json).unwrap()).unwrap()
    }

    fn foreign(entries: Vec<Entry>) -> Ask {
        Ask { model: Some("m".into()), ..Ask::of(Dialect::Chat, entries) }
    }

    /// The prompt that says exactly what the request says: what is tested here is only how it is written.
    fn identity<'a>(ask: &'a Ask, rules: &'a Rules) -> Prompt<'a> {
        Prompt {
            ask,
            rules,
            model: ask.model.clone(),
            entries: ask.entries.clone(),
            tools: ask.tools.clone(),
            tool_choice: ask.tool_choice.clone(),
            without_reasoning: false,
            names: NameMap::default(),
            ids: NameMap::default(),
        }
    }

    fn encoded_with(ask: &Ask, change: impl FnOnce(&mut Prompt<'_>)) -> (Value, Report) {
        let rules = Rules::of_dialect(Dialect::Responses);
        let mut report = Report::default();
        let mut prompt = identity(ask, &rules);
        change(&mut prompt);
        let body = encode_request(&prompt, &mut report);
        (serde_json::from_str(&body).unwrap(), report)
    }

    fn encoded(ask: &Ask) -> (Value, Report) {
        encoded_with(ask, |_| ())
    }

    fn standing(text: &str) -> Entry {
        Entry::new(Kind::Said(Said { role: Role::System, parts: vec![Part::text(text)], standing: true }))
    }

    fn call(id: &str, input: Input) -> Entry {
        let call =
            Call { id: id.into(), item_id: Some("fc_9".into()), name: "f".into(), namespace: None, input };
        Entry::new(Kind::Called(call))
    }

    fn result(id: &str, parts: Vec<Part>, outcome: Outcome) -> Entry {
        let call_id = Some(id.into());
        Entry::new(Kind::Returned(Return {
            call_id,
            item_id: None,
            name: None,
            parts,
            outcome,
            freeform: false,
        }))
    }

    #[test]
    fn an_untouched_request_goes_out_as_it_came() {
        let bodies = [
            r#"{"x":1.10,"model":"m","input":"hi","instructions":"","tools":[],"stop":["a"],"user":null}"#,
            r#"{"input":[],"previous_response_id":"resp_1","tools":[{"type":"file_search"}],
                "tool_choice":{"type":"file_search"}}"#,
            r#"{"input":null,"instructions":"be brief","prompt":{"id":"p"}}"#,
            r#"{"instructions":"a","input":[{"role":"user","content":"hi","x":[1e0]},{"id":"msg_1"},
                {"type":"acme:call","n":2.50},{"type":"message","role":"critic","content":[]}],
                "tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"c"}]},{"type":"acme:t"}]}"#,
        ];
        for body in bodies {
            let (sent, report) = encoded(&own(body));
            assert_eq!(sent, serde_json::from_str::<Value>(body).unwrap());
            assert!(report.changes.is_empty(), "{report:?}");
        }
    }

    #[test]
    fn recorded_requests_go_out_as_they_came() {
        let bodies = [
            include_str!("../../tests/golden/requests/responses/codex-session.json"),
            include_str!("../../tests/golden/requests/responses/codex-additional-tools.json"),
            include_str!("../../tests/golden/requests/responses/unknown-fields-and-items.json"),
            include_str!("../../tests/golden/requests/responses/empty-content.json"),
            include_str!("../../tests/golden/requests/responses/item-reference.json"),
            include_str!("../../tests/golden/requests/responses/mcp-items.json"),
        ];
        for body in bodies {
            let (sent, report) = encoded(&own(body));
            assert_eq!(sent, serde_json::from_str::<Value>(body).unwrap());
            assert!(report.changes.is_empty(), "{report:?}");
        }
    }

    #[test]
    fn another_model_changes_nothing_else() {
        let ask = own(r#"{"model":"a","input":"hi","y":[1]}"#);
        let (sent, _) = encoded_with(&ask, |prompt| prompt.model = Some("b".into()));
        assert_eq!(sent, json!({"model": "b", "input": "hi", "y": [1]}));
    }

    #[test]
    fn a_string_that_gains_a_neighbour_becomes_items() {
        let ask = own(r#"{"input":"hi"}"#);
        let (sent, _) =
            encoded_with(&ask, |prompt| prompt.entries.insert(0, Entry::said(Role::Developer, "d")));
        assert_eq!(
            sent["input"],
            json!([{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}])
        );
    }

    #[test]
    fn an_altered_item_loses_its_id_and_keeps_its_extras() {
        // With `store: false` the provider refuses the id of an item whose reasoning was left out.
        let ask = own(
            r#"{"input":[{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","x":1.10}]}"#,
        );
        let (sent, _) = encoded_with(&ask, |prompt| prompt.entries[0].intact = false);
        assert_eq!(
            sent["input"],
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "x": 1.10}])
        );
    }

    #[test]
    fn an_item_that_came_twice_goes_out_with_its_id_once() {
        let ask = own(
            r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"assistant","id":"msg_1","content":"a"},
                {"type":"reasoning","id":"rs_1","summary":[]},{"role":"assistant","id":"msg_1","content":"a"},
                {"role":"user","content":"b"},{"role":"user","content":"b"}]}"#,
        );
        let (sent, report) = encoded(&ask);
        let ids: Vec<_> = sent["input"].as_array().unwrap().iter().map(|item| item["id"].as_str()).collect();
        assert_eq!(ids, [Some("rs_1"), Some("msg_1"), None, None, None, None]);
        assert_eq!(report.count(Action::Repaired), 2);
    }

    #[test]
    fn without_reasoning_neither_the_request_nor_its_sealed_form_is_asked_for() {
        let ask = own(
            r#"{"reasoning":{"effort":"high"},"include":["reasoning.encrypted_content","x"],"input":[]}"#,
        );
        let (sent, _) = encoded_with(&ask, |prompt| prompt.without_reasoning = true);
        assert_eq!(sent, json!({"include": ["x"], "input": []}));
    }

    #[test]
    fn a_resolved_reference_to_an_earlier_answer_is_not_sent() {
        let mut ask = own(r#"{"input":"hi","previous_response_id":"resp_1"}"#);
        ask.previous = None;
        assert_eq!(encoded(&ask).0, json!({"input": "hi"}));
    }

    #[test]
    fn touched_tools_are_grouped_by_namespace_again() {
        let ask = own(
            r#"{"input":[{"type":"additional_tools","tools":[{"type":"function","name":"x"}]}],"tools":[
                {"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"a","y":1},
                {"type":"function","name":"b"}]},{"type":"web_search"}]}"#,
        );
        let (sent, _) = encoded_with(&ask, |prompt| {
            prompt.tools[0].name = "renamed".into();
            prompt.tools[0].intact = false;
        });
        assert_eq!(
            sent["tools"],
            json!([{"type": "namespace", "name": "n", "description": "d", "tools": [
                {"type": "function", "name": "renamed", "parameters": {"type": "object", "properties": {}},
                    "strict": false, "y": 1},
                {"type": "function", "name": "b"}]}, {"type": "web_search"}])
        );
    }

    #[test]
    fn a_foreign_conversation_is_written_as_items() {
        let entries = vec![
            standing("be brief"),
            Entry::said(Role::User, "hi"),
            Entry::said(Role::Assistant, "well"),
            call("c1", Input::Arguments(r#"{"a": 1}"#.into())),
            call("c2", Input::Freeform("patch".into())),
            call("c3", Input::Arguments("".into())),
            result("c1", vec![Part::text("one")], Outcome::Error),
            result("c2", vec![Part::text("a"), Part::text("b")], Outcome::Ok),
            result("c3", Vec::new(), Outcome::Ok),
        ];
        let (sent, _) = encoded(&foreign(entries));
        assert_eq!(
            sent,
            json!({"model": "m", "instructions": "be brief", "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": "well", "annotations": []}]},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\": 1}"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "f", "input": "patch"},
                {"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "[tool error]\none"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": [
                    {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
                {"type": "function_call_output", "call_id": "c3", "output": ""}],
                "store": false})
        );
    }

    #[test]
    fn a_foreign_request_may_go_on_from_an_answer_that_is_kept() {
        let mut ask = foreign(vec![result("c1", vec![Part::text("one")], Outcome::Ok)]);
        ask.previous = Some("resp_1".into());
        ask.settings.store = Some(true);
        let (sent, _) = encoded(&ask);
        assert_eq!((&sent["previous_response_id"], &sent["store"]), (&json!("resp_1"), &json!(true)));
    }

    #[test]
    fn a_backend_without_custom_tools_gets_functions_throughout() {
        let ask = own(
            r#"{"tools":[{"type":"custom","name":"f","description":"d"}],"tool_choice":{"type":"custom","name":"f"},
                "input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"},
                {"type":"custom_tool_call_output","call_id":"c","output":"y"}]}"#,
        );
        let rules = Rules { custom_tools: false, ..Rules::of_dialect(Dialect::Responses) };
        let sent = encode_request(&identity(&ask, &rules), &mut Report::default());
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["tools"][0]["type"], "function");
        assert_eq!(sent["input"][0]["arguments"], r#"{"throughline_input":"x"}"#);
        assert_eq!(sent["input"][1]["type"], "function_call_output");
    }

    #[test]
    fn several_standing_texts_stay_apart_as_system_messages() {
        let (sent, _) = encoded(&foreign(vec![standing("a"), standing("b"), Entry::said(Role::User, "hi")]));
        assert_eq!(sent.get("instructions"), None);
        assert_eq!(
            (&sent["input"][0]["role"], &sent["input"][1]["role"]),
            (&json!("system"), &json!("system"))
        );
    }

    #[test]
    fn foreign_settings_are_translated_repaired_or_reported() {
        let mut ask = foreign(vec![Entry::said(Role::User, "hi")]);
        ask.settings = Settings {
            max_output_tokens: Some("5".into()),
            top_k: Some("40".into()),
            stop: vec!["END".into()],
            reasoning: Some(Reasoning { budget: Some("8000".into()), ..Reasoning::default() }),
            user: Some("u".repeat(65).into()),
            ..Settings::default()
        };
        let (sent, report) = encoded(&ask);
        assert_eq!(sent["max_output_tokens"], 16);
        assert_eq!(sent["reasoning"], json!({"effort": "medium"}));
        assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
        let names: Vec<_> = report
            .changes
            .iter()
            .map(|change| match &change.subject {
                Subject::Field(name) => (change.action, name.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            (Action::Repaired, "max_output_tokens"),
            (Action::Translated, "reasoning"),
            (Action::Dropped, "user"),
            (Action::Dropped, "stop"),
            (Action::Dropped, "top_k"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn foreign_functions_are_not_strict_unless_they_say_so() {
        let mut ask = foreign(Vec::new());
        let tool = |name: &str, strict| Tool {
            name: name.into(),
            namespace: None,
            description: None,
            form: ToolForm::Function { schema: None, strict },
            wire: None,
            intact: true,
        };
        ask.tools = vec![tool("a", None), tool("b", Some(true))];
        ask.tool_choice = Some(ToolChoice::Allowed { names: vec!["a".into()], required: true });
        let (sent, _) = encoded(&ask);
        assert_eq!((&sent["tools"][0]["strict"], &sent["tools"][1]["strict"]), (&json!(false), &json!(true)));
        assert_eq!(
            sent["tool_choice"],
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}]})
        );
    }

    #[test]
    fn sealed_reasoning_is_written_without_its_id() {
        let thought = Thought {
            summary: vec!["s".into()],
            content: Vec::new(),
            seal: Some(Seal::Encrypted("gAAA".into())),
            item_id: Some("rs_1".into()),
        };
        let (sent, _) = encoded(&foreign(vec![Entry::new(Kind::Thought(thought))]));
        assert_eq!(
            sent["input"][0],
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}],
                "encrypted_content": "gAAA"})
        );
    }

    #[test]
    fn a_plain_text_document_is_sent_as_text() {
        let file = throughline_core::File { media: Media::Plain("words".into()), name: None };
        let part = Part { content: Content::File(file), wire: None };
        let said = Said { role: Role::User, parts: vec![part], standing: false };
        let (sent, report) = encoded(&foreign(vec![Entry::new(Kind::Said(said))]));
        assert_eq!(sent["input"][0]["content"], json!([{"type": "input_text", "text": "words"}]));
        assert_eq!(report.count(Action::Translated), 1);
    }
}
