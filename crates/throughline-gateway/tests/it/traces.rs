//! Traces, as a real collector receives them over HTTP.

use crate::client::Client;
use crate::house::{House, Map, Room};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_gateway::config::{Flags, load};
use throughline_store::Memory;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A collector that hands on what it receives.
struct Collector {
    url: String,
    received: mpsc::UnboundedReceiver<(HeaderMap, String)>,
}

type Received = (mpsc::UnboundedSender<(HeaderMap, String)>, StatusCode);

impl Collector {
    async fn new(status: StatusCode) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let take = async |State((sender, status)): State<Received>, headers: HeaderMap, body: String| {
            sender.send((headers, body)).unwrap();
            status
        };
        let routes = Router::new().route("/v1/traces", post(take)).with_state((sender, status));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, received }
    }

    fn lines(&self) -> String {
        format!(
            "[telemetry]\notlp_endpoint = \"{}\"\notlp_headers = {{ X-Team = \"tools\" }}\nservice_name = \"house\"\n",
            self.url
        )
    }

    /// Waits for the spans of the exchanges so far.
    async fn spans(&mut self, house: &House) -> (HeaderMap, Value, Vec<Value>) {
        house.gateway.setup().tracer.as_ref().unwrap().flush().await;
        let (headers, body) = self.received.try_recv().unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        (headers, body, spans)
    }
}

async fn house(rooms: Vec<Room>, collector: &Collector) -> House {
    House::with_lines(rooms, Arc::new(Memory::new()), &collector.lines()).await
}

fn asking(house: &House, flags: &str) -> Client {
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.headers =
        vec![("traceparent", format!("00-{TRACE}-{SPAN}-{flags}")), ("tracestate", "a=b".to_owned())];
    client.say("Please read the file notes.txt");
    client
}

/// Returns the value of an attribute.
fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|each| each["key"] == key);
    found.map_or(&Value::Null, |found| found["value"].as_object().unwrap().values().next().unwrap())
}

fn named(spans: &[Value], kind: u64) -> Vec<&Value> {
    spans.iter().filter(|span| span["kind"] == kind).collect()
}

