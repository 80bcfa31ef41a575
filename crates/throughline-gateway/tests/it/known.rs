//! What is known of a conversation changes what a request costs, and nothing else.
//!
//! Two gateways, one of which remembers nothing, are sent the same requests: agents that go on, repeat, rewrite
//! and cut back what they said, move the marks of the prompt cache, change instructions and tools, and switch
//! backends. Backends are sent the same bytes, and the records are the same.

use crate::client::Client;
use crate::house::{House, one_of_each};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::{ConversationId, Dialect};
use throughline_store::{Entries, History, Memory};

/// What an agent does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Goes on: with the results of the calls, or with a question.
    GoOn,
    /// Sends the same again.
    Repeat,
    /// Says something otherwise that it said earlier, so far from the end.
    Rewrite(usize),
    /// Forgets the last so many elements.
    CutBack(usize),
    /// Moves the mark of the prompt cache to the last message.
    MoveMark,
    /// Changes the instructions.
    Instruct(u8),
    /// Changes the tools.
    Equip(u8),
    /// Goes to another backend.
    Switch(Dialect),
}

const CONVERSATION: &str = "conv_known";

fn step() -> impl Strategy<Value = Step> {
    let dialect = prop::sample::select(Dialect::ALL.to_vec());
    prop_oneof![
        12 => Just(Step::GoOn),
        2 => Just(Step::Repeat),
        1 => (1..12_usize).prop_map(Step::Rewrite),
        1 => (1..6_usize).prop_map(Step::CutBack),
        3 => Just(Step::MoveMark),
        1 => any::<u8>().prop_map(Step::Instruct),
        1 => any::<u8>().prop_map(Step::Equip),
        2 => dialect.prop_map(Step::Switch),
    ]
}

/// An agent at a gateway.
struct Agent {
    house: House,
    history: Arc<Memory>,
    client: Client,
    backend: &'static str,
}

impl Agent {
    async fn new(dialect: Dialect, lines: &str) -> Self {
        let history = Arc::new(Memory::new());
        let house = House::with_lines(one_of_each(), Arc::clone(&history) as Arc<dyn History>, lines).await;
        let mut client = Client::new(&house.url, dialect);
        client.headers.push(("x-throughline-conversation", CONVERSATION.to_owned()));
        client.extra = json!({});
        // Long enough to be remembered.
        client.say(&format!(
            "Please read the file notes.txt. {}",
            "It is about \"bees\" & 96.50 °C.\n".repeat(600)
        ));
        Self { house, history, client, backend: dialect.name() }
    }

    async fn take(&mut self, step: Step, number: usize) {
        match step {
            Step::GoOn => {}
            Step::Repeat => {
                let body = self.client.body(self.backend);
                assert_eq!(self.client.post(&body).await.status, 200);
                return;
            }
            Step::Rewrite(back) => return self.rewrite(back, number),
            Step::CutBack(count) => return self.cut_back(count),
            Step::MoveMark => self.move_mark(),
            Step::Instruct(which) => return self.instruct(which),
            Step::Equip(which) => return self.equip(which),
            Step::Switch(dialect) => self.backend = dialect.name(),
        }
        let answer = self.client.ask(self.backend).await;
        let calls = answer.calls(self.client.dialect);
        for call in &calls {
            self.client.result(&call.id, &format!("Line {number}\n\tof \"notes\"."));
        }
        if calls.is_empty() {
            self.client.say(&format!("Please read the file part-{number}.txt"));
        }
    }

    fn rewrite(&mut self, back: usize, number: usize) {
        let at = self.client.history.len().saturating_sub(back);
        if let Some(message) = self.client.history.get_mut(at)
            && message["role"] == "user"
            && message["content"].is_string()
        {
            message["content"] = json!(format!("Please read the file other-{number}.txt"));
        }
    }

    /// Forgets the end of the history, up to something that the user says.
    fn cut_back(&mut self, count: usize) {
        let history = &mut self.client.history;
        let is_question = |message: &Value| message["role"] == "user" && message["content"].is_string();
        let kept = history.len().saturating_sub(count).max(1);
        let kept = history[..kept].iter().rposition(is_question).unwrap_or(0);
        history.truncate(kept + 1);
    }

