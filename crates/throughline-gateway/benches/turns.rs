//! What a turn costs beside the network, and how fast one is replayed.
//!
//! A turn of many calls is driven live over a durable history, with answers that come at once: what is left is ours.
//! Then it is replayed. CPU is that of the whole process, from `/proc`, so this needs Linux.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on says so by panicking")]
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::cast_precision_loss, reason = "counts are small")]

use std::sync::Arc;
use std::time::Instant;
use throughline_core::{Call, ConversationId, Outcome, Text};
use throughline_gateway::egress::{Reel, Take};
use throughline_gateway::gateway::{Gateway, mint};
use throughline_gateway::turn::{
    self, Done, Hands, Manner, Names, Nobody, Task, replay, said_item, settings,
};
use throughline_store::{History, ProviderEvent, Sqlite, SqliteOptions};
use tokio_util::sync::CancellationToken;

const ANSWERS: usize = 50;
const DELTAS: usize = 400;
const SETTINGS: &str = "[[backends]]\nname = \"own\"\ndialect = \"DIALECT\"\nbase_url = \"http://127.0.0.1/v1\"\ndefault_model = \"m\"\nserver_state = \"never\"\n";

struct Quick;

impl Hands for Quick {
    fn run<'a>(
        &'a self,
        _: &'a Call,
        _: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Done> + Send + 'a>> {
        Box::pin(async { Done::told(Outcome::Ok, r#"{"content":"as it was"}"#) })
    }
}

/// Hands out names, and turns the reel to each.
struct Numbered {
    names: Vec<String>,
    reel: Arc<Reel>,
}

impl Names for Numbered {
    fn next(&mut self) -> String {
        let name = self.names.pop().unwrap();
        self.reel.turn_to(&name);
        name
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{ANSWERS} answers of {DELTAS} deltas and a call each");
    println!("dialect     live µs of CPU per event   replay frames/s   replay µs of CPU per frame");
    for dialect in ["responses", "messages", "chat"] {
        runtime.block_on(measured(dialect));
    }
}

async fn measured(dialect: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("history.db"), SqliteOptions::default()).unwrap();
    let store: Arc<dyn History> = Arc::new(store);
    let reel = Arc::new(Reel::default());
    let config = settings::read(&SETTINGS.replace("DIALECT", dialect)).unwrap();
    let spoken = config.backends[0].dialect;
    let gateway = Arc::new(Gateway::replaying(config, Arc::clone(&store), &reel).await.unwrap());
    let mut names: Vec<String> = (0..=ANSWERS).map(|_| mint()).collect();
    let mut events = 0;
    for (number, name) in names.iter().enumerate() {
        let answer = answer(dialect, number, number < ANSWERS);
        events += answer.len();
        let (status, failure, cancel) = (Some(200), None, None);
        reel.add(name, Take { dialect: spoken, status, failure, events: answer, cancel });
    }
    names.reverse();
    let task = Task {
        id: turn::mint_id(),
        conversation: ConversationId::new(format!("conv_{}", mint())),
        behind: None,
        open: Vec::new(),
        opening: vec![said_item("Go on", &[])],
        manner: Manner { max_tool_calls: 1_000, tools: vec![Text::from(TOOL)], ..Manner::default() },
        compose: None,
        cancel_at: None,
    };
    let mut names = Numbered { names, reel };
    let before = cpu_seconds();
    let cancel = CancellationToken::new();
    let finished = turn::drive(&gateway, &task, &Quick, &mut names, &mut Nobody, &cancel).await.unwrap();
    let live = cpu_seconds() - before;
    assert_eq!(finished.conclusion.word(), "completed");
    let tape = replay::find(&*store, &task.id).await.unwrap().remove(0);
    let (before, clock) = (cpu_seconds(), Instant::now());
    const ROUNDS: usize = 5;
    for _ in 0..ROUNDS {
        let replayed = replay::replay(&*store, &tape, None).await.unwrap();
        assert!(replayed.differences.is_empty(), "{:?}", replayed.differences.first());
    }
    let (took, cpu) = (clock.elapsed().as_secs_f64(), cpu_seconds() - before);
    let frames = (events * ROUNDS) as f64;
    println!(
        "{dialect:<10}  {:>24.1}   {:>15.0}   {:>26.1}",
        live * 1e6 / events as f64,
        frames / took,
        cpu * 1e6 / frames
    );
}

const TOOL: &str = r#"{"type":"function","name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{}},"strict":false}"#;

/// Returns the events of an answer.
fn answer(dialect: &str, number: usize, calls: bool) -> Vec<ProviderEvent> {
    let (lines, is_named) = match dialect {
        "responses" => (of_responses(number, calls), true),
        "messages" => (of_messages(number, calls), true),
        _ => (of_chat(number, calls), false),
    };
    let event = |data: String| {
        let name = data.split('"').nth(3).filter(|_| is_named).map(Text::from);
        ProviderEvent { at: throughline_gateway::gateway::now(), name, data: data.into() }
    };
    lines.into_iter().map(event).collect()
}

fn of_responses(number: usize, calls: bool) -> Vec<String> {
    let response = format!(r#""response":{{"id":"resp_{number}","object":"response","model":"m""#);
    let mut lines = vec![
        format!(r#"{{"type":"response.created",{response},"status":"in_progress","output":[]}}}}"#),
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}"#.to_owned(),
    ];
    let delta = r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"a few words "}"#;
    lines.extend(std::iter::repeat_n(delta.to_owned(), DELTAS));
    if calls {
        let item = format!(
            r#"{{"type":"function_call","id":"fc_{number}","call_id":"call_{number}","name":"read","arguments":"{{}}"}}"#
        );
        lines.push(format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{item}}}"#));
    }
    lines.push(format!(r#"{{"type":"response.completed",{response},"status":"completed"}}}}"#));
    lines
}

fn of_messages(number: usize, calls: bool) -> Vec<String> {
    let usage = r#""usage":{"input_tokens":9,"output_tokens":1}"#;
    let mut lines = vec![
        format!(
            r#"{{"type":"message_start","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"m","content":[],{usage}}}}}"#
        ),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
    ];
    let delta =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words "}}"#;
    lines.extend(std::iter::repeat_n(delta.to_owned(), DELTAS));
    lines.push(r#"{"type":"content_block_stop","index":0}"#.to_owned());
    if calls {
        let block = format!(r#"{{"type":"tool_use","id":"toolu_{number}","name":"read","input":{{}}}}"#);
        lines.push(format!(r#"{{"type":"content_block_start","index":1,"content_block":{block}}}"#));
        lines.push(r#"{"type":"content_block_stop","index":1}"#.to_owned());
    }
    let stop = if calls { "tool_use" } else { "end_turn" };
    lines.push(format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop}"}},"usage":{{"output_tokens":400}}}}"#
    ));
    lines.push(r#"{"type":"message_stop"}"#.to_owned());
    lines
}

fn of_chat(number: usize, calls: bool) -> Vec<String> {
    let chunk = |delta: &str, finish: &str| {
        let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#);
        format!(
            r#"{{"id":"chatcmpl-{number}","object":"chat.completion.chunk","created":1,"model":"m","choices":[{choice}]}}"#
        )
    };
    let mut lines: Vec<String> =
        std::iter::repeat_n(chunk(r#"{"content":"a few words "}"#, "null"), DELTAS).collect();
    if calls {
        let function = r#"{"name":"read","arguments":"{}"}"#;
        let call = format!(r#"{{"index":0,"id":"call_{number}","type":"function","function":{function}}}"#);
        lines.push(chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), "null"));
    }
    lines.push(chunk("{}", if calls { "\"tool_calls\"" } else { "\"stop\"" }));
    lines.push("[DONE]".to_owned());
    lines
}

/// Returns the CPU time of this process so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}
