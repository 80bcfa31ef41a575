//! What OpenResponses demands of tools, settings, input and errors, and what real clients need there: each
//! demand a test, against backends of all three dialects.

use crate::client::{Answer, Client};
use crate::conformance::framed;
use crate::house::{House, Room, one_of_each};
use crate::stream::{check_response, check_stream};
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_sim::Script;

const READ_FILE: &str = "Please read the file notes.txt";

fn asking(house: &House, text: &str, extra: Value) -> Client {
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say(text);
    client.extra = extra;
    client
}

fn function(name: &str, description: &str) -> Value {
    json!({"type": "function", "name": name, "description": description, "strict": false, "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}})
}

/// Returns a gateway whose backends all follow a script.
async fn scripted(script: &str) -> House {
    let mut rooms = one_of_each();
    for room in &mut rooms {
        room.options.script = Some(Script::parse(script).unwrap());
    }
    House::new(rooms).await
}

fn types(answer: &Answer) -> Vec<&str> {
    answer.body["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_choice_of_tools_is_kept() {
    let house = House::new(one_of_each()).await;
    let tools = json!([function("read_file", "Reads a file."), function("list_files", "Lists files.")]);
    for backend in Dialect::ALL {
        let ask = async |text: &str, choice: Value| {
            let mut client = asking(&house, text, json!({"tools": tools, "tool_choice": choice}));
            let answer = client.ask(backend.name()).await;
            check_response(&answer.body);
            answer
        };
        let none = ask(READ_FILE, json!("none")).await;
        assert!(none.calls(Dialect::Responses).is_empty(), "{backend}: {}", none.raw);
        assert_eq!(none.body["tool_choice"], "none");
        let required = ask("Hello", json!("required")).await;
        assert!(!required.calls(Dialect::Responses).is_empty(), "{backend}: {}", required.raw);
        let named = ask(READ_FILE, json!({"type": "function", "name": "list_files"})).await;
        let called: Vec<String> = named.calls(Dialect::Responses).into_iter().map(|call| call.name).collect();
        assert_eq!(called, ["list_files"], "{backend}: {}", named.raw);
        let allowed = json!({"type": "allowed_tools", "tools": [{"type": "function", "name": "list_files"}]});
        let allowed = ask(READ_FILE, allowed).await;
        assert_eq!(allowed.body["tool_choice"]["mode"], "auto", "the mode is always stated");
        assert_eq!(allowed.body["tools"].as_array().unwrap().len(), 2, "all tools stay on offer");
        let calls = allowed.calls(Dialect::Responses);
        assert!(!calls.is_empty() && calls.iter().all(|call| call.name == "list_files"), "{backend}");
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert_eq!(sent.contains("Reads a file."), backend != Dialect::Messages, "{sent}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_call_that_is_not_allowed_is_not_passed_on() {
    let call = r#"{"name": "delete_all", "arguments": {"path": "/"}}"#;
    let silent = format!(r#"{{"turns": [{{"calls": [{call}]}}], "then": "last"}}"#);
    let spoken = format!(r#"{{"turns": [{{"text": "Let me see.", "calls": [{call}]}}], "then": "last"}}"#);
    let tools = json!([function("read_file", "Reads a file."), function("delete_all", "Deletes.")]);
    let choices = [
        json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read_file"}]}),
        json!("none"),
    ];
    for (script, begins) in [(&silent, false), (&spoken, true)] {
        let house = scripted(script).await;
        for backend in Dialect::ALL {
            for choice in &choices {
                for stream in [false, true] {
                    let extra = json!({"tools": tools, "tool_choice": choice});
                    let mut client = asking(&house, "Go on", extra);
                    client.stream = stream;
                    let answer = client.post(&client.body(backend.name())).await;
                    let what = format!("{backend}, {choice}, stream {stream}: {}", answer.raw);
                    let error = if stream && begins {
                        let events = framed(&answer.raw);
                        let failed = check_stream(&events);
                        assert_eq!(failed["status"], "failed", "{what}");
                        assert!(!failed["output"].to_string().contains("function_call"), "{what}");
                        failed["error"].clone()
                    } else {
                        assert_eq!(answer.status, 502, "{what}");
                        serde_json::from_str::<Value>(&answer.raw).unwrap()["error"].clone()
                    };
                    assert_eq!(error["code"], "throughline_tool_not_allowed", "{what}");
                    assert!(error["message"].as_str().unwrap().contains("delete_all"), "{what}");
                    assert!(!answer.raw.contains("\"type\":\"function_call\""), "{what}");
                }
            }
        }
        house.stop().await;
    }
}

#[tokio::test]
async fn a_custom_tool_is_called_with_free_text() {
    let house = House::new(one_of_each()).await;
    let tools = json!([{"type": "custom", "name": "apply_patch", "description": "Applies a patch to a file.",
        "format": {"type": "text"}}]);
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let mut client = asking(&house, "Please apply_patch to notes.txt", json!({"tools": tools}));
            client.stream = stream;
            let answer = client.ask(backend.name()).await;
            let output = answer.body["output"].as_array().unwrap();
            let call = output.iter().find(|item| item["type"] == "custom_tool_call").unwrap_or_else(|| {
                panic!("{backend}: {}", answer.raw);
            });
            assert_eq!(call["name"], "apply_patch");
            assert!(call["input"].is_string() && call.get("arguments").is_none(), "{call}");
            assert!(call["id"].as_str().unwrap().starts_with("ctc_"), "{call}");
            if stream {
                let events = framed(&answer.raw);
                let has = |name: &str| events.iter().any(|event| event["type"] == name);
                assert!(has("response.custom_tool_call_input.done"), "{backend}: {}", answer.raw);
            }
            client.history.push(json!({"type": "custom_tool_call_output", "call_id": call["call_id"],
                "output": "the patch was applied"}));
            let done = client.ask(backend.name()).await;
            assert!(
                done.text(Dialect::Responses).contains("the patch was applied"),
                "{backend}: {}",
                done.raw
            );
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_tool_of_a_namespace_comes_back_with_it() {
    let house = House::new(one_of_each()).await;
    let tools = json!([{"type": "namespace", "name": "files", "description": "Works on files.",
        "tools": [function("read_file", "Reads a file.")]}]);
    for backend in Dialect::ALL {
        let mut client = asking(&house, READ_FILE, json!({"tools": tools}));
        let answer = client.ask(backend.name()).await;
        let output = answer.body["output"].as_array().unwrap();
        let call = output.iter().find(|item| item["type"] == "function_call").unwrap();
        assert_eq!((&call["namespace"], &call["name"]), (&json!("files"), &json!("read_file")), "{backend}");
        client.result(call["call_id"].as_str().unwrap(), "what the file says");
        assert!(client.ask(backend.name()).await.raw.contains("what the file says"), "{backend}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn tools_that_nobody_knows_are_no_reason_to_refuse() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let tools = json!([function("read_file", "Reads a file."), {"type": "web_search"},
            {"type": "local_shell"}, {"type": "acme:teleport", "range": 3}]);
        // A provider of the dialect is asked itself, and says no to what it has never heard of.
        let known = if backend == Dialect::Responses { 3 } else { 4 };
        let tools = json!(tools.as_array().unwrap()[..known]);
        let client = asking(&house, READ_FILE, json!({"tools": tools}));
        let answer = client.post(&client.body(backend.name())).await;
        assert_eq!(answer.status, 200, "{backend}: {}", answer.raw);
        assert_eq!(types(&answer), ["function_call"], "{backend}");
        if backend != Dialect::Responses {
            assert!(answer.header("x-throughline-report").contains("dropped=3"), "{:?}", answer.headers);
        }
    }
    house.stop().await;
}

#[tokio::test]
async fn what_was_set_is_said_again_in_the_answer() {
    let house = House::new(one_of_each()).await;
    let set = json!({
        "instructions": "Be brief.", "metadata": {"a": "b"}, "temperature": 0.5, "max_output_tokens": 64,
        "max_tool_calls": 3, "parallel_tool_calls": false, "truncation": "auto",
        "safety_identifier": "someone", "prompt_cache_key": "thread", "store": true, "tool_choice": "auto",
    });
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let mut client = asking(&house, "Hello", set.clone());
            client.stream = stream;
            let answer = client.ask(backend.name()).await;
            check_response(&answer.body);
            for (name, value) in set.as_object().unwrap() {
                assert_eq!(&answer.body[name], value, "{name}, {backend}, stream {stream}");
            }
            assert_eq!(answer.body["background"], false);
            assert_eq!(answer.body["text"]["format"]["type"], "text");
            assert!(answer.body["usage"]["total_tokens"].as_u64().unwrap() > 0, "{backend}: {}", answer.raw);
            let tool = &answer.body["tools"][0];
            assert!(["description", "parameters", "strict"].iter().all(|name| tool.get(name).is_some()));
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn an_answer_has_the_form_that_was_asked_for() {
    let house = House::new(one_of_each()).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": false});
    let format = json!({"type": "json_schema", "name": "place", "strict": true, "schema": schema});
    for backend in Dialect::ALL {
        let extra = json!({"tools": [], "text": {"format": format, "verbosity": "low"}});
        let answer = asking(&house, "Where?", extra).ask(backend.name()).await;
        check_response(&answer.body);
        let said: Value = serde_json::from_str(&answer.text(Dialect::Responses)).unwrap_or_else(|_| {
            panic!("{backend}: {}", answer.raw);
        });
        assert!(said["city"].is_string(), "{backend}: {said}");
        assert_eq!(answer.body["text"]["format"]["name"], "place");
    }
    house.stop().await;
}

#[tokio::test]
async fn every_form_of_input_is_taken() {
    let house = House::new(one_of_each()).await;
    let pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let input = json!([
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": "a string", "id": null, "status": null},
        {"role": "user", "content": [{"type": "input_text", "text": "a part"},
            {"type": "input_image", "image_url": pixel, "detail": "low"}]},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": "a commentary"},
        {"type": "message", "role": "assistant", "phase": "final_answer",
            "content": [{"type": "output_text", "text": "an answer", "annotations": []}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "a thought"}],
            "encrypted_content": null},
        {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{\"path\":\"a\"}"},
        {"type": "function_call_output", "call_id": "call_1",
            "output": [{"type": "input_text", "text": "a result in parts"}]},
        {"role": "user", "content": "Where were we?"},
    ]);
    for backend in Dialect::ALL {
        let mut input = input.clone();
        if backend == Dialect::Responses {
            // The provider itself takes its reasoning back sealed, or not at all.
            input[5]["content"] = json!([]);
        }
        let client = asking(&house, "", json!({"input": input}));
        let answer = client.post(&client.body(backend.name())).await;
        assert_eq!(answer.status, 200, "{backend}: {}", answer.raw);
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        let texts =
            ["a string", "a part", "a commentary", "an answer", "a result in parts", "Where were we?"];
        for text in texts {
            assert!(sent.contains(text), "{backend}: {text}: {sent}");
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn an_item_of_an_implementor_is_carried_or_reported() {
    let house = House::new(one_of_each()).await;
    let item = json!({"type": "acme:note", "id": "note_1", "status": "completed", "text": "hidden"});
    for backend in [Dialect::Chat, Dialect::Messages] {
        let mut client = asking(&house, "Hello", json!({}));
        client.history.insert(0, item.clone());
        let answer = client.ask(backend.name()).await;
        assert!(answer.header("x-throughline-report").contains("dropped=1"), "{backend}");
        assert!(!answer.raw.contains("acme:"), "none is made that was not asked for");
    }
    let mut client = asking(&house, "Hello", json!({}));
    client.history.insert(0, item);
    client.post(&client.body("responses")).await;
    assert!(house.recorded("responses").pop().unwrap().body.contains("acme:note"));
    house.stop().await;
}

#[tokio::test]
async fn fields_of_openai_alone_are_taken() {
    let house = House::new(one_of_each()).await;
    let extra = json!({
        "user": "someone", "prompt_cache_retention": "24h", "client_metadata": {"a": "b"},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs", "file_search_call.results",
            "web_search_call.results", "computer_call_output.output.image_url",
            "code_interpreter_call.outputs", "message.input_image.image_url"],
        "stream_options": {"include_obfuscation": false},
    });
    for backend in [Dialect::Chat, Dialect::Messages] {
        let mut client = asking(&house, "Hello", extra.clone());
        client.stream = true;
        client.ask(backend.name()).await;
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn the_item_that_was_cut_off_is_incomplete_and_last() {
    let house = scripted(r#"{"turns": [{"text": "cut", "stop": "max_tokens"}], "then": "last"}"#).await;
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let mut client = asking(&house, "Hello", json!({}));
            client.stream = stream;
            let answer = client.post(&client.body(backend.name())).await;
            let items = answer.body["output"].as_array().unwrap();
            let (last, rest) = items.split_last().unwrap();
            assert_eq!(last["status"], "incomplete", "{backend}, stream {stream}: {}", answer.raw);
            assert!(rest.iter().all(|item| item["status"] == "completed"));
        }
    }
    house.stop().await;
}

#[tokio::test]
async fn reasoning_is_streamed_under_the_name_that_the_client_knows() {
    let script = r#"{"turns": [{"reasoning": "a deep thought", "text": "done"}], "then": "last"}"#;
    let house = scripted(script).await;
    let clients = [
        ("my-client/1.0", "response.reasoning.delta"),
        ("OpenAI/Python 3.49.0", "response.reasoning_text.delta"),
        ("codex_cli_rs/0.99.0", "response.reasoning_text.delta"),
    ];
    // Of the simulated backends this one alone shows its reasoning raw.
    let backend = Dialect::Messages;
    for (agent, name) in clients {
        let mut client = asking(&house, "Hello", json!({"reasoning": {"effort": "high"}}));
        client.stream = true;
        client.headers = vec![("user-agent", agent.to_owned())];
        let raw = client.ask(backend.name()).await.raw;
        let events = framed(&raw);
        check_stream(&events);
        let deltas = events.iter().filter(|event| event["delta"].is_string());
        let of_it = deltas.filter(|event| event["type"] == name);
        let said: String = of_it.filter_map(|event| event["delta"].as_str()).collect();
        assert_eq!(said, "a deep thought", "{backend}, {agent}: {raw}");
    }
    house.stop().await;
}

#[tokio::test]
async fn nothing_optional_is_null_in_an_item() {
    let script = r#"{"turns": [{"reasoning": "why", "text": "so", "calls": [{"name": "read_file",
        "arguments": {"path": "a"}}]}], "then": "last"}"#;
    let house = scripted(script).await;
    for backend in Dialect::ALL {
        let mut client = asking(&house, "Hello", json!({"reasoning": {"effort": "high"}}));
        let answer = client.ask(backend.name()).await;
        for item in answer.body["output"].as_array().unwrap() {
            let mut fields = item.as_object().unwrap().iter();
            assert!(fields.all(|(_, value)| !value.is_null()), "{backend}: {item}");
        }
        let message = answer.body["output"].as_array().unwrap().iter().find(|item| item["type"] == "message");
        assert!(message.unwrap()["content"][0]["annotations"].is_array(), "{backend}");
    }
    house.stop().await;
}

#[tokio::test]
async fn an_error_has_the_type_of_its_status() {
    let table = [
        (400, "invalid_request_error"),
        (404, "not_found"),
        (401, "authentication_error"),
        (500, "server_error"),
    ];
    for (status, expected) in table {
        let script = json!({"turns": [{"error": {"status": status, "message": "no",
            "headers": {"retry-after": "0"}}}], "then": "last"});
        let house = scripted(&script.to_string()).await;
        for backend in Dialect::ALL {
            let client = asking(&house, "Hello", json!({}));
            let answer = client.post(&client.body(backend.name())).await;
            assert!(answer.status >= 400, "{}", answer.raw);
            assert_eq!(answer.body["error"]["type"], expected, "{backend}: {}", answer.raw);
            assert!(answer.body["error"]["message"].is_string());
            assert!(
                answer.body["error"].get("param").is_some() && answer.body["error"].get("code").is_some()
            );
        }
        house.stop().await;
    }
}

#[tokio::test]
async fn a_response_that_is_not_to_be_stored_cannot_be_had_again() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let answer = asking(&house, "Hello", json!({"store": false})).ask(backend.name()).await;
        assert_eq!(answer.body["store"], false, "{backend}");
        let url = format!("{}/v1/responses/{}", house.url, answer.body["id"].as_str().unwrap());
        for path in ["", "/input_items"] {
            assert_eq!(reqwest::get(format!("{url}{path}")).await.unwrap().status(), 404, "{backend}");
        }
        let cancel = reqwest::Client::new().post(format!("{url}/cancel")).send().await.unwrap();
        assert_eq!(cancel.status(), 404, "{backend}");
    }
    house.stop().await;
}

#[tokio::test]
async fn instructions_are_not_inherited() {
    // What a backend keeps by itself cannot be seen in what it is sent.
    let whole = |room| Room { lines: "server_state = \"never\"", ..room };
    let house = House::new(one_of_each().into_iter().map(whole).collect()).await;
    for backend in Dialect::ALL {
        let first = asking(&house, "Hello", json!({"instructions": "Speak like a pirate."}));
        let mut first = first;
        let id = first.ask(backend.name()).await.body["id"].clone();
        let next = asking(&house, "And now?", json!({"previous_response_id": id}));
        let answer = next.post(&next.body(backend.name())).await;
        assert_eq!(answer.body["instructions"], Value::Null, "{backend}");
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert!(!sent.contains("pirate") && sent.contains("Hello"), "{backend}: {sent}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_path_answers_in_json_whatever_is_wrong_with_the_request() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    let wrong = [
        (http.put(format!("{}/v1/responses", house.url)), 405),
        (http.get(format!("{}/v1/nothing", house.url)), 404),
    ];
    for (request, status) in wrong {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status);
        let error: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string(), "{error}");
    }
    house.stop().await;
}

#[tokio::test]
async fn codex_is_given_the_models_in_its_own_shape() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (agent, is_codex) in [("codex_cli_rs/0.99.0", true), ("OpenAI/Python 3.49.0", false)] {
        let request = http.get(format!("{}/v1/models", house.url)).header("user-agent", agent);
        let listed: Value =
            serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
        assert_eq!(listed["models"].is_array(), is_codex, "{listed}");
        assert!(listed["data"].is_array(), "{listed}");
    }
    house.stop().await;
}
