//! What was learned about a backend is used while it holds, and found out again once it has expired.

use crate::client::Client;
use crate::house::{House, Room};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_store::{Batch, Durability, History, Learned, Memory, Moment, Write};

const CONTENT: &str = "the only line of the file";

/// Returns a history in which `old` is known not to take tool history, until then.
async fn knowing(expires: i64) -> Arc<Memory> {
    let history = Memory::new();
    let learned = Learned {
        backend: "old".into(),
        model: "model-of-old".into(),
        capability: "native_tool_history".into(),
        verdict: "no".into(),
        reason: "tried: Invalid input".into(),
        at: Moment(0),
        expires: Some(Moment(expires)),
    };
    let batch = Batch { durability: Durability::Relaxed, writes: vec![Write::Learned(learned)] };
    history.append(batch).await.unwrap();
    Arc::new(history)
}

/// Has a conversation with a tool and one more turn, and returns the forms that were used for the last two.
async fn talk(house: &House) -> Vec<String> {
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Please read the file notes.txt");
    let answer = client.ask("old").await;
    client.result(&answer.calls(Dialect::Chat)[0].id, CONTENT);
    let mut forms = Vec::new();
    for _ in 0..2 {
        let answer = client.ask("old").await;
        let report = answer.header("x-throughline-report");
        forms.push(report.rsplit("strategy=").next().unwrap().to_owned());
        let sent = house.recorded("old").pop().unwrap().body;
        assert!(sent.contains(CONTENT), "the result did not reach the backend: {sent}");
        client.say("Thank you");
    }
    forms
}

async fn house(expires: i64, reject_native: bool, to: Dialect) -> (House, Arc<Memory>) {
    let mut room = Room::new("old", to);
    room.options.reject_native = reject_native;
    let history = knowing(expires).await;
    (House::with_history(vec![room], history.clone()).await, history)
}

fn statuses(house: &House) -> Vec<u16> {
    house.recorded("old").iter().map(|recorded| recorded.status).collect()
}

/// Returns the verdict that is kept, and whether it has long expired.
async fn kept(history: &Memory) -> (String, bool) {
    let standing = history.standing().await.unwrap();
    let [learned] = standing.learned.as_slice() else { panic!("{standing:?}") };
    (learned.verdict.to_string(), learned.expires.is_some_and(|expires| expires <= Moment(1)))
}

#[tokio::test]
async fn a_verdict_is_used_while_it_holds() {
    for to in Dialect::ALL {
        for reject_native in [true, false] {
            let (house, history) = house(i64::MAX, reject_native, to).await;
            assert_eq!(talk(&house).await, ["text-embed", "text-embed"], "{to}");
            assert_eq!(statuses(&house), [200, 200, 200], "no failing attempt: {to}");
            assert_eq!(kept(&history).await, ("no".to_owned(), false));
            house.stop().await;
        }
    }
}

#[tokio::test]
async fn an_expired_verdict_is_tried_again_and_remembered_again() {
    for to in Dialect::ALL {
        let (house, history) = house(1, true, to).await;
        assert_eq!(talk(&house).await, ["text-embed", "text-embed"], "{to}");
        assert_eq!(statuses(&house), [200, 400, 200, 200], "one failing attempt, and only one: {to}");
        assert_eq!(kept(&history).await, ("no".to_owned(), false));
        house.stop().await;
    }
}

#[tokio::test]
async fn a_backend_that_has_learned_since_is_shown_tool_history_again() {
    for to in Dialect::ALL {
        let (house, history) = house(1, false, to).await;
        assert_eq!(talk(&house).await, ["native", "native"], "{to}");
        assert_eq!(statuses(&house), [200, 200, 200], "{to}");
        assert_eq!(kept(&history).await, ("yes".to_owned(), false));
        house.stop().await;
    }
}
