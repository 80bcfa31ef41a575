//! The tool loop, live against simulated backends in all three dialects. Whatever happens in a turn, its replay is
//! identical.

#![expect(clippy::needless_pass_by_value, reason = "what is made for one use is handed over")]

mod endings;
mod odd_streams;
mod past;
mod replays;
mod scenes;

use crate::house::{House, Room};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use throughline_core::{ConversationId, Dialect, Entry, Kind, Outcome, Text, joined_text};
use throughline_gateway::config::Approve;
use throughline_gateway::gateway::mint;
use throughline_gateway::turn::replay::{self, Replayed};
use throughline_gateway::turn::workbench::{Absent, Workbench};
use throughline_gateway::turn::{self, Finished, Hands, Happening, Manner, Minted, Task, Watch, said_item};
use throughline_gateway::view;
use throughline_sim::{Script, SimOptions};
use throughline_store::{History, Kept, Memory, ProviderEvent};
use throughline_tools::{Limits, Shell, Toolbox, Workdir};
use tokio_util::sync::CancellationToken;

/// A working directory, a backend, and a gateway between them.
pub struct Stage {
    pub house: House,
    pub dir: TempDir,
    pub history: Arc<dyn History>,
    pub hands: Box<dyn Hands>,
    pub manner: Manner,
    pub conversation: ConversationId,
    pub cancel: CancellationToken,
}

/// What happened, a line each.
#[derive(Default)]
pub struct Log {
    pub lines: Vec<String>,
    /// What is called off when a call begins.
    pub cancel_at_call: Option<CancellationToken>,
}

impl Watch for Log {
    fn see(&mut self, happening: Happening<'_>) {
        match happening {
            Happening::Asked { again, .. } => {
                self.lines.push(if again { "ask again" } else { "ask" }.to_owned());
            }
            Happening::Called(call) => {
                self.lines.push(format!("run {}", call.name));
                self.cancel_at_call.iter().for_each(CancellationToken::cancel);
            }
            Happening::Settled { settled, .. } => {
                self.lines.push(format!("{} {}", view::outcome_name(settled.outcome()), settled.call.name));
            }
            Happening::Heard { .. } | Happening::Answered { .. } | Happening::NotComposed { .. } => {}
        }
    }
}

/// Returns the options of a backend that says these things.
pub fn scripted(turns: &Value) -> SimOptions {
    let script = Script::parse(&json!({"turns": turns, "then": "last"}).to_string()).unwrap();
    SimOptions { script: Some(script), ..SimOptions::default() }
}

impl Stage {
    pub async fn new(dialect: Dialect, turns: Value) -> Self {
        Self::with(dialect, scripted(&turns), "").await
    }

    pub async fn with(dialect: Dialect, options: SimOptions, lines: &'static str) -> Self {
        let history: Arc<dyn History> = Arc::new(Memory::new());
        let room = Room { options, lines, ..Room::new("own", dialect) };
        let house = House::with_history(vec![room], Arc::clone(&history)).await;
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("c.txt", "gamma\n")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let bench = workbench(&dir, Approve::All);
        let tools = bench.declare().iter().map(Manner::declared).collect();
        let instructions = Some(Text::from("Work in this directory."));
        let manner = Manner { instructions, tools, max_tool_calls: 20, ..Manner::default() };
        Self {
            house,
            dir,
            history,
            hands: Box::new(bench),
            manner,
            conversation: ConversationId::new(format!("conv_{}", mint())),
            cancel: CancellationToken::new(),
        }
    }

    pub async fn task(&self, prompt: &str) -> Task {
        let (behind, open) = turn::place(&*self.history, &self.conversation).await.unwrap();
        Task {
            id: turn::mint_id(),
            conversation: self.conversation.clone(),
            behind,
            open,
            opening: vec![said_item(prompt, &[])],
            manner: self.manner.clone(),
            compose: self.house.gateway.setup().config.compose.clone(),
            cancel_at: None,
        }
    }

    /// Runs a turn and replays it; the replay must be identical.
    pub async fn run(&self, prompt: &str) -> (Finished, Vec<String>) {
        self.run_with(prompt, Log::default()).await
    }

    pub async fn run_with(&self, prompt: &str, mut log: Log) -> (Finished, Vec<String>) {
        let task = self.task(prompt).await;
        let gateway = &self.house.gateway;
        let finished =
            turn::drive(gateway, &task, &*self.hands, &mut Minted, &mut log, &self.cancel).await.unwrap();
        let replayed = self.replay(&task.id).await;
        assert!(replayed.differences.is_empty(), "{:#?}\n{:#?}", replayed.differences, log.lines);
        assert!(replayed.is_finished);
        (finished, log.lines)
    }

    pub async fn replay(&self, turn: &str) -> Replayed {
        let tapes = replay::find(&*self.history, turn).await.unwrap();
        replay::replay(&*self.history, tapes.last().unwrap(), None).await.unwrap()
    }

    pub async fn branch(&self) -> Vec<Kept> {
        view::latest_branch(&*self.history, &self.conversation).await.unwrap()
    }

    /// Returns what tools returned, in their order.
    pub async fn returned(&self) -> Vec<(Outcome, String)> {
        let branch = self.branch().await;
        let returned = branch.iter().filter_map(|kept| kept.entry.as_return());
        returned.map(|it| (it.outcome, joined_text(&it.parts).to_string())).collect()
    }

    /// Returns the last words of the model.
    pub async fn answer(&self) -> String {
        let branch = self.branch().await;
        let last = branch.iter().rev().find_map(|kept| match &kept.entry.kind {
            Kind::Said(said) => Some(joined_text(&said.parts).to_string()),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// Returns the bodies that the backend was sent and did not refuse.
    pub fn sent(&self) -> Vec<Value> {
        let taken = self.house.recorded("own").into_iter().filter(|recorded| recorded.status < 400);
        taken.map(|recorded| serde_json::from_str(&recorded.body).unwrap()).collect()
    }

    /// Returns every event of the record.
    pub async fn events(&self) -> Vec<ProviderEvent> {
        let mut all = Vec::new();
        for exchange in view::exchanges(&*self.history, &self.conversation).await.unwrap() {
            let which = throughline_store::Which::Events;
            let recording = self.history.recording(exchange.id, which).await.unwrap();
            all.extend(recording.events.into_iter().map(|(_, event)| event));
        }
        all
    }

    /// Asserts that the history has no call without a result.
    pub async fn assert_settled(&self) {
        let (_, open) = turn::place(&*self.history, &self.conversation).await.unwrap();
        assert!(open.is_empty(), "{open:?}");
    }
}

pub fn workbench(dir: &TempDir, approve: Approve) -> Workbench {
    let toolbox =
        Toolbox::new(Workdir::open(dir.path()).unwrap(), Limits::default(), Shell::direct().unwrap());
    Workbench::new(toolbox, approve, Box::new(Absent))
}

pub fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

pub fn read(path: &str) -> Value {
    call("read", json!({"path": path}))
}

pub fn calls_of(entries: &[Kept]) -> Vec<&Entry> {
    entries.iter().map(|kept| &kept.entry).filter(|entry| entry.as_call().is_some()).collect()
}
