//! What the model does with whole requests.

use super::*;
use throughline_core::{Call, Dialect, Entry, Kind, Outcome, Part, Reasoning, Return, Role, Tool, ToolForm};

fn tool(name: &str, description: &str, schema: &str) -> Tool {
    Tool {
        name: name.into(),
        namespace: None,
        description: Some(description.into()),
        form: ToolForm::Function { schema: Some(schema.into()), strict: None },
        wire: None,
        intact: true,
    }
}

fn tools() -> Vec<Tool> {
    let path = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    let write = r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#;
    let command = r#"{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#;
    let place = r#"{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}"#;
    vec![
        tool("write_file", "Writes a file", write),
        tool("read_file", "Reads a file and returns its contents", path),
        tool("bash", "Runs a command in a shell", command),
        tool("get_weather", "Tells the current weather", place),
    ]
}

fn ask(entries: Vec<Entry>) -> Ask {
    Ask { model: Some("m".into()), tools: tools(), ..Ask::of(Dialect::Chat, entries) }
}

fn user(text: &str) -> Entry {
    Entry::said(Role::User, text)
}

fn pair(id: &str, name: &str, arguments: &str, result: &str) -> [Entry; 2] {
    let call = Call {
        id: id.into(),
        item_id: None,
        name: name.into(),
        namespace: None,
        input: Input::Arguments(arguments.into()),
    };
    let returned = Return {
        call_id: Some(id.into()),
        item_id: None,
        name: None,
        parts: vec![Part::text(result)],
        outcome: Outcome::Ok,
        freeform: false,
    };
    [Entry::new(Kind::Called(call)), Entry::new(Kind::Returned(returned))]
}

/// Returns the calls as `name arguments`.
fn calls(draft: &Draft) -> Vec<String> {
    draft.calls.iter().map(|call| format!("{} {}", call.name, call.input.text())).collect()
}

#[track_caller]
fn check_calls(message: &str, expected: &[&str]) {
    assert_eq!(calls(&think(&ask(vec![user(message)]))), expected, "{message}");
}

