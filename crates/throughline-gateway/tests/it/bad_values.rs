//! Fields of a request that hold what they cannot: wrong types, numbers out of range, words nobody knows.
//!
//! Each row is put into a request that is otherwise valid. The second tables hold what looks odd and passes,
//! because the provider takes it too: limits themselves, `null`, whole numbers with a point, what is new.

use crate::bad_input::{PATHS, assert_nothing_sent, refused};
use crate::house::{House, one_of_each};

/// What a client of chat may not send, and the field that is to be named, to the letter.
const CHAT: &[(&str, &str)] = &[
    (r#""stream_options":7"#, "stream_options"),
    (r#""stream_options":{"include_usage":"yes"}"#, "stream_options.include_usage"),
    (r#""stream_options":{"include_obfuscation":1}"#, "stream_options.include_obfuscation"),
    (r#""n":2"#, "n"),
    (r#""n":0"#, "n"),
    (r#""n":"1""#, "n"),
    (r#""logit_bias":[]"#, "logit_bias"),
    (r#""logit_bias":{"50256":"x"}"#, r#"logit_bias["50256"]"#),
    (r#""logit_bias":{"50256":101}"#, r#"logit_bias["50256"]"#),
    (r#""metadata":{"a":"b","c":1}"#, "metadata.c"),
    (r#""metadata":{"a":{"b":"c"}}"#, "metadata.a"),
    (r#""logprobs":1"#, "logprobs"),
    (r#""logprobs":true,"top_logprobs":21"#, "top_logprobs"),
    (r#""logprobs":true,"top_logprobs":-1"#, "top_logprobs"),
    (r#""logprobs":true,"top_logprobs":2.5"#, "top_logprobs"),
    (r#""response_format":{}"#, "response_format.type"),
    (
        r#""response_format":{"type":"json_schema","json_schema":{"name":"a","strict":1}}"#,
        "response_format.json_schema.strict",
    ),
    (
        r#""response_format":{"type":"json_schema","json_schema":{"name":"a","description":[]}}"#,
        "response_format.json_schema.description",
    ),
    (r#""modalities":"text""#, "modalities"),
    (r#""modalities":["text",7]"#, "modalities[1]"),
    (r#""audio":"alloy""#, "audio"),
    (r#""prediction":7"#, "prediction"),
    (r#""prediction":{"type":"content"}"#, "prediction.content"),
    (r#""web_search_options":true"#, "web_search_options"),
    (r#""max_tokens":0"#, "max_tokens"),
    (r#""max_tokens":-1"#, "max_tokens"),
    (r#""max_completion_tokens":0"#, "max_completion_tokens"),
    (r#""max_completion_tokens":1.5"#, "max_completion_tokens"),
    (r#""temperature":2.1"#, "temperature"),
    (r#""temperature":-0.1"#, "temperature"),
    (r#""top_p":1.1"#, "top_p"),
    (r#""presence_penalty":-2.5"#, "presence_penalty"),
    (r#""frequency_penalty":3"#, "frequency_penalty"),
    (r#""seed":1.5"#, "seed"),
    (r#""safety_identifier":7"#, "safety_identifier"),
    (r#""prompt_cache_retention":24"#, "prompt_cache_retention"),
    (r#""tool_choice":"sometimes""#, "tool_choice"),
    (r#""tool_choice":{}"#, "tool_choice.type"),
    (r#""tool_choice":{"type":"function"}"#, "tool_choice.function"),
    (r#""tool_choice":{"type":"function","function":{}}"#, "tool_choice.function.name"),
    (r#""tool_choice":{"type":"allowed_tools","allowed_tools":{}}"#, "tool_choice.allowed_tools.tools"),
    (
        r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"never","tools":[]}}"#,
        "tool_choice.allowed_tools.mode",
    ),
    (r#""tools":[{"type":"custom","custom":{"name":"a","format":"text"}}]"#, "tools[0].custom.format"),
    (r#""tools":[{"type":"custom","custom":{}}]"#, "tools[0].custom.name"),
    (r#""functions":[{"parameters":{}}]"#, "functions[0].name"),
];

/// What a client of chat may send.
const CHAT_PASSES: &[&str] = &[
    r#""n":1,"stream_options":null,"logit_bias":null,"metadata":null,"modalities":null"#,
    r#""logprobs":null,"top_logprobs":null,"max_tokens":null,"temperature":null,"stop":null"#,
    r#""temperature":2,"top_p":0,"presence_penalty":-2,"frequency_penalty":2.0"#,
    r#""logit_bias":{"50256":-100},"metadata":{"a":""},"seed":-7,"max_tokens":20.0"#,
    r#""logprobs":true,"top_logprobs":20"#,
    r#""response_format":{"type":"text"},"modalities":["text"]"#,
    r#""x_unknown":{"n":2},"reasoning":{"effort":"low"},"top_k":-1"#,
];

/// What a client of messages may not send, and the field that is to be named, to the letter.
const MESSAGES: &[(&str, &str)] = &[
    (r#""max_tokens":-1"#, "max_tokens"),
    (r#""max_tokens":1.5"#, "max_tokens"),
    (r#""temperature":1.1"#, "temperature"),
    (r#""temperature":-1"#, "temperature"),
    (r#""top_p":2"#, "top_p"),
    (r#""top_k":-1"#, "top_k"),
    (r#""top_k":0.5"#, "top_k"),
    (r#""thinking":{"type":"enabled"}"#, "thinking.budget_tokens"),
    (r#""thinking":{"type":"enabled","budget_tokens":1023}"#, "thinking.budget_tokens"),
    (r#""thinking":{"type":"enabled","budget_tokens":2048.5}"#, "thinking.budget_tokens"),
    (r#""thinking":{"type":"adaptive","display":7}"#, "thinking.display"),
    (r#""context_management":[]"#, "context_management"),
    (r#""context_management":{"edits":{}}"#, "context_management.edits"),
    (r#""context_management":{"edits":[{}]}"#, "context_management.edits[0].type"),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","keep":3}]}"#,
        "context_management.edits[0].keep",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses"}}]}"#,
        "context_management.edits[0].trigger.value",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":0}}]}"#,
        "context_management.edits[0].trigger.value",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","clear_at_least":{"type":"input_tokens","value":"x"}}]}"#,
        "context_management.edits[0].clear_at_least.value",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","exclude_tools":"a"}]}"#,
        "context_management.edits[0].exclude_tools",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","clear_tool_inputs":"a"}]}"#,
        "context_management.edits[0].clear_tool_inputs",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","clear_tool_inputs":[7]}]}"#,
        "context_management.edits[0].clear_tool_inputs[0]",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"some"}]}"#,
        "context_management.edits[0].keep",
    ),
    (
        r#""context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":0}}]}"#,
        "context_management.edits[0].keep.value",
    ),
    (
        r#""context_management":{"edits":[{"type":"compact_20260112","pause_after_compaction":1}]}"#,
        "context_management.edits[0].pause_after_compaction",
    ),
    (r#""container":7"#, "container"),
    (r#""container":{"id":7}"#, "container.id"),
    (r#""container":{"skills":["a"]}"#, "container.skills[0]"),
    (r#""mcp_servers":{}"#, "mcp_servers"),
    (r#""mcp_servers":["a"]"#, "mcp_servers[0]"),
    (r#""mcp_servers":[{"type":"url","name":"a"}]"#, "mcp_servers[0].url"),
    (r#""mcp_servers":[{"type":"url","url":"https://a.test"}]"#, "mcp_servers[0].name"),
    (r#""system":{"type":"text","text":"a"}"#, "system"),
    (r#""system":[{"text":"a"}]"#, "system[0].type"),
    (r#""system":[{"type":"image","source":{"type":"url","url":"x"}}]"#, "system[0].type"),
    (r#""system":[{"type":"text"}]"#, "system[0].text"),
    (r#""system":[{"type":"text","text":"a","cache_control":"on"}]"#, "system[0].cache_control"),
    (r#""cache_control":{}"#, "cache_control.type"),
    (r#""cache_control":{"type":"lasting"}"#, "cache_control.type"),
    (r#""cache_control":{"type":"ephemeral","ttl":"2h"}"#, "cache_control.ttl"),
    (r#""cache_control":{"type":"ephemeral","ttl":300}"#, "cache_control.ttl"),
    (r#""speed":7"#, "speed"),
    (r#""inference_geo":7"#, "inference_geo"),
    (r#""output_config":{"format":{}}"#, "output_config.format.type"),
    (r#""output_config":{"format":{"type":"json_schema"}}"#, "output_config.format.schema"),
    (r#""tools":[{"name":"a"}]"#, "tools[0].input_schema"),
    (r#""tools":[{"name":"a","input_schema":{},"defer_loading":1}]"#, "tools[0].defer_loading"),
    (r#""tools":[{"name":"a","input_schema":{},"allowed_callers":"x"}]"#, "tools[0].allowed_callers"),
    (r#""tools":[{"name":"a","input_schema":{},"input_examples":["x"]}]"#, "tools[0].input_examples[0]"),
    (r#""tools":[{"name":"a","input_schema":{},"cache_control":7}]"#, "tools[0].cache_control"),
    (r#""tools":[{"type":"bash_20250124","name":7}]"#, "tools[0].name"),
    (
        r#""messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]"#,
        "messages[0].content[0].tool_use_id",
    ),
    (
        r#""messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":true}]}]"#,
        "messages[0].content[0].cache_control",
    ),
    (
        r#""messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{},"cache_control":{}}]}]"#,
        "messages[0].content[0].cache_control.type",
    ),
];

/// What a client of messages may send.
const MESSAGES_PASSES: &[&str] = &[
    r#""temperature":1,"top_k":0,"max_tokens":10.0"#,
    r#""container":null,"context_management":null,"cache_control":null,"tools":[]"#,
    r#""system":"","stop_sequences":["END"]"#,
    r#""system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]"#,
    r#""metadata":{"user_id":null},"cache_control":{"type":"ephemeral","ttl":"5m"}"#,
    r#""max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024}"#,
];

/// What a client of responses may not send, and the field that is to be named, to the letter.
const RESPONSES: &[(&str, &str)] = &[
    (r#""include":"reasoning.encrypted_content""#, "include"),
    (r#""include":[7]"#, "include[0]"),
    (r#""background":"yes""#, "background"),
    (r#""truncation":"sometimes""#, "truncation"),
    (r#""truncation":true"#, "truncation"),
    (r#""stream_options":[]"#, "stream_options"),
    (r#""stream_options":{"include_obfuscation":"no"}"#, "stream_options.include_obfuscation"),
    (r#""max_tool_calls":0"#, "max_tool_calls"),
    (r#""max_tool_calls":1.5"#, "max_tool_calls"),
    (r#""max_output_tokens":0"#, "max_output_tokens"),
    (r#""max_output_tokens":-16"#, "max_output_tokens"),
    (r#""max_output_tokens":16.5"#, "max_output_tokens"),
    (r#""temperature":2.01"#, "temperature"),
    (r#""top_p":-0.01"#, "top_p"),
    (r#""presence_penalty":2.5"#, "presence_penalty"),
    (r#""frequency_penalty":-3"#, "frequency_penalty"),
    (r#""top_logprobs":21"#, "top_logprobs"),
    (r#""metadata":{"a":7}"#, "metadata.a"),
    (r#""metadata":{"a":null}"#, "metadata.a"),
    (r#""text":{"format":{}}"#, "text.format.type"),
    (r#""text":{"format":{"type":"json_schema","name":"a"}}"#, "text.format.schema"),
    (r#""text":{"format":{"type":"json_schema","schema":{}}}"#, "text.format.name"),
    (
        r#""text":{"format":{"type":"json_schema","name":"a","schema":{},"description":7}}"#,
        "text.format.description",
    ),
    (r#""reasoning":{"generate_summary":7}"#, "reasoning.generate_summary"),
    (r#""prompt":"pmpt_1""#, "prompt"),
    (r#""prompt":{}"#, "prompt.id"),
    (r#""prompt":{"id":"p","version":2}"#, "prompt.version"),
    (r#""prompt":{"id":"p","variables":[]}"#, "prompt.variables"),
    (r#""conversation":{}"#, "conversation.id"),
    (r#""context_management":{}"#, "context_management"),
    (r#""context_management":[{}]"#, "context_management[0].type"),
    (
        r#""context_management":[{"type":"compaction","compact_threshold":"x"}]"#,
        "context_management[0].compact_threshold",
    ),
    (r#""tool_choice":"sometimes""#, "tool_choice"),
    (r#""tool_choice":{}"#, "tool_choice.type"),
    (r#""tool_choice":{"type":"function"}"#, "tool_choice.name"),
    (r#""tool_choice":{"type":"allowed_tools","mode":"never","tools":[]}"#, "tool_choice.mode"),
    (r#""tool_choice":{"type":"allowed_tools","mode":"auto"}"#, "tool_choice.tools"),
    (r#""tools":[{"type":"custom","name":"a","format":"text"}]"#, "tools[0].format"),
    (r#""tools":[{"type":"namespace","tools":[{"type":"function","name":"a"}]}]"#, "tools[0].name"),
    (r#""input":[{"type":"function_call_output","call_id":"c"}]"#, "input[0].output"),
    (r#""input":[{"type":"custom_tool_call_output","call_id":"c","output":true}]"#, "input[0].output"),
    (r#""input":[{"type":"item_reference"}]"#, "input[0].id"),
];

/// What a client of responses may send.
const RESPONSES_PASSES: &[&str] = &[
    r#""include":[],"background":false,"truncation":"disabled","max_output_tokens":16"#,
    r#""include":null,"background":null,"truncation":null,"stream_options":null,"prompt":null"#,
    r#""metadata":null,"text":null,"reasoning":null,"conversation":null,"max_tool_calls":null"#,
    r#""text":{"format":null,"verbosity":null},"reasoning":{"effort":null,"summary":null}"#,
    r#""temperature":0,"top_p":1.0,"presence_penalty":2,"top_logprobs":0"#,
];

/// Returns a request of that path which is valid but for what is put into it.
fn around(path: &str, fields: &str) -> String {
    let valid = match path {
        "chat/completions" => r#"{"model":"chat","messages":[{"role":"user","content":"hi"}]"#,
        "messages" => r#"{"model":"messages","max_tokens":10,"messages":[{"role":"user","content":"hi"}]"#,
        _ => r#"{"model":"responses","input":"hi""#,
    };
    // Of a field that is given twice the last counts.
    format!("{valid},{fields}}}")
}

#[tokio::test]
async fn what_no_provider_takes_is_refused_by_the_name_of_the_field() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (path, table) in PATHS.into_iter().zip([CHAT, MESSAGES, RESPONSES]) {
        for (fields, field) in table {
            let body = around(path, fields);
            let request = http.post(format!("{}/v1/{path}", house.url)).body(body.clone());
            let error = refused(path, request.send().await.unwrap(), &body).await;
            assert_eq!(error["code"], "throughline_invalid_request", "{path} {body}");
            let message = error["message"].as_str().unwrap();
            assert_eq!(message.split(": ").next(), Some(*field), "{path} {body}: {message}");
        }
    }
    assert_nothing_sent(&house);
    house.stop().await;
}

#[tokio::test]
async fn what_a_provider_takes_is_not_refused() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    let tables = [CHAT_PASSES, MESSAGES_PASSES, RESPONSES_PASSES];
    for (path, table) in PATHS.into_iter().zip(tables) {
        for fields in table {
            let body = around(path, fields);
            let response = http.post(format!("{}/v1/{path}", house.url)).body(body.clone()).send().await;
            let text = response.unwrap().text().await.unwrap();
            // The simulated backend may still be of another opinion: it is as strict as a model is.
            assert!(!text.contains("throughline_"), "{path} {body}: {text}");
        }
    }
    let asked: usize = house.sims.values().map(|sim| sim.recorded().len()).sum();
    assert_eq!(asked, tables.iter().map(|table| table.len()).sum::<usize>());
    house.stop().await;
}

#[tokio::test]
async fn several_answers_are_refused_with_the_reason() {
    let house = House::new(one_of_each()).await;
    let request = reqwest::Client::new().post(format!("{}/v1/chat/completions", house.url));
    let response = request.body(around("chat/completions", r#""n":3"#)).send().await.unwrap();
    let error = refused("chat/completions", response, "n").await;
    assert_eq!(error["param"], "n");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("must be 1, not 3: the gateway keeps one answer"), "{message}");
    house.stop().await;
}
