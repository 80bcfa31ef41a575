//! Several gateways over one PostgreSQL: what one of them does holds at all of them.

use crate::client::Client;
use crate::hang_up::read_request;
use crate::house::{House, Room};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline_core::{ConversationId, Dialect};
use throughline_store::{Entries, History, Postgres, PostgresOptions};
use tokio::net::TcpListener;

/// A schema of its own for one test, gone when the test is through.
struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// Returns nothing, and says so, where there is no PostgreSQL; in continuous integration there is one.
    #[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
    async fn new(test: &str) -> Option<Self> {
        let Ok(server) = std::env::var("THROUGHLINE_TEST_POSTGRES") else {
            assert!(std::env::var_os("CI").is_none(), "THROUGHLINE_TEST_POSTGRES is not set");
            eprintln!("skipped: THROUGHLINE_TEST_POSTGRES is not set; ./test sets it");
            return None;
        };
        let schema = Self { server, name: format!("replicas_{test}_{}", std::process::id()) };
        schema.execute(&format!("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}", schema.name)).await;
        Some(schema)
    }

    async fn open(&self) -> Arc<dyn History> {
        let url = format!("{}?options=-csearch_path%3D{}", self.server, self.name);
        let opened = tokio::task::spawn_blocking(move || Postgres::open(&url, PostgresOptions::default()));
        Arc::new(opened.await.unwrap().unwrap())
    }

    async fn execute(&self, sql: &str) {
        let (client, connection) =
            tokio_postgres::connect(&self.server, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("SET client_min_messages = warning; {sql}")).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }

    async fn remove(self) {
        self.execute(&format!("DROP SCHEMA {} CASCADE", self.name)).await;
    }
}

