//! What the gateway says that a backend saw, held against the bodies that the backend recorded (R39).
//!
//! The judge reads the bodies with its own few lines and knows nothing of how they came about. Conversations repeat
//! themselves: the same questions, files, results and ids, over and over, so that whoever goes by what is said is
//! wrong. Every claim is checked: what stands where, word for word; what was left out, shortened, retold or joined.

use crate::budget::add_pair;
use crate::client::Client;
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use throughline_core::Dialect;
use throughline_core::plan::Handle;
use throughline_sim::{Script, SimOptions};
use throughline_wire::decode_request;

/// How many conversations there are, and how many of them go on side by side.
const CONVERSATIONS: u64 = 204;
const AT_ONCE: u64 = 12;

/// Numbers that are as good as random, and the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        let sides = u64::try_from(all.len()).unwrap();
        all[usize::try_from(self.roll(sides)).unwrap()]
    }
}

/// What a body says at one point, as the judge reads it.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    what: &'static str,
    id: String,
    text: String,
}

fn said(what: &'static str, id: &Value, text: String) -> Said {
    Said { what, id: id.as_str().unwrap_or_default().to_owned(), text }
}

/// Returns the text of a string or of a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn read(dialect: &str, body: &Value) -> Vec<Said> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match dialect {
        "chat" => list(&body["messages"]).iter().flat_map(read_chat).collect(),
        "messages" => {
            let system = &body["system"];
            let system = (!system.is_null()).then(|| said("said", &Value::Null, text_of(system)));
            system.into_iter().chain(list(&body["messages"]).iter().flat_map(read_message)).collect()
        }
        _ => {
            let instructions = &body["instructions"];
            let instructions =
                instructions.is_string().then(|| said("said", &Value::Null, text_of(instructions)));
            instructions.into_iter().chain(list(&body["input"]).iter().map(read_item)).collect()
        }
    }
}

fn read_chat(message: &Value) -> Vec<Said> {
    if message["role"] == "tool" {
        return vec![said("returned", &message["tool_call_id"], text_of(&message["content"]))];
    }
    let mut all = Vec::new();
    if let Some(reasoning) = message["reasoning_content"].as_str() {
        all.push(said("thought", &Value::Null, reasoning.to_owned()));
    }
    let text = text_of(&message["content"]);
    if !text.is_empty() {
        all.push(said("said", &Value::Null, text));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        all.push(said("called", &call["id"], call["function"]["arguments"].as_str().unwrap().to_owned()));
    }
    all
}

fn read_message(message: &Value) -> Vec<Said> {
    let Value::Array(blocks) = &message["content"] else {
        return vec![said("said", &Value::Null, text_of(&message["content"]))];
    };
    let mut all: Vec<Said> = Vec::new();
    for block in blocks {
        let read = match block["type"].as_str().unwrap() {
            "tool_use" => said("called", &block["id"], block["input"].to_string()),
            "tool_result" => said("returned", &block["tool_use_id"], text_of(&block["content"])),
            "thinking" => said("thought", &Value::Null, block["thinking"].as_str().unwrap().to_owned()),
            "redacted_thinking" => said("thought", &Value::Null, String::new()),
            _ => {
                let text = block["text"].as_str().unwrap_or_default();
                if let Some(last) = all.last_mut().filter(|last| last.what == "said") {
                    last.text = format!("{}\n{text}", last.text);
                    continue;
                }
                said("said", &Value::Null, text.to_owned())
            }
        };
        all.push(read);
    }
    all
}

fn read_item(item: &Value) -> Said {
    match item["type"].as_str() {
        Some("function_call") => {
            said("called", &item["call_id"], item["arguments"].as_str().unwrap().to_owned())
        }
        Some("function_call_output") => said("returned", &item["call_id"], text_of(&item["output"])),
        Some("reasoning") => said("thought", &Value::Null, String::new()),
        _ => said("said", &Value::Null, text_of(&item["content"])),
    }
}

/// Returns the two texts as they can be compared: arguments by what they mean.
fn same_text(what: &str, one: &str, other: &str) -> bool {
    let meaning = |text: &str| serde_json::from_str::<Value>(text).ok();
    match what {
        "called" => one == other || meaning(one).is_some() && meaning(one) == meaning(other),
        // Of reasoning, what is sealed cannot be read.
        "thought" => true,
        _ => one == other,
    }
}

