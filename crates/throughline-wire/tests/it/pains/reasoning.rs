//! Pains 5 and 10 to 15: reasoning that went to the wrong place, or did not come back.

use super::*;
use throughline_core::ForeignReasoning;

const SIGNATURE: &str = "EqoBCkgIARABGAIiQL2h/0X+9tYs==";
const ENCRYPTED: &str = "gAAAAABo0Zk3_sealed-by-the-provider==";

/// A turn of a model that thinks in signed text, with spaces and escapes that must not change.
fn signed() -> Value {
    messages(&json!([
        user("What is in a.rs?"),
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "I had better  look.\n\té→\u{2028}", "signature": SIGNATURE},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.rs"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "fn a() {}"},
        ]},
    ]))
}

/// A turn of a model whose reasoning is an item of its own.
fn encrypted() -> Value {
    responses(&json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is in a.rs?"}]},
        {
            "type": "reasoning", "id": "rs_1", "encrypted_content": ENCRYPTED,
            "summary": [{"type": "summary_text", "text": "I had better look."}],
        },
        {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
            "arguments": "{\"path\":\"a.rs\"}", "status": "completed",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "fn a() {}"},
    ]))
}

#[track_caller]
fn assert_has_the_pair(sent: &Sent) {
    assert_eq!(sent.answers(), [(r#"{"path":"a.rs"}"#.to_owned(), "fn a() {}".to_owned())], "{}", sent.text);
}

/// litellm#42005: the calls of a replayed history were lost, and the reasoning leaked as text.
#[test]
fn pain_05_a_replayed_history_keeps_native_calls_and_leaks_no_reasoning() {
    let ask = ask(Dialect::Responses, &encrypted());
    for rules in ["openai-chat", "deepseek", "mistral", "strict-chat", "anthropic"] {
        let sent = send(&ask, rules);
        assert_has_the_pair(&sent);
        sent.assert_never_says("I had better look");
        sent.assert_never_says(ENCRYPTED);
        sent.assert_reported(Action::Dropped, "input[1]", "reasoning of another backend");
    }
}

/// opencode#6418, llxprt-code#2335, hermes-agent#24401, anthropic-sdk-python#1598.
#[test]
fn pain_10_a_signature_goes_to_its_issuer_byte_for_byte_and_to_nobody_else() {
    let issuer = origin("anthropic", Dialect::Messages, "claude-sonnet-5");
    let body = signed();
    let ask = issued_by(ask(Dialect::Messages, &body), &issuer);
    let rules = Rules::from_name("anthropic").unwrap();
    let home = send_to(&ask, &Target { origin: Some(issuer), ..Target::new(&rules) });
    assert_eq!(home.body, body);
    assert!(home.text.contains(&body["messages"][1]["content"][0].to_string()));
    for (backend, model) in [("anthropic", "claude-opus-5"), ("bedrock", "claude-sonnet-5")] {
        let other = origin(backend, Dialect::Messages, model);
        let sent = send_to(&ask, &Target { origin: Some(other), ..Target::new(&rules) });
        sent.assert_never_says(SIGNATURE);
        sent.assert_never_says("I had better");
        sent.assert_says("I look.");
        assert_has_the_pair(&sent);
        sent.assert_reported(Action::Dropped, "messages[1].content[0]", "reasoning of another backend");
    }
}

/// litellm#16893, CLIProxyAPI#2360, llmgateway#1267: "Function call is missing a thought_signature".
#[test]
fn pain_11_a_thought_signature_of_a_chat_backend_goes_back_with_its_call() {
    let mut call = chat_call("call_1", "{\"path\":\"a.rs\"}");
    call["extra_content"] = json!({"google": {"thought_signature": SIGNATURE}});
    let history = |call: &Value, id: &str| {
        chat(&json!([user("Read."), chat_calls(std::slice::from_ref(call)), chat_result(id, "fn a() {}")]))
    };
    let body = history(&call, "call_1");
    let home = send(&ask(Dialect::Chat, &body), "openai-chat");
    assert_eq!(home.body, body);
    home.assert_silent();
    // Also where the call itself has to be rewritten.
    let long = "call_".repeat(20);
    call["id"] = json!(long);
    let renamed = send(&ask(Dialect::Chat, &history(&call, &long)), "openai-chat");
    let sent_call = &renamed.body["messages"][1]["tool_calls"][0];
    assert_eq!(sent_call["extra_content"]["google"]["thought_signature"], SIGNATURE);
    assert_ne!(sent_call["id"], json!(long));
    for rules in ["anthropic", "openai-responses"] {
        let sent = send(&ask(Dialect::Chat, &body), rules);
        sent.assert_never_says(SIGNATURE);
        sent.assert_reported(Action::Dropped, "messages[1].tool_calls[0]", "extra_content");
    }
}

/// litellm#18160, #41534 (ids of 949 characters), #32140; 9router#4136.
#[test]
fn pain_12_no_signature_leaks_to_another_vendor() {
    let issuer = origin("anthropic", Dialect::Messages, "claude-sonnet-5");
    let asks = [issued_by(ask(Dialect::Messages, &signed()), &issuer), ask(Dialect::Responses, &encrypted())];
    for ask in &asks {
        for rules in Rules::built_in().iter().filter(|rules| rules.dialect != ask.dialect) {
            for foreign_reasoning in [ForeignReasoning::Drop, ForeignReasoning::AsText] {
                let sent = send_to(ask, &Target { foreign_reasoning, ..Target::new(rules) });
                sent.assert_never_says(SIGNATURE);
                sent.assert_never_says(ENCRYPTED);
                assert_has_the_pair(&sent);
            }
        }
    }
    // One that was smuggled in an id is cut off with the rest of the id.
    let smuggled = format!("call_1__thought__{}", SIGNATURE.repeat(30));
    let body = chat(&json!([
        user("Read."),
        chat_calls(&[chat_call(&smuggled, "{}")]),
        chat_result(&smuggled, "ok")
    ]));
    let sent = send(&ask(Dialect::Chat, &body), "anthropic");
    assert!(sent.calls()[0].id.len() <= 64);
    sent.assert_never_says(SIGNATURE);
    sent.assert_reported(Action::Renamed, "messages[1].tool_calls[0]", "does not take this call id");
}

/// codex#8119, #8100, sub2api#3038: "invalid_encrypted_content" after a change of account or provider.
#[test]
fn pain_13_encrypted_reasoning_stays_with_the_account_that_issued_it() {
    let issuer = origin("account-a", Dialect::Responses, "gpt-5.5");
    let body = encrypted();
    let ask = issued_by(ask(Dialect::Responses, &body), &issuer);
    let rules = Rules::from_name("openai-responses").unwrap();
    let home = send_to(&ask, &Target { origin: Some(issuer), ..Target::new(&rules) });
    assert_eq!(home.body, body);
    let other = origin("account-b", Dialect::Responses, "gpt-5.5");
    let sent = send_to(&ask, &Target { origin: Some(other), ..Target::new(&rules) });
    sent.assert_never_says(ENCRYPTED);
    assert_has_the_pair(&sent);
    sent.assert_reported(Action::Dropped, "input[1]", "reasoning of another backend");
}

/// rig#751, TanStack/ai#1212: "'function_call' was provided without its required 'reasoning' item", and the
/// reverse, "'reasoning' was provided without its required following item".
#[test]
fn pain_14_a_call_whose_reasoning_is_gone_does_not_ask_for_it() {
    let issuer = origin("account-a", Dialect::Responses, "gpt-5.5");
    let ask_a = issued_by(ask(Dialect::Responses, &encrypted()), &issuer);
    let rules = Rules::from_name("openai-responses").unwrap();
    let other =
        Target { origin: Some(origin("account-b", Dialect::Responses, "gpt-5.5")), ..Target::new(&rules) };
    let sent = send_to(&ask_a, &other);
    let call =
        sent.body["input"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    assert_eq!(call.get("id"), None, "the id refers to the reasoning item beside it");
    assert_eq!(call["call_id"], "call_1");
    let mut body = encrypted();
    body["input"].as_array_mut().unwrap().truncate(2);
    body["input"].as_array_mut().unwrap().push(user("Never mind."));
    let sent = send(&ask(Dialect::Responses, &body), "openai-responses");
    sent.assert_never_says(ENCRYPTED);
    sent.assert_reported(Action::Dropped, "input[1]", "nothing follows this reasoning");
}

/// opencode#25356, cc-switch-cli#170: "the reasoning_content in the thinking mode must be passed back";
/// rikkahub#1690: with parallel calls too.
#[test]
fn pain_15_reasoning_content_is_passed_back_and_present_beside_calls() {
    let calls = [chat_call("call_1", "{\"path\":\"a.rs\"}"), chat_call("call_2", "{\"path\":\"b.rs\"}")];
    let mut turn = chat_calls(&calls);
    turn["reasoning_content"] = json!("I had better look\n at both.");
    let results = [chat_result("call_1", "A"), chat_result("call_2", "B")];
    let body = chat(&json!([user("Read."), turn, results[0], results[1]]));
    let home = send(&ask(Dialect::Chat, &body), "deepseek");
    assert_eq!(home.body, body);
    // What other models thought cannot be passed back, but the field must be there.
    let foreign = send(&ask(Dialect::Messages, &signed()), "deepseek");
    let turn = foreign.body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|message| message.get("tool_calls").is_some());
    assert_eq!(turn.unwrap()["reasoning_content"], "");
    assert_has_the_pair(&foreign);
    // A turn that has to be rewritten, here for a long id, keeps it as well.
    let mut rewritten = body.clone();
    let long = json!("call_".repeat(20));
    rewritten["messages"][1]["tool_calls"][0]["id"] = long.clone();
    rewritten["messages"][2]["tool_call_id"] = long.clone();
    let sent = send(&ask(Dialect::Chat, &rewritten), "deepseek");
    assert_ne!(sent.body["messages"][1]["tool_calls"][0]["id"], long);
    assert_eq!(sent.body["messages"][1]["reasoning_content"], "I had better look\n at both.");
}
