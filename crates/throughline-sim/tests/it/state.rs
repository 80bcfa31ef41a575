//! Responses that are kept, and requests that go on from them.

use crate::client::{Client, path, request, words};
use serde_json::{Value, json};
use throughline_core::Dialect::Responses;
use throughline_sim::SimOptions;

/// Returns a request with the result of the call in `response`, and nothing else.
fn result_of(response: &Value) -> Value {
    let call = &response["output"][0]["call_id"];
    let mut body = request(Responses, "", false);
    body["previous_response_id"] = response["id"].clone();
    body["input"] = json!([{"type": "function_call_output", "call_id": call, "output": "kept"}]);
    body
}

#[tokio::test]
async fn a_conversation_goes_on_from_a_kept_response() {
    let client = Client::new(SimOptions::default()).await;
    let first = client.post(path(Responses), &request(Responses, "Read a.txt", false)).await.json();
    let second = client.post(path(Responses), &result_of(&first)).await;
    assert_eq!(words(&second.reply(Responses)), "read_file returned:\nkept");
    assert_eq!(second.json()["previous_response_id"], first["id"]);
    let third = json!({"model": "sim", "previous_response_id": second.json()["id"],
        "input": "From memory: what was in a.txt?", "stream": true});
    assert_eq!(words(&client.ask(Responses, &third).await), "read_file returned:\nkept");
}

#[tokio::test]
async fn a_call_of_a_kept_response_must_be_answered() {
    let client = Client::new(SimOptions::default()).await;
    let first = client.post(path(Responses), &request(Responses, "Read a.txt", false)).await.json();
    let body = json!({"model": "sim", "previous_response_id": first["id"], "input": "And now?"});
    let said = client.post(path(Responses), &body).await.refusal(400);
    assert!(said.starts_with("No tool output found for function call call_"), "{said}");
}

#[tokio::test]
async fn unknown_responses_are_not_found() {
    let client = Client::new(SimOptions::default()).await;
    let first = client.post(path(Responses), &request(Responses, "Read a.txt", false)).await.json();
    let stateless = Client::new(SimOptions { stateless: true, ..SimOptions::default() }).await;
    let answer = stateless.post(path(Responses), &result_of(&first)).await;
    assert_eq!(answer.json()["error"]["code"], "previous_response_not_found");
    answer.refusal(404);
    let mut unstored = request(Responses, "Read a.txt", false);
    unstored["store"] = json!(false);
    let first = client.post(path(Responses), &unstored).await.json();
    let answer = client.post(path(Responses), &result_of(&first)).await;
    assert_eq!(answer.json()["error"]["param"], "previous_response_id");
    answer.refusal(400);
}

#[tokio::test]
async fn kept_responses_can_be_read_and_deleted() {
    let client = Client::new(SimOptions::default()).await;
    let first = client.post(path(Responses), &request(Responses, "Read a.txt", true)).await;
    let id = first.streamed(Responses).id.expect("a response has an id");
    let place = format!("/v1/responses/{id}");
    assert_eq!(client.get(&place).await.json()["output"][0]["name"], "read_file");
    assert_eq!(client.get(&format!("{place}/input_items")).await.json()["data"][0]["content"], "Read a.txt");
    assert_eq!(client.delete(&place).await.json()["deleted"], true);
    client.get(&place).await.refusal(404);
    client.delete(&place).await.refusal(404);
}

#[tokio::test]
async fn items_are_found_by_their_id_or_not_at_all() {
    let client = Client::new(SimOptions::default()).await;
    let first = client.post(path(Responses), &json!({"model": "sim", "input": "hello"})).await.json();
    let id = &first["output"][0]["id"];
    let body = json!({"model": "sim", "input": [
        {"type": "item_reference", "id": id}, {"role": "user", "content": "again"}]});
    let said = words(&client.ask(Responses, &body).await);
    assert!(said.starts_with("I saw 1 user message and 1 assistant message"), "{said}");
    let body = json!({"model": "sim", "input": [
        {"type": "item_reference", "id": "msg_none"}, {"role": "user", "content": "again"}]});
    assert_eq!(client.post(path(Responses), &body).await.refusal(404), "Item with id 'msg_none' not found.");
}