#[tokio::test]
async fn an_exchange_is_a_trace_that_goes_on_from_the_clients_and_through_to_the_backend() {
    for stream in [false, true] {
        let mut collector = Collector::new(StatusCode::OK).await;
        let mut old = Room::new("old", Dialect::Chat);
        old.options.reject_native = true;
        let house = house(vec![old], &collector).await;
        let mut client = asking(&house, "01");
        client.stream = stream;
        let answer = client.ask("old/m").await;
        collector.spans(&house).await;
        client.result(&answer.calls(Dialect::Messages)[0].id, "what the file says");
        let answer = client.ask("old/m").await;
        let (headers, body, spans) = collector.spans(&house).await;

        assert_eq!(headers["x-team"], "tools");
        let resource = &body["resourceSpans"][0]["resource"];
        assert_eq!(attribute(resource, "service.name"), "house");
        for words in ["notes.txt", "what the file says", "Invalid input"] {
            assert!(!body.to_string().contains(words), "no words of the conversation: {body}");
        }
        assert!(spans.iter().all(|span| span["traceId"] == TRACE && span["traceState"] == "a=b"));
        let [root] = named(&spans, 2)[..] else { panic!("{spans:?}") };
        assert_eq!((&root["parentSpanId"], &root["name"]), (&json!(SPAN), &json!("chat old/m")));
        assert_eq!(attribute(root, "gen_ai.request.model"), "old/m");
        assert_eq!(attribute(root, "gen_ai.response.model"), "m");
        assert_eq!(attribute(root, "gen_ai.provider.name"), "old");
        let conversation = answer.header("x-throughline-conversation");
        assert_eq!(attribute(root, "gen_ai.conversation.id"), conversation);
        let tokens = attribute(root, "gen_ai.usage.input_tokens").as_str().unwrap();
        assert!(tokens.parse::<u64>().unwrap() > 0);
        assert_eq!(attribute(root, "throughline.attempts"), "2");

        let below: Vec<&str> = named(&spans, 1).iter().map(|span| span["name"].as_str().unwrap()).collect();
        assert!(["place", "record", "stream"].iter().all(|name| below.contains(name)), "{below:?}");
        assert!(named(&spans, 1).iter().all(|span| span["parentSpanId"] == root["spanId"]));
        let attempts = named(&spans, 3);
        let told: Vec<String> = house.recorded("old")[1..]
            .iter()
            .map(|recorded| recorded.header("traceparent").unwrap().to_owned())
            .collect();
        let made: Vec<String> = attempts
            .iter()
            .map(|span| format!("00-{TRACE}-{}-01", span["spanId"].as_str().unwrap()))
            .collect();
        assert_eq!(told, made, "each attempt tells the backend its own span");
        assert_eq!(attempts[0]["status"], json!({"code": 2, "message": "400"}));
        assert!(attempts[1].get("status").is_none());
        assert_eq!(attribute(attempts[1], "throughline.strategy"), "text-embed");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_trace_that_the_client_does_not_keep_is_passed_on_and_not_sent() {
    let mut collector = Collector::new(StatusCode::OK).await;
    let house = house(vec![Room::new("one", Dialect::Chat)], &collector).await;
    asking(&house, "00").ask("one").await;
    house.gateway.setup().tracer.as_ref().unwrap().flush().await;
    assert!(collector.received.try_recv().is_err());
    let told = house.recorded("one").pop().unwrap().header("traceparent").unwrap().to_owned();
    assert!(told.starts_with(&format!("00-{TRACE}-")) && told.ends_with("-00"), "{told}");
    house.stop().await;
}

#[tokio::test]
async fn of_our_own_traces_the_configured_share_is_kept() {
    for (ratio, is_kept) in [("0.0", false), ("1", true)] {
        let mut collector = Collector::new(StatusCode::OK).await;
        let lines = format!("{}sampling_ratio = {ratio}\n", collector.lines());
        let rooms = vec![Room::new("one", Dialect::Chat)];
        let house = House::with_lines(rooms, Arc::new(Memory::new()), &lines).await;
        let mut client = Client::new(&house.url, Dialect::Chat);
        client.say("Hello");
        client.ask("one").await;
        house.gateway.setup().tracer.as_ref().unwrap().flush().await;
        assert_eq!(collector.received.try_recv().is_ok(), is_kept, "{ratio}");
        house.stop().await;
    }
}

#[tokio::test]
async fn without_a_collector_the_clients_trace_passes_through() {
    let house = House::new(vec![Room::new("one", Dialect::Chat)]).await;
    asking(&house, "01").ask("one").await;
    let recorded = house.recorded("one").pop().unwrap();
    assert_eq!(recorded.header("traceparent"), Some(&*format!("00-{TRACE}-{SPAN}-01")));
    assert_eq!(recorded.header("tracestate"), Some("a=b"));
    house.stop().await;
}

#[tokio::test]
async fn what_a_collector_refuses_is_counted_and_hurts_nobody() {
    let mut collector = Collector::new(StatusCode::BAD_REQUEST).await;
    let house = house(vec![Room::new("one", Dialect::Chat)], &collector).await;
    asking(&house, "01").ask("one").await;
    let (_, _, spans) = collector.spans(&house).await;
    let metrics = reqwest::get(format!("{}/metrics", house.url)).await.unwrap().text().await.unwrap();
    let line = format!("throughline_spans_total{{outcome=\"failed\"}} {}", spans.len());
    assert!(metrics.lines().any(|each| each == line), "{line}: {metrics}");
    house.stop().await;
}

#[tokio::test]
async fn a_reload_moves_traces_to_another_collector_or_ends_them() {
    let (first, mut second) = (Collector::new(StatusCode::OK).await, Collector::new(StatusCode::OK).await);
    let house = house(vec![Room::new("one", Dialect::Chat)], &first).await;
    let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
    let backend = format!(
        "[[backends]]\nname = \"one\"\ndialect = \"chat\"\nbase_url = \"{}\"\ndefault_model = \"m\"\n",
        house.sims["one"].base_url()
    );
    let before = house.gateway.setup();
    house.gateway.reload(load(&Map(format!("{backend}{}", first.lines())), &flags).unwrap()).unwrap();
    let is_same = |old: &_, new: &_| Arc::ptr_eq(old, new);
    let (old, new) = (before.tracer.clone().unwrap(), house.gateway.setup().tracer.clone().unwrap());
    assert!(is_same(&old, &new), "what waits to be sent is not lost");
    house.gateway.reload(load(&Map(format!("{backend}{}", second.lines())), &flags).unwrap()).unwrap();
    asking(&house, "01").ask("one").await;
    assert!(!second.spans(&house).await.2.is_empty());
    house.gateway.reload(load(&Map(backend), &flags).unwrap()).unwrap();
    assert!(house.gateway.setup().tracer.is_none());
    house.stop().await;
}
