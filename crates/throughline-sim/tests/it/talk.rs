//! Conversations in each dialect, streamed and not.

use crate::client::{Client, add_pairs, calls, list, path, request, words};
use serde_json::json;
use throughline_core::{Dialect, Ending, Stop};
use throughline_sim::SimOptions;

const RESULT: &str = "first line\n\t\"second\" é 🦀\n";

#[tokio::test]
async fn a_tool_conversation_of_two_turns_in_each_dialect() {
    let client = Client::new(SimOptions::default()).await;
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let mut body = request(dialect, "Read a.txt and b.txt", stream);
            let reply = client.ask(dialect, &body).await;
            assert_eq!(reply.ending, Ending::Stopped(Stop::ToolCalls), "{dialect} {stream}");
            let made = calls(&reply);
            let inputs: Vec<&str> = made.iter().map(|call| call.input.text().as_str()).collect();
            assert_eq!(inputs, [r#"{"path":"a.txt"}"#, r#"{"path":"b.txt"}"#], "{dialect} {stream}");
            add_pairs(dialect, &mut body, &[(made[0], RESULT), (made[1], "other")]);
            let reply = client.ask(dialect, &body).await;
            let expected = format!("read_file returned:\n{RESULT}\n\nread_file returned:\nother");
            assert_eq!(words(&reply), expected, "{dialect} {stream}");
            assert_eq!(reply.ending, Ending::Stopped(Stop::EndTurn));
            let usage = reply.usage.expect("usage is told");
            assert!(usage.input > 10, "{usage:?}");
            assert_eq!(usage.output, (expected.len() as u64).div_ceil(4));

            body[list(dialect)].as_array_mut().unwrap().extend([
                json!({"role": "assistant", "content": expected}),
                json!({"role": "user", "content": "From memory: what was in b.txt?"}),
            ]);
            let reply = client.ask(dialect, &body).await;
            assert_eq!(words(&reply), "read_file returned:\nother", "{dialect} {stream}");
        }
    }
}

#[tokio::test]
async fn the_same_requests_get_the_same_answers() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let client = Client::new(SimOptions::default()).await;
        let mut bodies = Vec::new();
        for dialect in Dialect::ALL {
            bodies.push(client.post(path(dialect), &request(dialect, "Read a.txt", true)).await.body);
        }
        seen.push(bodies);
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn limits_and_stop_sequences_end_an_answer() {
    let client = Client::new(SimOptions::default()).await;
    for stream in [false, true] {
        let mut body = json!({"model": "sim", "stream": stream, "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]});
        let reply = client.ask(Dialect::Messages, &body).await;
        assert_eq!((words(&reply).as_str(), reply.ending), ("I saw 1 ", Ending::Stopped(Stop::MaxTokens)));
        body["max_tokens"] = json!(100);
        body["stop_sequences"] = json!([" user"]);
        let reply = client.ask(Dialect::Messages, &body).await;
        let stopped = Ending::Stopped(Stop::Sequence(Some(" user".into())));
        assert_eq!((words(&reply).as_str(), reply.ending), ("I saw 1", stopped));
    }
}

#[tokio::test]
async fn structured_output_satisfies_its_schema() {
    let client = Client::new(SimOptions::default()).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "unit": {"enum": ["m", "km"]}},
        "required": ["n", "unit"], "additionalProperties": false});
    let body = json!({"model": "sim", "input": "How far are 7 km?",
        "text": {"format": {"type": "json_schema", "name": "far", "schema": schema}}});
    assert_eq!(words(&client.ask(Dialect::Responses, &body).await), r#"{"n":7,"unit":"km"}"#);
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_whoever_asks() {
    let options = SimOptions { models: vec!["one".into(), "a/two".into()], ..SimOptions::default() };
    let client = Client::new(options).await;
    let openai = client.get("/v1/models").await.json();
    assert_eq!((&openai["object"], &openai["data"][1]["id"]), (&json!("list"), &json!("a/two")));
    let request =
        client.request(reqwest::Method::GET, "/v1/models").header("anthropic-version", "2023-06-01");
    let anthropic = client.send(request).await.json();
    assert_eq!((&anthropic["data"][0]["type"], &anthropic["first_id"]), (&json!("model"), &json!("one")));
    assert_eq!(client.get("/v1/models/a/two").await.json()["id"], "a/two");
    assert_eq!(client.get("/v1/models/three").await.status, 404);
    let unknown = json!({"model": "three", "messages": [{"role": "user", "content": "hi"}]});
    let answer = client.post(path(Dialect::Chat), &unknown).await;
    assert_eq!(answer.json()["error"]["code"], "model_not_found");
    answer.refusal(404);
}

#[tokio::test]
async fn tokens_are_counted_as_they_are_charged() {
    let client = Client::new(SimOptions::default()).await;
    let mut body = request(Dialect::Messages, "Read a.txt", false);
    let charged = client.ask(Dialect::Messages, &body).await.usage.expect("usage is told").input;
    body.as_object_mut().unwrap().remove("max_tokens");
    let counted = client.post("/v1/messages/count_tokens", &body).await.json();
    assert_eq!(counted, json!({"input_tokens": charged}));
    let input = request(Dialect::Responses, "Read a.txt", false);
    let counted = client.post("/v1/responses/input_tokens", &input).await.json();
    assert!(counted["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn an_unknown_path_is_refused_in_the_dialect_of_its_place() {
    let client = Client::new(SimOptions::default()).await;
    let message = client.post("/v1/responses/x/y", &json!({})).await.refusal(404);
    assert_eq!(message, "Unknown request URL: POST /v1/responses/x/y");
}