/// What a side of a row says.
fn side_text(side: &Value) -> &str {
    side["input"].as_str().or(side["text"].as_str()).unwrap_or_default()
}

/// Checks everything that is claimed about one exchange.
fn check(seen: &Value, sent: &[Said], context: &str) {
    assert_eq!(seen["known"], true, "{context}");
    let rows = seen["rows"].as_array().unwrap();
    let shows = |row: &&Value| row["mark"] == "same" || !row["sent"].is_null();
    let shown: Vec<&Value> = rows.iter().filter(shows).collect();
    assert_eq!(shown.len(), sent.len(), "{context}\n{sent:#?}\n{seen:#}");
    for (row, said) in shown.iter().zip(sent) {
        check_shown(row, said, &format!("{context}\n{row:#}\n{said:?}"));
    }
    let mut last = "";
    let mut kept = BTreeSet::new();
    for row in rows {
        if shows(&row) {
            last = side_text(if row["sent"].is_null() { &row["kept"] } else { &row["sent"] });
        }
        if let Some(id) = row["kept"]["id"].as_str() {
            assert!(kept.insert(id), "one entry, one row: {row} in {context}");
        }
        check_hidden(row, last, sent, context);
    }
}

/// Checks a row that stands for something in the body.
fn check_shown(row: &Value, said: &Said, context: &str) {
    let side = if row["sent"].is_null() { &row["kept"] } else { &row["sent"] };
    assert_eq!(side["kind"], said.what, "{context}");
    assert!(same_text(said.what, side_text(side), &said.text), "{context}");
    if said.what == "called" || said.what == "returned" {
        assert_eq!(side["call_id"], said.id.as_str(), "{context}");
    }
    let kept = &row["kept"];
    let mark = row["mark"].as_str().unwrap();
    assert_ne!(row["from"], "unknown", "{context}");
    assert_eq!(mark == "same", row["reason"].is_null(), "{context}");
    match mark {
        "same" => assert_eq!(kept["kind"], said.what, "{context}"),
        "shortened" => {
            assert_ne!(side_text(kept), said.text, "{context}");
            assert!(row["handle"].is_string(), "{context}");
        }
        "retold" => assert!(kept["kind"] != said.what || kept["role"] != side["role"], "{context}"),
        "joined" => assert!(said.text.contains(side_text(kept)), "{context}"),
        "changed" | "added" => {}
        other => panic!("{other} is no mark of what was sent: {context}"),
    }
}

/// Checks a row that has nothing of its own in the body; `last` is what was sent last.
fn check_hidden(row: &Value, last: &str, sent: &[Said], context: &str) {
    let kept = &row["kept"];
    if row["mark"] == "same" || !row["sent"].is_null() {
        return;
    }
    let (kind, id, text) = (kept["kind"].as_str().unwrap(), &kept["call_id"], side_text(kept));
    let is_there = sent.iter().any(|said| {
        said.what == kind
            && !said.id.is_empty()
            && *id == said.id.as_str()
            && same_text(kind, text, &said.text)
    });
    match row["mark"].as_str().unwrap() {
        "left out" | "summarised" | "held" => {
            // An id that recurs may stand for another call; these never recur.
            let is_unique = id.as_str().is_some_and(|id| !id.starts_with("call_"));
            assert!(!(is_there && is_unique), "it is there: {row} in {context}\n{sent:#?}");
        }
        "retold" => assert_eq!(kind, "called", "{row} in {context}"),
        "joined" => assert!(last.contains(text), "{row} in {context}"),
        "internal" => assert_eq!(kind, "handed over", "{row} in {context}"),
        other => panic!("{other} without anything sent: {row} in {context}"),
    }
}

async fn json_of(url: &str) -> Value {
    reqwest::get(url).await.unwrap().json().await.unwrap()
}

/// Returns what each backend recorded.
fn recorded(house: &House) -> BTreeSet<(String, String)> {
    let of_backend = |name: &&'static str| {
        let name = *name;
        house.recorded(name).into_iter().map(move |recorded| (name.to_owned(), recorded.body))
    };
    house.sims.keys().flat_map(of_backend).collect()
}