    fn move_mark(&mut self) {
        if self.client.dialect != Dialect::Messages {
            return;
        }
        for message in &mut self.client.history {
            for block in message["content"].as_array_mut().into_iter().flatten() {
                block.as_object_mut().unwrap().remove("cache_control");
            }
        }
        let last = self.client.history.last_mut().and_then(|message| message["content"].as_array_mut());
        if let Some(block) = last.and_then(|blocks| blocks.last_mut()) {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
    }

    fn instruct(&mut self, which: u8) {
        match self.client.dialect {
            Dialect::Messages => self.client.extra["system"] = json!(format!("Be brief, {which}.")),
            Dialect::Responses => self.client.extra["instructions"] = json!(format!("Be brief, {which}.")),
            Dialect::Chat => {
                let message = json!({"role": "system", "content": format!("Be brief, {which}.")});
                if self.client.history[0]["role"] == "system" {
                    self.client.history[0] = message;
                } else {
                    self.client.history.insert(0, message);
                }
            }
        }
    }

    fn equip(&mut self, which: u8) {
        let mut tools = self.client.body(self.backend)["tools"].clone();
        tools.as_array_mut().unwrap().truncate(1);
        let mut other = tools[0].clone();
        let name = format!("tool_{which}");
        match self.client.dialect {
            Dialect::Chat => other["function"]["name"] = json!(name),
            Dialect::Messages | Dialect::Responses => other["name"] = json!(name),
        }
        tools.as_array_mut().unwrap().push(other);
        self.client.extra["tools"] = tools;
    }

    /// Returns what backends were sent, and the record, but for ids that were minted here.
    async fn outcome(&self) -> (Vec<String>, Vec<String>) {
        let mut sent = Vec::new();
        for (name, sim) in &self.house.sims {
            let recorded = sim.recorded().into_iter();
            sent.extend(recorded.map(|recorded| without_minted(&format!("{name}: {}", recorded.body))));
        }
        let kept =
            self.history.entries(Entries::Conversation(ConversationId::new(CONVERSATION))).await.unwrap();
        (sent, kept.into_iter().map(|kept| without_minted(&format!("{:?}", kept.entry))).collect())
    }

    async fn abridged(&self) -> u64 {
        let text = reqwest::get(format!("{}/metrics", self.house.url)).await.unwrap().text().await.unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("throughline_abridged_total "));
        count.map_or(0, |count| count.parse().unwrap())
    }
}

/// Returns a text without ids that the gateway mints and those that simulated backends make from
/// what they are sent: no two runs have the same.
fn without_minted(text: &str) -> String {
    const MINTED: usize = 24;
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let mut out = String::with_capacity(text.len());
    for run in text.split_inclusive(|c| !is_hex(c)) {
        let digits = run.trim_end_matches(|c| !is_hex(c));
        out += if digits.len() >= MINTED { "minted" } else { digits };
        out += &run[digits.len()..];
    }
    out
}

fn assert_same(lists: &[String], expected: &[String], what: &str) {
    assert_eq!(lists.len(), expected.len(), "{what}");
    for (list, expected) in lists.iter().zip(expected) {
        let differs = list.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
        let near = |text: &str| {
            let start = text.floor_char_boundary(differs.saturating_sub(200));
            text[start..text.ceil_char_boundary(differs + 200)].to_owned()
        };
        assert!(list == expected, "{what}\nis       …{}…\nexpected …{}…", near(list), near(expected));
    }
}

/// Has two agents do the same, and returns how many requests were not read whole.
async fn compare(dialect: Dialect, steps: &[Step]) -> u64 {
    compare_with(dialect, steps, "").await
}

async fn compare_with(dialect: Dialect, steps: &[Step], lines: &str) -> u64 {
    let mut knowing = Agent::new(dialect, lines).await;
    let mut unknowing = Agent::new(dialect, &format!("{lines}\nlimits = {{ known_bytes = 0 }}")).await;
    for (number, step) in steps.iter().enumerate() {
        knowing.take(*step, number).await;
        unknowing.take(*step, number).await;
    }
    let (sent, record) = knowing.outcome().await;
    let (expected_sent, expected_record) = unknowing.outcome().await;
    assert_same(&sent, &expected_sent, &format!("{dialect}: sent after {steps:?}"));
    assert_same(&record, &expected_record, &format!("{dialect}: kept after {steps:?}"));
    assert_eq!(unknowing.abridged().await, 0);
    let abridged = knowing.abridged().await;
    knowing.house.stop().await;
    unknowing.house.stop().await;
    abridged
}

#[tokio::test]
async fn an_agent_that_goes_on_is_not_read_from_its_beginning() {
    for dialect in Dialect::ALL {
        for backend in Dialect::ALL {
            let steps: Vec<Step> =
                std::iter::once(Step::Switch(backend)).chain(std::iter::repeat_n(Step::GoOn, 20)).collect();
            let abridged = compare(dialect, &steps).await;
            assert!(abridged >= 10, "{dialect} to {backend}: {abridged} of 21");
        }
    }
}

#[test]
fn what_is_known_changes_nothing_but_the_cost() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let talks = (prop::sample::select(Dialect::ALL.to_vec()), prop::collection::vec(step(), 8..30));
    let config = Config { cases: 12, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    runner
        .run(&talks, |(dialect, steps)| {
            runtime.block_on(compare(dialect, &steps));
            Ok(())
        })
        .unwrap();
}

/// What is known spares reading until the planner has to look at everything, and both agree about what is sent.
#[tokio::test]
async fn a_history_that_outgrows_its_budget_is_planned_as_if_nothing_were_known() {
    for dialect in Dialect::ALL {
        for backend in Dialect::ALL {
            let steps: Vec<Step> =
                std::iter::once(Step::Switch(backend)).chain(std::iter::repeat_n(Step::GoOn, 24)).collect();
            let abridged =
                compare_with(dialect, &steps, "history = { budget = 13000, recall = false }").await;
            assert!(abridged < 20, "{dialect} to {backend}: {abridged} were not read whole");
        }
    }
}
