//! What is not to be kept is not in the file: secrets that are taken out, requests that are not stored, and
//! conversations that are deleted. The backend is sent what was said all the same.

use crate::client::Client;
use crate::house::{House, Room};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_sim::Script;
use throughline_store::{Conversations, History, Paging, Search, Sqlite, SqliteOptions};

const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRETS: &str =
    "[privacy]\nsecrets = true\n[[privacy.redact]]\nname = \"staff\"\npattern = \"EMP-[0-9]{6}\"\n";

/// A history in a file of its own.
struct Kept {
    file: PathBuf,
    history: Arc<Sqlite>,
}

impl Kept {
    fn new(name: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("privacy-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("history.db");
        let history = Arc::new(Sqlite::open(&file, SqliteOptions::default()).unwrap());
        Self { file, history }
    }

    /// Says whether a text is in the file, in its log, or in anything that can be read of it.
    async fn holds(&self, text: &str) -> bool {
        let found = self.history.search(Search { words: text.into(), ..Search::default() }).await.unwrap();
        let raw = ["history.db", "history.db-wal"].iter().any(|name| {
            let bytes = std::fs::read(self.file.with_file_name(name)).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        });
        raw || !found.items.is_empty()
    }

    async fn conversations(&self) -> usize {
        self.history.conversations(Conversations::All(Paging::default())).await.unwrap().items.len()
    }
}

async fn house(kept: &Kept, rooms: Vec<Room>, lines: &str) -> House {
    House::with_lines(rooms, Arc::clone(&kept.history) as Arc<dyn History>, lines).await
}

#[tokio::test]
async fn a_secret_reaches_the_backend_and_not_the_file() {
    for to in Dialect::ALL {
        let kept = Kept::new(&format!("redacted-{to}"));
        let house = house(&kept, vec![Room::new("only", to)], SECRETS).await;
        for from in Dialect::ALL {
            let mut client = Client::new(&house.url, from);
            client.say(&format!("Please read the file config of EMP-123456, the key is {KEY}"));
            let first = client.ask("only").await;
            let call = first.calls(from).into_iter().next().unwrap();
            client.result(&call.id, &format!("aws_access_key_id = {KEY}"));
            let second = client.ask("only").await;
            assert!(second.text(from).contains(KEY), "the model quotes what it was shown: {}", second.raw);
            client.say("Thank you.");
            let third = client.ask("only").await;
            let conversations =
                [&first, &second, &third].map(|answer| answer.header("x-throughline-conversation"));
            assert!(
                conversations.iter().all(|id| *id == conversations[0]),
                "{from} to {to}: {conversations:?}"
            );
        }
        let sent = house.recorded("only");
        assert!(sent.iter().all(|sent| sent.body.contains(KEY)), "backends are sent what was said");
        house.assert_nothing_refused();
        house.stop().await;
        assert!(!kept.holds(KEY).await && !kept.holds("EMP-123456").await, "{to}");
        assert!(kept.holds("redacted aws key").await, "{to}: the test can fail");
    }
}

#[tokio::test]
async fn what_was_taken_out_is_not_brought_back_by_recall() {
    let kept = Kept::new("recalled");
    let turns = json!({"turns": [
        {"calls": [{"name": "recall", "arguments": {"query": "needle"}}]},
        {"text": "Found.", "quote": true},
    ]});
    let mut later = Room::new("later", Dialect::Chat);
    later.options.script = Some(Script::parse(&turns.to_string()).unwrap());
    let lines = format!("{SECRETS}\n[handover]\nmax_result_chars = 2000\n");
    let house = house(&kept, vec![Room::new("first", Dialect::Messages), later], &lines).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Please read the file notes.txt");
    let call = client.ask("first").await.calls(Dialect::Messages).remove(0);
    let hay = "hay\n".repeat(2_000);
    client.result(&call.id, &format!("{hay}needle aws_access_key_id = {KEY}\n{hay}"));
    let id = client.ask("first").await.header("x-throughline-conversation").to_owned();
    // The new conversation is told of the old one from the record, and what is cut of that can be had back.
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.headers = vec![("x-throughline-continue", id)];
    client.say("What is the key?");
    let answer = client.ask("later").await;
    let text = answer.text(Dialect::Messages);
    assert!(text.contains("needle aws_access_key_id = [redacted:aws-key]"), "{text}");
    assert!(house.recorded("later").iter().all(|sent| !sent.body.contains(KEY)));
    house.assert_nothing_refused();
    house.stop().await;
    assert!(!kept.holds(KEY).await);
}

#[tokio::test]
async fn a_secret_that_a_model_says_in_pieces_is_not_in_the_file() {
    let kept = Kept::new("pieces");
    let house = house(&kept, vec![Room::new("only", Dialect::Chat)], SECRETS).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say(&format!("Say {KEY}"));
    let mut body = client.body("only");
    body["stream"] = true.into();
    body.as_object_mut().unwrap().remove("tools");
    let answer = client.post(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.raw);
    house.stop().await;
    assert!(!kept.holds(KEY).await);
    assert_eq!(kept.conversations().await, 1);
}

#[tokio::test]
async fn what_is_not_to_be_stored_is_not_there() {
    let kept = Kept::new("unstored");
    let mut silent = Room::new("silent", Dialect::Chat);
    silent.lines = "store = false";
    let house = house(&kept, vec![Room::new("usual", Dialect::Chat), silent], "").await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("the word is marmalade");
    let answer = client.ask("silent/m").await;
    assert_eq!((answer.status, answer.header("x-throughline-recorded")), (200, "no"), "{}", answer.raw);
    assert!(!kept.holds("marmalade").await);
    assert_eq!(kept.conversations().await, 0);

    let ask = |value: &'static str| {
        let body = serde_json::json!({"model": "usual/m", "input": "the word is marmalade"});
        let request = reqwest::Client::new().post(format!("{}/v1/responses", house.url));
        async move { request.header("x-throughline-store", value).body(body.to_string()).send().await.unwrap() }
    };
    let answer = ask("false").await;
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["x-throughline-recorded"].to_str().unwrap()),
        (200, "no")
    );
    assert_eq!(ask("perhaps").await.status().as_u16(), 400);
    assert!(!kept.holds("marmalade").await);
    assert_eq!(ask("true").await.status().as_u16(), 200);
    assert!(kept.holds("marmalade").await, "the test can fail");
    house.stop().await;
}

#[tokio::test]
async fn a_deleted_conversation_is_not_in_the_file() {
    let kept = Kept::new("deleted");
    let house = house(&kept, vec![Room::new("only", Dialect::Chat)], "").await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("the word is marmalade");
    let answer = client.ask("only").await;
    let id = answer.header("x-throughline-conversation").to_owned();
    assert!(kept.holds("marmalade").await);
    let delete = || reqwest::Client::new().delete(format!("{}/api/conversations/{id}", house.url)).send();
    assert_eq!(delete().await.unwrap().status().as_u16(), 200);
    assert_eq!(delete().await.unwrap().status().as_u16(), 404);
    assert!(!kept.holds("marmalade").await);
    client.say("and on it goes");
    let answer = client.ask("only").await;
    assert_eq!(answer.status, 200, "{}", answer.raw);
    assert_ne!(answer.header("x-throughline-conversation"), id, "the client begins anew");
    house.stop().await;
}
