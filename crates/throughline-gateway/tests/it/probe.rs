//! What a backend says of itself, and that it counts.

use crate::client::Client;
use crate::house::{House, Map, Room};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_gateway::capability::{Ability, Evidence, Learned, Verdict, from_listing};
use throughline_gateway::config::{Backend, Credential, Flags, load};
use throughline_gateway::gateway::now;
use throughline_gateway::probe::{Probe, Reached};
use throughline_gateway::verdicts;
use throughline_store::{Batch, History, Memory, Standing};

const LISTING: &str = r#"{"data": [{"id": "model-of-old", "capabilities": {"native_tool_history": false}}]}"#;

fn backend() -> Arc<Backend> {
    let text = "[[backends]]\nname = \"old\"\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
    Arc::clone(&load(&Map(text.to_owned()), &flags).unwrap().backends[0])
}

fn probe(reached: Reached) -> Probe {
    Probe { reached, abilities: Vec::new() }
}

#[tokio::test]
async fn a_verdict_of_a_listing_spares_the_failing_attempt() {
    let history = Arc::new(Memory::new());
    let lessons =
        probe(Reached::Listed(from_listing(LISTING))).lessons(&backend(), &Standing::default(), now());
    assert_eq!(lessons.len(), 1);
    history.append(Batch::durable(lessons)).await.unwrap();
    let mut room = Room::new("old", Dialect::Chat);
    room.options.reject_native = true;
    let house = House::with_history(vec![room], history).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Please read the file notes.txt");
    let answer = client.ask("old").await;
    client.result(&answer.calls(Dialect::Chat)[0].id, "a line");
    let answer = client.ask("old").await;
    assert!(answer.header("x-throughline-report").ends_with("strategy=text-embed"));
    house.assert_nothing_refused();
    house.stop().await;
}

#[test]
fn an_attempt_is_believed_over_a_listing() {
    let (backend, at) = (backend(), now());
    let tried =
        Learned::new(Ability::NativeToolHistory, Verdict::Yes, Evidence::Tried, "it worked".into(), at.0);
    let kept = verdicts::keep(&backend.name, "model-of-old".into(), &tried);
    let throughline_store::Write::Learned(kept) = kept else { panic!("{kept:?}") };
    let standing = Standing { learned: vec![kept], ..Standing::default() };
    let lessons = probe(Reached::Listed(from_listing(LISTING))).lessons(&backend, &standing, at);
    assert!(lessons.is_empty(), "{lessons:?}");
}

#[test]
fn each_refusal_comes_with_what_to_do() {
    let advice = |status, credential: &Credential| {
        probe(Reached::Refused { status, message: "no".into() }).advice(credential)
    };
    assert_eq!(advice(401, &Credential::None), Some("check its api_key"));
    assert_eq!(advice(401, &Credential::Passthrough), None);
    for status in [400, 429, 500, 529] {
        assert!(advice(status, &Credential::Passthrough).is_some(), "{status}");
    }
    assert_eq!(probe(Reached::Unlisted).advice(&Credential::None), None);
}
