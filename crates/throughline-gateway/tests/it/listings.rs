//! Models that backends list: asked for in the background, and used.

use crate::client::Client;
use crate::house::{House, Map, Room};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_gateway::config::{Config, Flags, load};
use throughline_gateway::gateway::Gateway;
use throughline_gateway::model_discovery::ask_who_is_due;
use throughline_gateway::model_lists::names;
use throughline_sim::{Script, Sim, SimOptions};
use throughline_store::Memory;

fn listing(name: &'static str, models: &[&str]) -> Room {
    let mut room = Room::new(name, Dialect::Chat);
    room.options.models = models.iter().map(|model| (*model).to_owned()).collect();
    room
}

/// Returns how often a backend was asked for its models.
fn times_asked(house: &House, backend: &str) -> usize {
    house.recorded(backend).iter().filter(|recorded| recorded.path == "/v1/models").count()
}

async fn get(house: &House, path: &str) -> Value {
    let text = reqwest::get(format!("{}{path}", house.url)).await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_model_that_a_backend_lists_leads_to_it() {
    let house = House::new(vec![listing("one", &["model-of-one"]), listing("two", &["special"])]).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Hello");
    assert_eq!(client.ask("special").await.header("x-throughline-backend"), "one", "nobody lists it yet");
    ask_who_is_due(&house.gateway).await;
    let answer = client.ask("special").await;
    assert_eq!(answer.header("x-throughline-backend"), "two");
    let sent: Value = serde_json::from_str(&house.recorded("two").pop().unwrap().body).unwrap();
    assert_eq!(sent["model"], "special");

    let offered = get(&house, "/v1/models").await;
    let offered: Vec<&str> =
        offered["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert!(offered.contains(&"special") && offered.contains(&"two/special"), "{offered:?}");
    let shown = get(&house, "/api/backends").await;
    assert_eq!(shown["backends"][1]["models"], json!(["special"]), "{shown}");
    let learned = &shown["backends"][1]["learned"][0];
    assert_eq!((&learned["capability"], &learned["verdict"]), (&json!("models"), &json!("1")), "{shown}");
    house.stop().await;
}

#[tokio::test]
async fn a_model_is_offered_with_its_window() {
    let mut large = listing("large", &["shared"]);
    large.lines = "context_window = 200000\n";
    let mut small = listing("small", &["shared"]);
    small.lines = "context_window = 32000\n";
    let house = House::new(vec![large, small, listing("unknown", &["mystery"])]).await;
    ask_who_is_due(&house.gateway).await;
    let one = async |name: &str| get(&house, &format!("/v1/models/{name}")).await;
    let large = one("large%2Fshared").await;
    assert_eq!((&large["context_length"], &large["context_window"]), (&json!(200_000), &json!(200_000)));
    assert_eq!(one("shared").await["context_length"], 32_000, "what fits whoever answers to it");
    assert_eq!(one("mystery").await.get("context_length"), None);
    let messages = reqwest::Client::new().get(format!("{}/v1/models/small%2Fshared", house.url));
    let shown =
        messages.header("anthropic-version", "2023-06-01").send().await.unwrap().text().await.unwrap();
    assert!(shown.contains(r#""max_input_tokens":32000"#), "{shown}");
    house.stop().await;
}

#[tokio::test]
async fn a_model_is_offered_with_what_it_takes() {
    let house = House::new(vec![listing("one", &["gpt-4.1", "gpt-3.5-turbo", "mystery"])]).await;
    ask_who_is_due(&house.gateway).await;
    let one = async |name: &str| get(&house, &format!("/v1/models/{name}")).await;
    let seeing = one("gpt-4.1").await;
    assert_eq!(seeing["max_output_tokens"], 32_768);
    assert_eq!(seeing["capabilities"], json!({"function_calling": true, "vision": true}));
    let blind = one("one%2Fgpt-3.5-turbo").await;
    assert_eq!(blind["max_output_tokens"], 4_096);
    assert_eq!(blind["capabilities"], json!({"function_calling": true, "vision": false}));
    let unknown = one("mystery").await;
    assert_eq!((unknown.get("capabilities"), unknown.get("max_output_tokens")), (None, None));
    house.stop().await;
}

#[tokio::test]
async fn nobody_is_asked_twice_in_a_row() {
    let mut closed = listing("closed", &[]);
    closed.options.key = Some("secret".to_owned());
    let house = House::new(vec![listing("open", &[]), closed]).await;
    for _ in 0..3 {
        ask_who_is_due(&house.gateway).await;
    }
    assert_eq!((times_asked(&house, "open"), times_asked(&house, "closed")), (1, 1));
    let listed = names(&house.gateway.setup().listed());
    assert!(listed["open"].contains("sim-mini") && !listed.contains_key("closed"), "{listed:?}");
    house.stop().await;
}

fn config(backends: &[(&str, &str, &str)]) -> Config {
    let section = |(name, base_url, key): &(&str, &str, &str)| {
        format!(
            "[[backends]]\nname = \"{name}\"\ndialect = \"chat\"\nbase_url = \"{base_url}\"\napi_key = \"{key}\"\n"
        )
    };
    let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
    load(&Map(backends.iter().map(section).collect()), &flags).unwrap_or_else(|errors| panic!("{errors}"))
}

#[tokio::test]
async fn a_reload_asks_those_that_are_new_and_forgets_those_that_are_gone() {
    let sim = Sim::start(SimOptions::default()).await.unwrap();
    let url = sim.base_url();
    let nobody = "http://127.0.0.1:9/v1";
    let before = config(&[("same", &url, "none"), ("away", nobody, "none"), ("theirs", &url, "passthrough")]);
    let gateway = Arc::new(Gateway::build(before, Arc::new(Memory::new()), None).await.unwrap());
    ask_who_is_due(&gateway).await;
    let asked = || sim.recorded().len();
    let listed = || names(&gateway.setup().listed()).into_keys().collect::<Vec<_>>();
    assert_eq!(
        (asked(), listed()),
        (1, vec!["same".into()]),
        "the credentials of clients are not ours to use"
    );

    let after = config(&[("same", &url, "none"), ("away", &url, "none")]);
    gateway.reload(after).unwrap();
    assert_eq!(listed(), ["same"], "what did not change still lists");
    ask_who_is_due(&gateway).await;
    assert_eq!((asked(), listed()), (2, vec!["away".into(), "same".into()]));
    gateway.reload(config(&[("away", &url, "none")])).unwrap();
    assert_eq!(listed(), ["away"]);
    sim.stop().await;
}

#[tokio::test]
async fn what_a_header_says_counts_from_the_next_request_on() {
    let mut room = Room::new("old", Dialect::Chat);
    let says = json!({"x-throughline-capabilities": "native_tool_history=no"});
    let error = json!({"error": {"status": 500, "message": "out of order", "headers": says}});
    let call = json!({"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]});
    let script = json!({"turns": [call, error, {"text": "Done."}]});
    room.options.script = Some(Script::parse(&script.to_string()).unwrap());
    let house = House::new(vec![room]).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Please read the file a.txt");
    let answer = client.ask("old").await;
    client.result(&answer.calls(Dialect::Chat)[0].id, "a line");
    assert_eq!(client.post(&client.body("old")).await.status, 500);
    let answer = client.ask("old").await;
    assert!(answer.header("x-throughline-report").ends_with("strategy=text-embed"));
    house.stop().await;
}
