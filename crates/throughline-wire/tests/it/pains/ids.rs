//! Pains 6 to 9 and 25: ids and names that a backend does not take.

use super::*;
use std::collections::BTreeSet;
use throughline_core::Text;
use throughline_wire::Restorer;

/// Returns a conversation of calls under those ids; each result says which call it answers.
fn calls_under(ids: &[&str]) -> Value {
    let mut list = vec![user("Read them.")];
    for (at, id) in ids.iter().enumerate() {
        list.push(chat_calls(&[chat_call(id, &format!("{{\"n\":{at}}}"))]));
        list.push(chat_result(id, &format!("result {at}")));
    }
    chat(&json!(list))
}

#[track_caller]
fn assert_each_answers_its_call(sent: &Sent, count: usize) {
    let expected: Vec<_> = (0..count).map(|at| (format!("{{\"n\":{at}}}"), format!("result {at}"))).collect();
    assert_eq!(sent.answers(), expected, "{}", sent.text);
}

fn sent_ids(sent: &Sent) -> Vec<Text> {
    sent.calls().into_iter().map(|call| call.id).collect()
}

/// 9router#393, hermes-agent#73492 (ids of 84 and more), Aether PR 829 (hash, do not truncate).
#[test]
fn pain_06_call_ids_over_64_are_mapped_for_responses() {
    // Cut to 64 characters, these two are one.
    let stem = "mcp__filesystem__read_text_file__019a8f3e-5b7c-7d2e-9f41-c0ffee".repeat(2);
    let (first, second) = (format!("{stem}-a"), format!("{stem}-b"));
    let body = calls_under(&[&first, "call_short", &second]);
    let sent = send(&ask(Dialect::Chat, &body), "openai-responses");
    let ids = sent_ids(&sent);
    assert_eq!(ids[1], "call_short");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 3);
    assert!(ids.iter().all(|id| id.len() <= 64), "{ids:?}");
    assert_each_answers_its_call(&sent, 3);
    sent.assert_reported(Action::Renamed, "messages[1].tool_calls[0]", "does not take this call id");
    // The next request resends the history, and every call goes by the name it had.
    let longer = calls_under(&[&first, "call_short", &second, "call_new"]);
    let next = send(&ask(Dialect::Chat, &longer), "openai-responses");
    assert_eq!(sent_ids(&next)[..3], ids);
}

/// vercel/ai#5171, pydantic-ai#4389, camel#2215. A 51-character id was accepted live later on, but not by every model
/// of OpenAI's, so 40 holds there and at servers of which nothing better is known.
#[test]
fn pain_07_call_ids_over_40_are_mapped_only_where_the_backend_minds() {
    let long = "fc_68c1f0a2b3d48190a7e5c2f1b0d9e8a7_0123456789abcdef";
    assert!(long.len() > 40 && long.len() <= 64);
    let ask = ask(Dialect::Chat, &calls_under(&[long]));
    for rules in ["openai-chat", "strict-chat"] {
        let strict = send(&ask, rules);
        assert!(sent_ids(&strict)[0].len() <= 40, "{rules}");
        assert_each_answers_its_call(&strict, 1);
        strict.assert_reported(Action::Renamed, "messages[1].tool_calls[0]", "does not take this call id");
    }
    for rules in ["openrouter", "glm", "vllm"] {
        let lenient = send(&ask, rules);
        assert_eq!(sent_ids(&lenient), [long], "{rules}");
        lenient.assert_silent();
    }
    // What fits goes out as it came.
    let fitting = "f".repeat(40);
    let fitting = send(&self::ask(Dialect::Chat, &calls_under(&[&fitting])), "openai-chat");
    assert_eq!(sent_ids(&fitting)[0].len(), 40);
    fitting.assert_silent();
}

/// eca#233: "Tool call id … must be a-z, A-Z, 0-9, with a length of 9".
#[test]
fn pain_08_mistral_gets_nine_alphanumerics() {
    let body = calls_under(&["call_abc", "toolu_01A", "abcDEF123", "functions.read:0"]);
    let sent = send(&ask(Dialect::Chat, &body), "mistral");
    let ids = sent_ids(&sent);
    assert!(ids.iter().all(|id| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())), "{ids:?}");
    assert_eq!(ids[2], "abcDEF123");
    assert_each_answers_its_call(&sent, 4);
    assert_eq!(sent.report.count(Action::Renamed), 3);
}

