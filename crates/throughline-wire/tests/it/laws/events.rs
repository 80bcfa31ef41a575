//! Strict readers of the three dialects' streams: what a client may rely on, checked on the events alone.

use serde_json::Value;
use std::collections::BTreeMap;
use throughline_core::Dialect;
use throughline_wire::Outgoing;

type Checked = Result<(), String>;

/// Says what is wrong with a stream, if anything is; `stopped` says whether the answer came to its end.
pub(super) fn check_events(dialect: Dialect, events: &[Outgoing], stopped: bool) -> Checked {
    match dialect {
        Dialect::Chat => check_chat(events, stopped),
        Dialect::Messages => check_messages(events, stopped),
        Dialect::Responses => check_responses(events, stopped),
    }
}

fn require(holds: bool, problem: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(problem.into()) }
}

fn parse(event: &Outgoing) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(&event.data).map_err(|error| format!("{error}: {}", event.data))?;
    let named = event.name.is_none_or(|name| value["type"] == name);
    require(named, format!("the event is not named after its type: {}", event.data))?;
    Ok(value)
}

/// Chunks, one finish reason at the end of a whole answer, calls announced before they grow, `[DONE]` last.
fn check_chat(events: &[Outgoing], stopped: bool) -> Checked {
    let (last, chunks) = events.split_last().ok_or("nothing was sent")?;
    require(last.data == "[DONE]" || !stopped, "the last event is not [DONE]")?;
    let chunks = if last.data == "[DONE]" { chunks } else { events };
    let (mut finished, mut failed, mut announced) = (0, false, 0);
    for chunk in chunks {
        let chunk = parse(chunk)?;
        failed |= chunk.get("error").is_some();
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            finished += usize::from(!choice["finish_reason"].is_null());
            for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let index = call["index"].as_u64().ok_or("a call without an index")?;
                if index == announced {
                    announced += 1;
                    let told = call["id"].is_string() && !call["type"].is_null();
                    require(told, format!("a call is announced without an id: {call}"))?;
                }
                require(index < announced, format!("a call grows before it is announced: {call}"))?;
            }
        }
    }
    require(finished == usize::from(stopped), format!("{finished} finish reasons"))?;
    require(failed != stopped, "an answer that failed says so, and no other does")
}

/// One message, its blocks one after the other, and an end or an error.
fn check_messages(events: &[Outgoing], stopped: bool) -> Checked {
    let mut open: Option<u64> = None;
    let (mut begun, mut deltas) = (0, 0);
    let events: Vec<Value> = events.iter().map(parse).collect::<Result<_, _>>()?;
    for (at, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().unwrap_or_default();
        // An answer that fails at once may be an error and nothing else.
        let lone_error = kind == "error" && events.len() == 1;
        require((kind == "message_start") == (at == 0) || lone_error, "message_start comes first, and once")?;
        let is_last = matches!(kind, "message_stop" | "error");
        require(is_last == (at + 1 == events.len()), format!("{kind} at {at}"))?;
        match kind {
            "content_block_start" => {
                require(open.is_none(), "a block starts inside another")?;
                require(event["index"] == begun, format!("block {begun} has another index: {event}"))?;
                open = Some(begun);
                begun += 1;
            }
            "content_block_delta" => {
                let within = open.is_some() && event["index"].as_u64() == open && deltas == 0;
                require(within, format!("outside of its block: {event}"))?;
            }
            "content_block_stop" => {
                require(event["index"].as_u64() == open && open.is_some(), "a block stops twice")?;
                open = None;
            }
            "message_delta" => {
                require(open.is_none(), "the message ends inside a block")?;
                deltas += usize::from(!event["delta"]["stop_reason"].is_null());
            }
            "message_start" | "message_stop" | "ping" | "error" => {}
            _ => return Err(format!("an unknown event: {event}")),
        }
    }
    let end = events.last().ok_or("nothing was sent")?["type"].clone();
    require(end == if stopped { "message_stop" } else { "error" }, format!("ends with {end}"))?;
    require(!stopped || (open.is_none() && deltas == 1), "a whole answer has one stop reason")
}

/// What a Responses client adds up while it reads.
#[derive(Default)]
struct Responses {
    /// Deltas by event kind, item and part.
    grown: BTreeMap<String, String>,
    added: usize,
    done: usize,
}

const GROWING: [&str; 6] = [
    "response.output_text",
    "response.refusal",
    "response.function_call_arguments",
    "response.custom_tool_call_input",
    "response.reasoning_summary_text",
    "response.reasoning_text",
];
const TERMINAL: [&str; 4] =
    ["response.completed", "response.incomplete", "response.failed", "response.cancelled"];

impl Responses {
    fn handle(&mut self, event: &Value) -> Checked {
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "response.output_item.added" {
            require(event["output_index"] == self.added, format!("not the next item: {event}"))?;
            self.added += 1;
        } else if kind == "response.output_item.done" {
            self.done += 1;
        } else if let Some(what) = kind.strip_suffix(".delta").filter(|what| GROWING.contains(what)) {
            let delta = event["delta"].as_str().ok_or("a delta without text")?;
            self.grown.entry(place(what, event)).or_default().push_str(delta);
        } else if let Some(what) = kind.strip_suffix(".done").filter(|what| GROWING.contains(what)) {
            let fields = ["text", "refusal", "arguments", "input"];
            let whole = fields.iter().find_map(|field| event[field].as_str()).ok_or("a done without text")?;
            let grown = self.grown.remove(&place(what, event)).unwrap_or_default();
            require(grown == whole, format!("{grown:?} grew, but this is done: {event}"))?;
        }
        Ok(())
    }
}

fn place(what: &str, event: &Value) -> String {
    format!("{what} {} {} {}", event["item_id"], event["content_index"], event["summary_index"])
}

/// Sequence numbers from zero, items and texts that are done as they grew, one terminal event.
fn check_responses(events: &[Outgoing], stopped: bool) -> Checked {
    let events: Vec<&Outgoing> = events.iter().filter(|event| event.data != "[DONE]").collect();
    let mut reader = Responses::default();
    let mut terminal = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let event = parse(event)?;
        require(event["sequence_number"] == at, format!("event {at} has another number: {event}"))?;
        require(
            (event["type"] == "response.created") == (at == 0),
            "response.created comes first, and once",
        )?;
        if TERMINAL.iter().any(|kind| event["type"] == *kind) {
            require(at + 1 == events.len(), "something follows the terminal event")?;
            terminal.push(event.clone());
        }
        reader.handle(&event)?;
    }
    let [end] = &terminal[..] else { return Err(format!("{} terminal events", terminal.len())) };
    let whole = end["type"] == "response.completed" || end["type"] == "response.incomplete";
    require(whole == stopped, format!("ends with {end}"))?;
    let output = end["response"]["output"].as_array().map_or(0, Vec::len);
    require(!stopped || reader.grown.is_empty(), format!("never done: {:?}", reader.grown))?;
    require(
        !stopped || (reader.done == reader.added && output == reader.added),
        format!("items are missing: {end}"),
    )
}
