//! Pains 1 to 4: calls and results that lost each other.

use super::*;
use throughline_core::{Kind, Outcome};

/// claude-code#1237, kilocode#5163, OpenHands#7512: "tool_use ids were found without tool_result blocks".
#[test]
fn pain_01_an_orphan_tool_use_is_closed() {
    let body = messages(&json!([
        user("What is in a.rs?"),
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.rs"}},
            {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b.rs"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "fn b() {}"},
            {"type": "text", "text": "Never mind, go on."},
        ]},
    ]));
    let ask = ask(Dialect::Messages, &body);
    for rules in EVERYWHERE {
        let sent = send(&ask, rules);
        sent.assert_reported(Action::Repaired, "messages[1].content[1]", "no result of this call");
        let answers = sent.answers();
        assert_eq!(answers.len(), 2, "{rules}");
        let of = |path: &str| answers.iter().find(|(input, _)| input.contains(path)).unwrap().1.clone();
        assert!(of("b.rs").contains("fn b() {}"), "{rules}: {answers:?}");
        assert!(of("a.rs").contains("Whether the tool ran is not known"), "{rules}: {answers:?}");
        assert!(sent.results().iter().any(|returned| returned.outcome == Outcome::Unknown), "{rules}");
        sent.assert_says("Never mind, go on.");
    }
}

/// openclaw#28377, pi#4570 (a compaction between call and result), opencode#27594.
#[test]
fn pain_02_a_compaction_that_splits_a_pair_does_not_brick_the_session() {
    let said = |text: &str| {
        let part = json!({"type": "input_text", "text": text});
        json!({"type": "message", "role": "user", "content": [part]})
    };
    let call = |id: &str, path: &str| {
        let arguments = json!({"path": path}).to_string();
        json!({"type": "function_call", "call_id": id, "name": "read", "arguments": arguments})
    };
    let body = responses(&json!([
        said("Summary of what came before: the bug is in the parser."),
        // The call of this one was summarised away.
        {"type": "function_call_output", "call_id": "call_gone", "output": "line 7: unexpected end"},
        call("call_here", "parser.rs"),
        said("Summary: nothing else."),
        {"type": "function_call_output", "call_id": "call_here", "output": "fn parse() {}"},
        said("Fix it."),
    ]));
    let ask = ask(Dialect::Responses, &body);
    for rules in EVERYWHERE {
        let sent = send(&ask, rules);
        sent.assert_reported(Action::Repaired, "input[1]", "a result without its call");
        sent.assert_reported(Action::Repaired, "input[4]", "did not follow its call");
        assert_eq!(sent.answers(), [(r#"{"path":"parser.rs"}"#.to_owned(), "fn parse() {}".to_owned())]);
        for kept in ["the bug is in the parser", "line 7: unexpected end", "nothing else", "Fix it."] {
            sent.assert_says(kept);
        }
    }
}

/// litellm#26167 and PR 37956: the bridge forgot everything, and the ids of stream and answer differed.
#[test]
fn pain_03_a_request_that_continues_an_answer_keeps_its_results_and_its_id() {
    let mut body = responses(&json!([
        {"type": "function_call_output", "call_id": "call_1", "output": "fn main() {}"},
        {"type": "message", "role": "user", "content": "And now?"},
    ]));
    body["previous_response_id"] = json!("resp_0a1b");
    let ask = ask(Dialect::Responses, &body);
    assert_eq!(ask.previous.as_deref(), Some("resp_0a1b"));
    let sent = send(&ask, "openai-responses");
    assert_eq!(sent.body, body);
    sent.assert_silent();
    // A backend that never heard of that answer cannot be shown half a pair, but it can be told the result.
    for rules in ["anthropic", "openai-chat"] {
        let sent = send(&ask, rules);
        assert_eq!(sent.results(), []);
        sent.assert_says("fn main() {}");
        sent.assert_reported(Action::Repaired, "input[0]", "a result without its call");
    }
}

/// vllm#43244: the server dropped tool items from the context that it had stored itself.
#[test]
fn pain_04_no_tool_item_of_an_answer_or_a_request_is_dropped() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="},
        {
            "type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": {"type": "search", "query": "x"},
        },
        {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
            "arguments": "{\"path\":\"a\"}", "status": "completed",
        },
        {
            "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "patch",
            "input": "*** Begin", "status": "completed",
        },
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"},
    ]);
    let answer =
        json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": output});
    let reply = throughline_wire::decode_reply(Dialect::Responses, answer.to_string()).unwrap();
    let mut input = output.as_array().unwrap().clone();
    input.push(json!({"type": "function_call_output", "call_id": "call_1", "output": "A"}));
    input.push(json!({"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"}));
    let mut body = responses(&json!(input));
    body["tools"].as_array_mut().unwrap().push(json!({"type": "custom", "name": "patch"}));
    let ask = ask(Dialect::Responses, &body);
    // What was stored of the answer is what the client would send back of it.
    let kinds = |entries: &[Entry]| entries.iter().map(|entry| entry.kind.clone()).collect::<Vec<Kind>>();
    assert_eq!(kinds(&ask.entries[..5]), kinds(&reply.entries));
    let sent = send(&ask, "openai-responses");
    assert_eq!(sent.body["input"], json!(input));
    let abroad = send(&ask, "anthropic");
    assert_eq!(abroad.calls().len(), 2);
    assert_eq!(abroad.results().len(), 2);
    abroad.assert_reported(Action::Dropped, "input[1]", "web_search_call");
    abroad.assert_reported(Action::Dropped, "input[4]", "image_generation_call");
}