/// litellm#23510, claude-code#28515: "tool_use ids must be unique".
#[test]
fn pain_09_duplicate_ids_become_unique_and_results_stay_with_their_calls() {
    // Once in two turns, as servers that count per answer do, and once in one message.
    let mut list = calls_under(&["call_0", "call_0"])["messages"].as_array().unwrap().clone();
    list.push(chat_calls(&[chat_call("call_0", "{\"n\":2}"), chat_call("call_0", "{\"n\":3}")]));
    list.push(chat_result("call_0", "result 2"));
    list.push(chat_result("call_0", "result 3"));
    let ask = ask(Dialect::Chat, &chat(&json!(list)));
    for rules in ["anthropic", "openai-responses", "mistral", "strict-chat"] {
        let sent = send(&ask, rules);
        assert_eq!(sent_ids(&sent).iter().collect::<BTreeSet<_>>().len(), 4, "{rules}");
        assert_each_answers_its_call(&sent, 4);
        sent.assert_reported(Action::Renamed, "messages[3].tool_calls[0]", "does not take this call id");
    }
}

/// mastra#6302, claude-code#20643, cline PR 11885.
#[test]
fn pain_25_tool_names_over_64_are_mapped_and_come_back() {
    let stem = "mcp__a_server_with_quite_a_long_name__and_a_tool_with_one_that_is_longer_still";
    let names = [format!("{stem}_read"), format!("{stem}_write")];
    let mut body = chat(&json!([
        user("Read it."),
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": names[0], "arguments": "{}"}},
        ]},
        chat_result("call_1", "text"),
    ]));
    body["tools"] =
        names.iter().map(|name| json!({"type": "function", "function": {"name": name}})).collect();
    body["tool_choice"] = json!({"type": "function", "function": {"name": names[1]}});
    let ask = ask(Dialect::Chat, &body);
    for rules in EVERYWHERE {
        let sent = send(&ask, rules);
        let back = sent.read_back();
        let offered: Vec<&str> = back.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_ne!(offered[0], offered[1]);
        assert!(offered.iter().all(|name| name.len() <= 64), "{offered:?}");
        assert_eq!(sent.calls()[0].name, offered[0]);
        let chosen = throughline_core::ToolChoice::Named(offered[1].into());
        assert_eq!(back.tool_choice, Some(chosen), "{rules}");
        sent.assert_reported(Action::Renamed, &format!("tools[{}]", names[0]), offered[0]);
        // The backend calls the tool by the name it knows, and the client hears the one it gave.
        let answer = chat_answer(offered[1]);
        let mut reply = throughline_wire::decode_reply(Dialect::Chat, answer.to_string()).unwrap();
        let rules = Rules::from_name(rules).unwrap();
        let (prompt, _) = prepare(&ask, &Target::new(&rules));
        Restorer::new(&prompt).restore(&mut reply);
        assert_eq!(reply.entries[0].as_call().unwrap().name, names[1].as_str());
    }
}

#[test]
fn pain_25_a_long_name_in_the_history_of_a_tool_no_longer_on_offer_is_mapped_and_reported() {
    let name = "mcp__enterprise_document_management_service__search_documents_by_author";
    let call = json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}});
    let list = json!([user("Find."), chat_calls(&[call]), chat_result("call_1", "none"), user("And now?")]);
    let ask = ask(Dialect::Chat, &chat(&list));
    for rules in EVERYWHERE {
        let sent = send(&ask, rules);
        let called = sent.calls()[0].name.clone();
        assert!(called.len() <= 64, "{called}");
        sent.assert_reported(Action::Renamed, "messages[1].tool_calls[0]", &called);
    }
}

/// Codex puts the tools of its servers into namespaces, where a name may be one that it has itself.
#[test]
fn pain_25_a_tool_in_a_namespace_is_not_taken_for_its_namesake() {
    let long = "search_documents_by_author_in_the_enterprise_document_management_service";
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
    let inside = json!({"type": "namespace", "name": "files", "description": "",
        "tools": [function("read"), function(long)]});
    let ask = ask(
        Dialect::Responses,
        &json!({"model": "m", "input": "Read it.", "tools": [function("read"), inside]}),
    );
    let rules = Rules::from_name("openai-responses").unwrap();
    let (prompt, _) = prepare(&ask, &Target::new(&rules));
    let call = |namespace: Option<&str>, name: &str| {
        let item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "namespace": namespace,
            "name": name, "arguments": "{}", "status": "completed"});
        let answer = json!({"id": "resp_1", "status": "completed", "model": "m", "output": [item]});
        let mut reply = throughline_wire::decode_reply(Dialect::Responses, answer.to_string()).unwrap();
        Restorer::new(&prompt).restore(&mut reply);
        let call = reply.entries[0].as_call().unwrap().clone();
        (call.namespace.map(|namespace| namespace.to_string()), call.name.to_string())
    };
    let in_files = |name: &str| (Some("files".to_owned()), name.to_owned());
    assert_eq!(call(None, "read"), (None, "read".to_owned()));
    assert_eq!(call(Some("files"), "read"), in_files("read"));
    assert_ne!(prompt.tools[2].name, long);
    assert_eq!(call(Some("files"), &prompt.tools[2].name), in_files(long));
}

fn chat_answer(name: &str) -> Value {
    let call = json!({"id": "call_9", "type": "function", "function": {"name": name, "arguments": "{}"}});
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": chat_calls(&[call])}],
    })
}