#[test]
fn the_tool_that_fits_best_is_called() {
    check_calls("Read notes.txt", &[r#"read_file {"path":"notes.txt"}"#]);
    check_calls("What does src/main.rs contain?", &[r#"read_file {"path":"src/main.rs"}"#]);
    check_calls("Run `ls -la`", &[r#"bash {"command":"ls -la"}"#]);
    check_calls("What's the weather in Paris?", &[r#"get_weather {"location":"Paris"}"#]);
    check_calls("Save \"hello\" to out.txt", &[r#"write_file {"path":"out.txt","content":"hello"}"#]);
    check_calls("Use bash, please.", &[r#"bash {"command":"echo 'Use bash, please.'"}"#]);
}

#[test]
fn several_things_are_several_calls_if_that_is_allowed() {
    let both = [r#"read_file {"path":"a.txt"}"#, r#"read_file {"path":"b.txt"}"#];
    check_calls("Read both a.txt and b.txt", &both);
    check_calls(
        "Weather in Rome and Oslo?",
        &[r#"get_weather {"location":"Rome"}"#, r#"get_weather {"location":"Oslo"}"#],
    );
    let mut serial = ask(vec![user("Read a.txt and b.txt")]);
    serial.settings.parallel_calls = Some(false);
    assert_eq!(calls(&think(&serial)), &both[..1]);
    serial.settings.parallel_calls = None;
    serial.settings.max_tool_calls = Some("1".into());
    assert_eq!(calls(&think(&serial)), &both[..1]);
}

#[test]
fn the_choice_of_tools_is_honoured() {
    let with = |choice| {
        let mut ask = ask(vec![user("Read a.txt")]);
        ask.tool_choice = Some(choice);
        calls(&think(&ask)).first().map(|call| call.split(' ').next().unwrap_or_default().to_owned())
    };
    assert_eq!(with(ToolChoice::None), None);
    assert_eq!(with(ToolChoice::Auto).as_deref(), Some("read_file"));
    assert_eq!(with(ToolChoice::Named("bash".into())).as_deref(), Some("bash"));
    let allowed = ToolChoice::Allowed { names: vec!["get_weather".into()], required: false };
    assert_eq!(with(allowed).as_deref(), Some("get_weather"));
}

#[test]
fn a_result_is_quoted_verbatim_and_ends_the_calling() {
    let [call, result] = pair("c", "read_file", r#"{"path":"a.txt"}"#, "line 1\n  line \"2\"\n");
    let mut ask = ask(vec![user("Read a.txt"), call, result]);
    assert_eq!(think(&ask).text.as_deref(), Some("read_file returned:\nline 1\n  line \"2\"\n"));
    ask.tool_choice = Some(ToolChoice::Required);
    assert_eq!(think(&ask).calls.len(), 1);
    ask.tool_choice = None;
    ask.entries.push(user("Now read b.txt"));
    assert_eq!(calls(&think(&ask)), [r#"read_file {"path":"b.txt"}"#]);
}

#[test]
fn an_embedded_result_counts_as_one() {
    let entries = vec![user("Read a.txt"), user("Context (tool result):\nsecret 42")];
    assert_eq!(think(&ask(entries)).text.as_deref(), Some("The tool returned:\nsecret 42"));
}

fn told_pairs() -> Vec<Entry> {
    let mut entries = vec![user("Read a.txt and b.txt")];
    entries.extend(pair("1", "read_file", r#"{"path":"a.txt"}"#, "alpha"));
    entries.extend(pair("2", "read_file", r#"{"path":"b.txt"}"#, "beta"));
    entries.push(Entry::said(Role::Assistant, "Done; the launch code is 7-7-7."));
    entries
}

#[track_caller]
fn check_memory(question: &str, expected: &str) {
    let mut entries = told_pairs();
    entries.push(user(question));
    assert_eq!(think(&ask(entries)).text.as_deref(), Some(expected), "{question}");
}

#[test]
fn memory_is_what_the_prompt_holds() {
    check_memory("From memory: what was in a.txt?", "read_file returned:\nalpha");
    check_memory("What did b.txt say? Answer from memory.", "read_file returned:\nbeta");
    check_memory("From memory, what did the last tool return?", "read_file returned:\nbeta");
    let said = "My prompt holds no tool result for that; it says:\nDone; the launch code is 7-7-7.";
    check_memory("What is the launch code? From memory.", said);
    check_memory("From memory: what was in c.txt?", "My prompt does not hold that.");
}

#[test]
fn embedded_results_are_remembered_by_what_was_wanted() {
    let entries = vec![
        user("Read a.txt"),
        user("Context (tool result):\nalpha"),
        Entry::said(Role::Assistant, "ok"),
        user("Read b.txt"),
        user("Context (tool result):\nbeta"),
        user("From memory: what was in a.txt?"),
    ];
    assert_eq!(think(&ask(entries)).text.as_deref(), Some("The tool returned:\nalpha"));
}

#[test]
fn without_tools_it_names_what_it_saw() {
    let mut ask = ask(vec![
        Entry::said(Role::System, "s"),
        user("one"),
        Entry::said(Role::Assistant, "a"),
        user("two"),
    ]);
    ask.tools.clear();
    let expected = "I saw 1 system message, 2 user messages and 1 assistant message; the last thing you said is \"two\".";
    assert_eq!(think(&ask).text.as_deref(), Some(expected));
}

#[test]
fn a_schema_is_answered_with_an_object_that_holds_the_result() {
    let [call, result] = pair("c", "read_file", "{}", "alpha");
    let mut ask = ask(vec![user("Read a.txt"), call, result]);
    ask.settings.format = Some(Format::JsonSchema {
        name: None,
        description: None,
        schema: r#"{"type":"object","properties":{"summary":{"type":"string"}},"required":["summary"]}"#
            .into(),
        strict: None,
    });
    assert_eq!(think(&ask).text.as_deref(), Some(r#"{"summary":"read_file returned:\nalpha"}"#));
    ask.settings.format = Some(Format::JsonObject);
    assert_eq!(think(&ask).text.as_deref(), Some(r#"{"answer":"read_file returned:\nalpha"}"#));
}

#[test]
fn it_reasons_when_asked_and_only_then() {
    let mut ask = ask(vec![user("Read a.txt")]);
    assert_eq!(think(&ask).reasoning, None);
    ask.settings.reasoning = Some(Reasoning { effort: Some("low".into()), ..Reasoning::default() });
    assert!(think(&ask).reasoning.is_some_and(|text| text.contains("read_file")));
    ask.settings.reasoning = Some(Reasoning { effort: Some("none".into()), ..Reasoning::default() });
    assert_eq!(think(&ask).reasoning, None);
}

#[test]
fn a_call_that_does_not_fit_is_not_made() {
    let mut ask = ask(vec![user("Read a.txt and b.txt")]);
    ask.settings.max_output_tokens = Some("8".into());
    let draft = think(&ask);
    assert_eq!((draft.calls.len(), draft.stop), (1, Some(Stop::MaxTokens)));
}
