//! Pains 27 to 29: whole conversations, over time and over backends.

#![expect(clippy::disallowed_methods, reason = "goldens are files")]

use super::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// claude-code#46420, cc-switch#5305, t3code#3797: hand over to another model, and back.
#[test]
fn pain_27_a_handover_and_back_leaves_the_first_backends_bytes_as_they_were() {
    let (a, b) = (
        origin("anthropic", Dialect::Messages, "claude-sonnet-5"),
        origin("openai", Dialect::Responses, "gpt-5.5"),
    );
    let thought = json!({"type": "thinking", "thinking": "Hm,  é.", "signature": "EqoBsig=="});
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {"z": 1.0, "a": "ä"}});
    let result = |id: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        json!({"role": "user", "content": [block]})
    };
    let by_a = json!({"role": "assistant", "content": [thought, call("toolu_1")]});
    let first = messages(&json!([user("Go."), by_a, result("toolu_1")]));
    let ask_first = issued_by(ask(Dialect::Messages, &first), &a);
    let (anthropic, openai) =
        (Rules::from_name("anthropic").unwrap(), Rules::from_name("openai-responses").unwrap());
    let to_a = Target { origin: Some(a.clone()), ..Target::new(&anthropic) };
    let to_b = Target { origin: Some(b.clone()), ..Target::new(&openai) };
    let before = send_to(&ask_first, &to_a);
    let between = send_to(&ask_first, &to_b);
    between.assert_never_says("EqoBsig==");
    assert_eq!(between.calls().len(), 1);
    assert_eq!(send_to(&ask_first, &to_a).text, before.text);
    // Then the other backend answers, with a call and reasoning of its own, and the first takes over again.
    let foreign = json!({"type": "thinking", "thinking": "of the other", "signature": "not-yours"});
    let by_b = json!({"role": "assistant", "content": [foreign, call("call_b|fc_1")]});
    let second = messages(&json!([user("Go."), by_a, result("toolu_1"), by_b, result("call_b|fc_1")]));
    let mut ask_second = issued_by(ask(Dialect::Messages, &second), &a);
    for entry in
        ask_second.entries.iter_mut().filter(|entry| entry.place.is_some_and(|place| place.message == 3))
    {
        entry.origin = Some(b.clone());
    }
    let after = send_to(&ask_second, &to_a);
    assert_eq!(
        after.body["messages"].as_array().unwrap()[..3],
        before.body["messages"].as_array().unwrap()[..]
    );
    assert!(after.text.contains(&by_a.to_string()), "{}", after.text);
    after.assert_never_says("not-yours");
    assert_eq!(after.answers().len(), 2);
    after.assert_reported(Action::Dropped, "messages[3].content[0]", "reasoning of another backend");
    after.assert_reported(Action::Renamed, "messages[3].content[1]", "does not take this call id");
}

/// litellm#41499 (5.9 million rows, two thirds of them copies), #15641, #16582.
#[test]
fn pain_28_a_resent_history_is_the_same_entries_and_shares_its_text_with_the_body() {
    let filler = "a long line without anything to unescape ".repeat(200);
    let history = [user("Go."), chat_calls(&[chat_call("call_1", "{}")]), chat_result("call_1", &filler)];
    let first = chat(&json!(history));
    let mut longer = history.to_vec();
    longer.push(json!({"role": "assistant", "content": "Done."}));
    longer.push(user("And now?"));
    let second = chat(&json!(longer));
    let (first_ask, second_ask) = (ask(Dialect::Chat, &first), ask(Dialect::Chat, &second));
    for rules in ["openai-chat", "anthropic", "openai-responses"] {
        // As a client of each dialect would send them, one after the other.
        let [earlier, later] = [&first_ask, &second_ask].map(|ask| send(ask, rules).read_back());
        // Equal in every respect, so that a store can keep one of them.
        assert_eq!(later.entries[..earlier.entries.len()], earlier.entries, "{rules}");
        assert_eq!(later.entries.len(), earlier.entries.len() + 2, "{rules}");
    }
    let body: Arc<str> = second.to_string().into();
    let within = body.as_bytes().as_ptr_range();
    let ask = decode_request(Dialect::Chat, Arc::clone(&body)).unwrap();
    let result = ask.entries.iter().find_map(Entry::as_return).unwrap();
    let text = throughline_core::joined_text(&result.parts);
    assert_eq!(text, filler.as_str());
    assert!(within.contains(&text.as_ptr()), "the text was copied");
}

/// Translations that break a rule which the request did not, as golden, rules and rule.
const KNOWN: &[(&str, &str, &str)] = &[
    // A field of this name asks a backend to continue the text; the turn that is put behind it hides that.
    ("chat/prefill", "mistral", "prefix-not-last"),
    // A call of a type that nobody knows is kept as it is, but its result is not recognised as one.
    ("chat/unknown-fields-and-items", "deepseek", "tool-call-without-answer"),
    ("chat/unknown-fields-and-items", "glm", "tool-call-without-answer"),
    ("chat/unknown-fields-and-items", "kimi", "tool-call-without-answer"),
    ("chat/unknown-fields-and-items", "openrouter", "tool-call-without-answer"),
    ("chat/unknown-fields-and-items", "vercel", "tool-call-without-answer"),
    ("chat/unknown-fields-and-items", "mistral", "tool-call-without-answer"),
    ("chat/unknown-fields-and-items", "openai-chat", "tool-call-without-answer"),
];

/// bifrost#3511: a release broke the whole translation of tools.
#[test]
fn pain_29_no_golden_request_is_made_worse_for_any_backend() {
    let mut found = BTreeSet::new();
    let mut checked = 0;
    for dialect in Dialect::ALL {
        for (name, text) in goldens(dialect) {
            let ask = decode_request(dialect, text.as_str()).unwrap();
            let original: Value = serde_json::from_str(&text).unwrap();
            for rules in &Rules::built_in() {
                let sent = send_unchecked(&ask, &Target::new(rules));
                let own =
                    if rules.dialect == dialect { validate(provider(rules), &original) } else { Vec::new() };
                // What the client itself wrote in the backend's dialect goes as it came, right or wrong.
                let is_new = |found: &Violation| !own.iter().any(|own| own.rule == found.rule);
                let broken = sent.violations().into_iter().filter(is_new).map(|violation| violation.rule);
                found.extend(broken.map(|rule| format!("{dialect}/{name} {} {rule}", rules.name)));
                checked += 1;
            }
        }
    }
    assert!(checked >= 200 * 6, "only {checked} translations");
    let known: BTreeSet<String> =
        KNOWN.iter().map(|(golden, rules, rule)| format!("{golden} {rules} {rule}")).collect();
    assert_eq!(found, known);
}

fn goldens(dialect: Dialect) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/requests").join(dialect.name());
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let bodies = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let named = |file: std::path::PathBuf| {
        (file.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&file).unwrap())
    };
    bodies.map(named).collect()
}
