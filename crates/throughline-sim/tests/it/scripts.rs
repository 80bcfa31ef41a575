//! Scripted answers, well and ill.

use crate::client::{Client, add_pairs, calls, path, request, words};
use serde_json::json;
use throughline_core::{Dialect, Ending, FailureKind, Stop};

#[tokio::test]
async fn turns_are_answered_in_their_order_and_then_it_thinks() {
    let script = r#"{"turns":[
        {"reasoning":"hm","text":"one","calls":[{"name":"read_file","arguments":{"path":"x"}},{"name":"other","arguments":"{\"n\": 1.10}"}]},
        {"refusal":"no"},
        {"text":"cut","stop":"max_tokens"}]}"#;
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let client = Client::scripted(script).await;
            let body = request(dialect, "Read a.txt", stream);
            let reply = client.ask(dialect, &body).await;
            assert_eq!(
                (words(&reply).as_str(), reply.ending.clone()),
                ("one", Ending::Stopped(Stop::ToolCalls))
            );
            let made: Vec<_> = calls(&reply).iter().map(|call| call.input.text().clone()).collect();
            assert_eq!(made, [r#"{"path":"x"}"#, r#"{"n": 1.10}"#], "{dialect} {stream}");
            let refused = client.ask(dialect, &body).await.ending;
            assert_eq!(refused, Ending::Stopped(Stop::Refusal), "{dialect} {stream}");
            assert_eq!(client.ask(dialect, &body).await.ending, Ending::Stopped(Stop::MaxTokens));
            assert_eq!(calls(&client.ask(dialect, &body).await).len(), 1);
        }
    }
}

#[tokio::test]
async fn errors_have_their_status_body_and_headers() {
    let client = Client::scripted(
        r#"{"turns":[
            {"error":{"status":529,"message":"Overloaded","headers":{"retry-after":"3"}}},
            {"error":{"status":502,"body":"<html>bad gateway</html>"}}],"then":"repeat"}"#,
    )
    .await;
    for dialect in Dialect::ALL {
        let body = request(dialect, "hi", true);
        let answer = client.post(path(dialect), &body).await;
        assert_eq!(answer.headers["retry-after"], "3");
        assert_eq!(answer.refusal(529), "Overloaded");
        let answer = client.post(path(dialect), &body).await;
        assert_eq!((answer.status, answer.text()), (502, "<html>bad gateway</html>"));
    }
}

#[tokio::test]
async fn a_stream_can_fail_behind_its_first_words() {
    let script = r#"{"turns":[{"text":"half of","error":{"status":503,"message":"gone"}}],"then":"last"}"#;
    let client = Client::scripted(script).await;
    for dialect in Dialect::ALL {
        let reply = client.ask(dialect, &request(dialect, "hi", true)).await;
        assert_eq!(words(&reply), "half of");
        let Ending::Failed(failure) = reply.ending else { panic!("{dialect}: {:?}", reply.ending) };
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Overloaded, "gone"), "{dialect}");
        client.post(path(dialect), &request(dialect, "hi", false)).await.refusal(503);
    }
}

#[tokio::test]
async fn a_stream_can_break_off_and_what_came_before_arrives() {
    let script = r#"{"turns":[{"text":"a long text that is cut off somewhere in its middle","cut_off":3}],"then":"last"}"#;
    let client = Client::scripted(script).await;
    for dialect in Dialect::ALL {
        let answer = client.post(path(dialect), &request(dialect, "hi", true)).await;
        assert!(!answer.is_whole);
        assert_eq!(answer.text().matches("\n\n").count(), 3, "{dialect}");
        assert_eq!(answer.streamed(dialect).ending, Ending::Broken);
    }
    assert!(client.sim.recorded().iter().all(|recorded| !recorded.completed));
    let script = r#"{"turns":[{"text":"whole","cut_off":1}]}"#;
    let answer =
        Client::scripted(script).await.post(path(Dialect::Chat), &request(Dialect::Chat, "hi", false)).await;
    assert!(!answer.is_whole && !answer.body.is_empty());
}

#[tokio::test]
async fn bytes_and_events_are_sent_as_they_are() {
    let client = Client::scripted(
        r#"{"turns":[{"malformed":"data: {oops\n\n"},
            {"events":[{"event":"ping","data":{"a":1}},{"data":"[DONE]"}]}]}"#,
    )
    .await;
    let body = request(Dialect::Chat, "hi", true);
    let answer = client.post(path(Dialect::Chat), &body).await;
    assert_eq!(answer.text(), "data: {oops\n\n");
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    let answer = client.post(path(Dialect::Chat), &body).await;
    assert_eq!(answer.text(), "event: ping\ndata: {\"a\":1}\n\ndata: [DONE]\n\n");
}

#[tokio::test]
async fn a_stream_that_hangs_ends_when_its_client_goes() {
    let client = Client::scripted(r#"{"turns":[{"text":"endless","hang":2}]}"#).await;
    let body = request(Dialect::Messages, "hi", true).to_string();
    let post = client.request(reqwest::Method::POST, path(Dialect::Messages)).body(body);
    let mut response = post.send().await.unwrap();
    let first = response.chunk().await.unwrap().expect("the first event");
    assert!(first.starts_with(b"event: message_start\n"));
    drop(response);
    assert!(!client.sim.recorded()[0].completed);
}

#[tokio::test]
async fn rules_call_until_enough_results_are_seen() {
    let script = r#"{"rules":[{"call":"read_file","until":3,"arguments":{"path":"f{n}.txt"}}]}"#;
    for dialect in Dialect::ALL {
        let client = Client::scripted(script).await;
        let mut body = request(dialect, "go", false);
        for round in 1..=3 {
            let reply = client.ask(dialect, &body).await;
            let made = calls(&reply);
            assert_eq!(made[0].input.text(), &format!(r#"{{"path":"f{round}.txt"}}"#).as_str());
            add_pairs(dialect, &mut body, &[(made[0], &format!("content {round}"))]);
        }
        assert_eq!(words(&client.ask(dialect, &body).await), "read_file returned:\ncontent 3");
    }
}

#[tokio::test]
async fn a_refused_request_takes_no_turn() {
    let client = Client::scripted(r#"{"turns":[{"text":"first"}]}"#).await;
    client.post(path(Dialect::Chat), &json!({"model": "sim"})).await.refusal(400);
    assert_eq!(words(&client.ask(Dialect::Chat, &request(Dialect::Chat, "hi", false)).await), "first");
}