/// Checks every exchange of a conversation; returns how many rows that were.
async fn check_conversation(
    house: &House,
    recorded: &BTreeSet<(String, String)>,
    id: &str,
    context: &str,
) -> usize {
    let url = format!("{}/api/conversations/{id}", house.url);
    let exchanges = json_of(&url).await["exchanges"].as_array().unwrap().len();
    let mut rows = 0;
    for number in 1..=exchanges {
        let attempts = json_of(&format!("{url}/sent/{number}")).await["attempts"].clone();
        let attempts = attempts.as_array().unwrap();
        let Some(last) = attempts.iter().rfind(|attempt| attempt["body"].is_string()) else { continue };
        let body = last["body"].as_str().unwrap();
        let backend = last["backend"].as_str().unwrap();
        let is_recorded = recorded.contains(&(backend.to_owned(), body.to_owned()));
        assert!(is_recorded, "{backend} was never sent {body}");
        let seen = json_of(&format!("{url}/seen/{number}")).await;
        let sent = read(last["dialect"].as_str().unwrap(), &serde_json::from_str(body).unwrap());
        let context = format!("{context}, exchange {number} at {backend}: {body}");
        check(&seen, &sent, &context);
        rows += seen["rows"].as_array().unwrap().len();
    }
    rows
}

/// A backend of each dialect, one of each that has little room, and one that takes no tool history.
fn rooms() -> Vec<Room> {
    let small = |name, dialect| Room { lines: "history = { budget = 1100 }", ..Room::new(name, dialect) };
    let options = SimOptions { reject_native: true, ..SimOptions::default() };
    let mut rooms = one_of_each();
    rooms.extend([
        small("small-chat", Dialect::Chat),
        small("small-messages", Dialect::Messages),
        small("small-responses", Dialect::Responses),
        Room { options, ..Room::new("plain", Dialect::Chat) },
    ]);
    rooms
}

const BACKENDS: [&str; 7] =
    ["chat", "messages", "responses", "small-chat", "small-messages", "small-responses", "plain"];

/// Says, calls and returns the same few things, in an order of its own.
async fn converse(house: &House, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let dialect = dice.pick(&Dialect::ALL);
    let mut client = Client::new(&house.url, dialect);
    let id = format!("conv_seen_{seed}");
    client.headers.push(("x-throughline-conversation", id.clone()));
    client.stream = dice.roll(2) == 0;
    let result = |dice: &mut Dice| format!("line {} of the file\n", dice.roll(3)).repeat(20);
    client.say("Please read the file a.txt");
    let reuses_ids = dice.roll(2) == 0;
    for number in 0..usize::try_from(dice.roll(8)).unwrap() {
        let path = format!("{}.txt", dice.roll(3));
        let text = result(&mut dice);
        add_pair(&mut client, if reuses_ids { 0 } else { number }, "read_file", &path, &text);
    }
    if client.history.len() > 1 {
        client.say("Go on.");
    }
    let mut backend = dice.pick(&BACKENDS);
    for _ in 0..3 + dice.roll(4) {
        match dice.roll(8) {
            0 | 1 => backend = dice.pick(&BACKENDS),
            2 => drop(client.post(&client.body(backend)).await),
            3 if dialect == Dialect::Messages => {
                client.extra = json!({"system": format!("Be {}.", dice.roll(2))});
            }
            _ => {}
        }
        let answer = client.post(&client.body(backend)).await;
        // What does not fit even when shortened is refused; the next backend may take it.
        if answer.status != 200 {
            backend = "messages";
            continue;
        }
        match dialect {
            Dialect::Chat => client.history.push(answer.body["choices"][0]["message"].clone()),
            Dialect::Messages => {
                client.history.push(json!({"role": "assistant", "content": answer.body["content"]}));
            }
            Dialect::Responses => client.history.extend(answer.body["output"].as_array().unwrap().clone()),
        }
        let calls = answer.calls(dialect);
        for call in &calls {
            let text = result(&mut dice);
            client.result(&call.id, &text);
        }
        if calls.is_empty() {
            client.say(dice.pick(&["Please read the file a.txt", "Go on.", "Please read the file b.txt"]));
        }
    }
}