/// Two gateways over one database; the backends of the second are those of the first.
async fn two_houses(schema: &Schema, rooms: Vec<Room>) -> (House, House) {
    let same: Vec<(&'static str, Dialect, Option<String>)> =
        rooms.iter().map(|room| (room.name, room.dialect, room.base_url.clone())).collect();
    let first = House::altered(rooms, schema.open().await, |gateway| gateway.is_shared = true).await;
    let rooms = same.into_iter().map(|(name, dialect, base_url)| {
        let mut room = Room::new(name, dialect);
        room.base_url = base_url.or_else(|| Some(first.sims[name].base_url()));
        room
    });
    let rooms = rooms.collect();
    let second = House::altered(rooms, schema.open().await, |gateway| gateway.is_shared = true).await;
    (first, second)
}

/// The same client, talking to another gateway.
fn moved(client: &Client, house: &House) -> Client {
    let mut moved = Client::new(&house.url, client.dialect);
    moved.history.clone_from(&client.history);
    moved
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_at_any_of_them() {
    let Some(schema) = Schema::new("goes_on").await else { return };
    let (one, two) = two_houses(&schema, vec![Room::new("only", Dialect::Messages)]).await;
    let mut client = Client::new(&one.url, Dialect::Chat);
    client.say("Please read the file notes.txt");
    let asked = client.ask("only").await;
    let mut client = moved(&client, &two);
    client.result(&asked.calls(Dialect::Chat)[0].id, "the only line");
    let answered = client.ask("only").await;
    let conversation = asked.header("x-throughline-conversation");
    assert_eq!(answered.header("x-throughline-conversation"), conversation);
    assert!(answered.text(Dialect::Chat).contains("the only line"), "{}", answered.raw);

    // Both at once, with different words: two branches, and nothing is lost.
    let (mut here, mut there) = (moved(&client, &one), moved(&client, &two));
    here.say("And here?");
    there.say("And there?");
    let (here, there) = tokio::join!(here.ask("only"), there.ask("only"));
    for answer in [&here, &there] {
        assert_eq!(answer.header("x-throughline-conversation"), conversation, "{}", answer.raw);
    }
    let history = schema.open().await;
    let id = ConversationId::new(conversation.to_owned());
    let all = history.entries(Entries::Conversation(id)).await.unwrap();
    let mut seen = BTreeSet::new();
    for kept in &all {
        assert!(kept.parent.as_ref().is_none_or(|parent| seen.contains(parent)), "a parent comes first");
        assert!(seen.insert(kept.id.clone()), "an entry comes once");
    }
    let parents: BTreeSet<_> = all.iter().filter_map(|kept| kept.parent.as_ref()).collect();
    assert_eq!(all.iter().filter(|kept| !parents.contains(&kept.id)).count(), 2, "two branches");
    drop(history);
    one.assert_nothing_refused();
    two.stop().await;
    one.stop().await;
    schema.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_and_a_verdict_hold_at_all_of_them_from_the_next_request_on() {
    let Some(schema) = Schema::new("switch").await else { return };
    let mut old = Room::new("old", Dialect::Chat);
    old.options.reject_native = true;
    let (one, two) = two_houses(&schema, vec![old, Room::new("new", Dialect::Messages)]).await;
    let mut client = Client::new(&one.url, Dialect::Chat);
    client.say("Please read the file notes.txt");
    let asked = client.ask("any").await;
    assert_eq!(asked.header("x-throughline-backend"), "old");
    client.result(&asked.calls(Dialect::Chat)[0].id, "the only line");
    client.ask("any").await;
    let statuses = || -> Vec<u16> { one.recorded("old").iter().map(|recorded| recorded.status).collect() };
    assert_eq!(statuses(), [200, 400, 200], "it was learned that tool items are rejected");

    let mut client = moved(&client, &two);
    client.say("Thank you");
    client.ask("any").await;
    assert_eq!(statuses(), [200, 400, 200, 200], "and the other one need not learn it");

    let http = reqwest::Client::new();
    let switch = http.put(format!("{}/api/active", one.url)).body(json!({"backend": "new"}).to_string());
    let switched = switch.send().await.unwrap();
    assert_eq!(switched.status(), 200, "{}", switched.text().await.unwrap());
    client.say("Once more");
    assert_eq!(client.ask("any").await.header("x-throughline-backend"), "new");
    two.stop().await;
    one.stop().await;
    schema.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_the_background_is_known_at_all_of_them() {
    let Some(schema) = Schema::new("background").await else { return };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut room = Room::new("slow", Dialect::Chat);
    room.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    let (one, two) = two_houses(&schema, vec![room]).await;
    let mut client = Client::new(&one.url, Dialect::Responses);
    client.say("Take your time");
    client.extra = json!({"background": true, "tools": []});
    let queued = client.post(&client.body("slow")).await;
    let id = queued.body["id"].as_str().unwrap().to_owned();
    let (mut socket, _) = listener.accept().await.unwrap();
    read_request(&mut socket).await;

    let elsewhere: Value = {
        let text = reqwest::get(format!("{}/v1/responses/{id}", two.url)).await.unwrap().text().await;
        serde_json::from_str(&text.unwrap()).unwrap()
    };
    let status = elsewhere["status"].as_str().unwrap();
    assert!(["queued", "in_progress"].contains(&status), "nobody has given it up: {elsewhere}");
    let follower = tokio::spawn(reqwest::get(format!("{}/v1/responses/{id}?stream=true", two.url)));
    let url = format!("{}/v1/responses/{id}/cancel", two.url);
    let text = reqwest::Client::new().post(url).send().await.unwrap().text().await.unwrap();
    let cancelled: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let here = reqwest::get(format!("{}/v1/responses/{id}", one.url)).await.unwrap().text().await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&here).unwrap(), cancelled);
    let followed = follower.await.unwrap().unwrap().text().await.unwrap();
    assert!(
        followed.contains("throughline_cancelled") && followed.ends_with("data: [DONE]\n\n"),
        "{followed}"
    );
    two.stop().await;
    one.stop().await;
    schema.remove().await;
}
