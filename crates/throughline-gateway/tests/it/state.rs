//! Stateful Responses from our own history, over backends that keep nothing.

use crate::client::Client;
use crate::house::{House, one_of_each};
use serde_json::{Value, json};
use throughline_core::Dialect;

#[tokio::test]
async fn previous_response_id_works_over_every_backend() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let mut client = Client::new(&house.url, Dialect::Responses);
            client.stream = stream;
            client.say(&format!("Please read the file {backend}-{stream}.txt"));
            let answer = client.ask(backend.name()).await;
            let call = answer.calls(Dialect::Responses).remove(0);
            let previous = answer.body["id"].as_str().unwrap().to_owned();
            client.history.clear();
            client.result(&call.id, "what the file says");
            client.extra = json!({"previous_response_id": previous});
            let answer = client.ask(backend.name()).await;
            assert!(
                answer.text(Dialect::Responses).contains("what the file says"),
                "{backend}: {}",
                answer.raw
            );
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn an_unknown_or_unstored_previous_response_is_not_found() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say("Hello");
    client.extra = json!({"store": false});
    let answer = client.ask("chat").await;
    for previous in [answer.body["id"].clone(), Value::from("resp_nobody")] {
        client.extra = json!({"previous_response_id": previous});
        let answer = client.post(&client.body("chat")).await;
        assert_eq!(answer.status, 400, "{}", answer.raw);
        assert_eq!(answer.body["error"]["type"], "invalid_request_error");
        assert_eq!(answer.body["error"]["code"], "previous_response_not_found");
        assert_eq!(answer.body["error"]["param"], "previous_response_id");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_client_that_names_its_conversation_stays_in_it() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.headers = vec![("x-throughline-conversation", "mine".to_owned())];
    client.say("Hello");
    assert_eq!(client.ask("chat").await.header("x-throughline-conversation"), "mine");
    let mut session = Client::new(&house.url, Dialect::Messages);
    session.headers = vec![("x-claude-code-session-id", "s1".to_owned())];
    session.say("One thing");
    let first = session.ask("chat").await.header("x-throughline-conversation").to_owned();
    session.history.clear();
    session.say("Another thing, after the past was rewritten");
    assert_eq!(session.ask("messages").await.header("x-throughline-conversation"), first);
    house.stop().await;
}

#[tokio::test]
async fn a_stored_response_can_be_had_again_until_it_is_forgotten() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (backend, stream) in Dialect::ALL.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)])
    {
        let mut client = Client::new(&house.url, Dialect::Responses);
        client.stream = stream;
        client.say("Hello");
        let answer = client.ask(backend.name()).await;
        let url = format!("{}/v1/responses/{}", house.url, answer.body["id"].as_str().unwrap());
        let again: Value =
            serde_json::from_str(&http.get(&url).send().await.unwrap().text().await.unwrap()).unwrap();
        assert_eq!(again, answer.body, "{backend}");
        let forgotten = http.delete(&url).send().await.unwrap().text().await.unwrap();
        assert!(forgotten.contains("\"deleted\":true"), "{forgotten}");
        assert_eq!(http.get(&url).send().await.unwrap().status(), 404);
        assert_eq!(http.delete(&url).send().await.unwrap().status(), 404);
    }
    house.stop().await;
}

#[tokio::test]
async fn a_prompt_is_counted_without_being_sent_or_kept() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    let count = async |path: &str, body: Value| -> u64 {
        let url = format!("{}/v1/{path}", house.url);
        let text = http.post(url).body(body.to_string()).send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        answer["input_tokens"].as_u64().unwrap_or_else(|| panic!("{text}"))
    };
    let messages = |text: &str| json!({"model": "chat", "messages": [{"role": "user", "content": text}]});
    let short = count("messages/count_tokens", messages("Hello")).await;
    let long = count("messages/count_tokens", messages(&"Hello ".repeat(400))).await;
    assert!(short > 0 && long > short + 400, "{short} {long}");
    assert!(count("responses/input_tokens", json!({"model": "messages", "input": "Hello"})).await > 0);
    assert!(house.sims.values().all(|sim| sim.recorded().is_empty()));
    let kept =
        http.get(format!("{}/api/conversations", house.url)).send().await.unwrap().text().await.unwrap();
    assert!(!kept.contains("Hello"), "{kept}");
    house.stop().await;
}