async fn converse_all(lines: &str, seeds: std::ops::Range<u64>) -> usize {
    let history = std::sync::Arc::new(throughline_store::Memory::new());
    let house = House::with_lines(rooms(), history, lines).await;
    let seeds: Vec<u64> = seeds.collect();
    for together in seeds.chunks(usize::try_from(AT_ONCE).unwrap()) {
        futures_util::future::join_all(together.iter().map(|seed| converse(&house, *seed))).await;
    }
    let recorded = recorded(&house);
    let mut rows = 0;
    for seed in seeds {
        let (id, context) = (format!("conv_seen_{seed}"), format!("seed {seed}"));
        rows += check_conversation(&house, &recorded, &id, &context).await;
    }
    house.stop().await;
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn no_claim_about_conversations_that_repeat_themselves_is_false() {
    let rows = converse_all("", 0..CONVERSATIONS / 2).await;
    assert!(rows > 1_000, "{rows}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_claim_about_conversations_that_are_handed_over_by_briefs_is_false() {
    let rows = converse_all("[handover]\nmode = \"brief\"\n", CONVERSATIONS / 2..CONVERSATIONS).await;
    assert!(rows > 1_000, "{rows}");
}

/// What the model recalls is in the record, and is shown again with each request that follows.
#[tokio::test]
async fn what_was_recalled_is_of_the_record() {
    for (dialect, backend) in Dialect::ALL.into_iter().flat_map(|one| Dialect::ALL.map(|two| (one, two))) {
        let mut client = crate::budget::with_pairs("http://nowhere", dialect, crate::budget::PAIRS);
        let ask = decode_request(dialect, client.body("m").to_string()).unwrap();
        let handle = Handle::of(ask.entries.get(7), ask.entries.get(8)).to_string();
        let recall = json!({"name": "recall", "arguments": {"handle": handle}});
        let script = json!({"turns": [{"text": "Let me look.", "calls": [recall]}, {"text": "I see."}, {"text": "Yes."}]});
        let script = Some(Script::parse(&script.to_string()).unwrap());
        let options = SimOptions { script, ..SimOptions::default() };
        let lines = "history = { budget = 7000 }";
        let house = House::new(vec![Room { options, lines, ..Room::new("own", backend) }]).await;
        client = client.at(&house.url);
        client.headers.push(("x-throughline-conversation", "conv_recalled".to_owned()));
        client.ask("own").await;
        client.say("Really?");
        client.ask("own").await;
        let context = format!("{} to {}", dialect.name(), backend.name());
        check_conversation(&house, &recorded(&house), "conv_recalled", &context).await;
        for number in [1, 2] {
            let seen = json_of(&format!("{}/api/conversations/conv_recalled/seen/{number}", house.url)).await;
            let rows = seen["rows"].as_array().unwrap();
            let is_recall = |row: &&Value| row["kept"]["tool"] == "recall" && row["kept"]["kind"] == "called";
            let recall = rows.iter().find(is_recall).unwrap_or_else(|| panic!("{context}: {seen:#}"));
            assert_eq!(recall["from"], "record", "{context}: {recall}");
            assert!(["same", "changed"].contains(&recall["mark"].as_str().unwrap()), "{context}: {recall}");
        }
        house.stop().await;
    }
}

/// A judge who finds nothing wrong is worth nothing: false claims of each kind are found.
#[test]
fn false_claims_are_found() {
    let entry = |id: &str, call: &str| json!({"id": id, "kind": "called", "call_id": call, "input": "{}"});
    let same = |id: &str, call: &str| json!({"mark": "same", "from": "record", "kept": entry(id, call)});
    let absent = |id: &str, call: &str| json!({"mark": "left out", "from": "record", "reason": "r", "kept": entry(id, call)});
    let sent =
        [said("called", &json!("one"), "{}".to_owned()), said("called", &json!("two"), "{}".to_owned())];
    let is_found = |rows: Vec<Value>| {
        let seen = json!({"known": true, "rows": rows});
        std::panic::catch_unwind(|| check(&seen, &sent, "a false claim")).is_err()
    };
    assert!(!is_found(vec![same("a", "one"), absent("b", "gone"), same("c", "two")]));
    assert!(is_found(vec![same("a", "one")]), "something was sent of which nothing is said");
    assert!(is_found(vec![same("a", "two"), same("b", "one")]), "one call is taken for the other");
    assert!(is_found(vec![same("a", "one"), same("c", "two"), absent("b", "two")]), "it was sent");
    assert!(is_found(vec![same("a", "one"), same("a", "two")]), "one entry has two rows");
    let shortened = json!({"mark": "shortened", "from": "record", "reason": "r", "handle": "h", "kept": entry("a", "one"),
        "sent": entry("a", "one")});
    assert!(is_found(vec![shortened, same("c", "two")]), "nothing was shortened");
}
