//! Agents: tool conversations in three dialects, streamed and not, with whichever replica comes next.
//!
//! An agent whose request fails sends it again, to the next replica, as agents do.

use super::Plan;
use super::replicas::Replicas;
use crate::talk::{body, exchange, path, resent, result_of, said, whole};
use serde_json::{Value, json};
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

const DIALECTS: [&str; 3] = ["chat", "messages", "responses"];

/// How many tools an agent uses in a conversation.
const TURNS: usize = 4;

/// An answer of which an agent saw the end.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The exchange, as the answer named it.
    pub exchange: String,
    pub conversation: String,
    pub call: Option<String>,
    pub text: String,
}

/// All agents, and what they have seen.
pub struct Agents<'r> {
    replicas: &'r Replicas,
    next: AtomicUsize,
    stopped: AtomicBool,
    conversations: AtomicUsize,
    refused: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
    /// Told of each answer.
    news: Condvar,
}

impl<'r> Agents<'r> {
    pub fn new(replicas: &'r Replicas) -> Self {
        Self {
            replicas,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            conversations: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            seen: Mutex::new(Vec::new()),
            news: Condvar::new(),
        }
    }

    /// Returns how many answers come in a second from so many replicas.
    pub fn rate_of(&self, plan: &Plan, replicas: usize) -> f64 {
        self.stopped.store(false, SeqCst);
        let before = self.seen().len();
        std::thread::scope(|scope| {
            (0..plan.agents).for_each(|number| drop(scope.spawn(move || self.talk(number, replicas))));
            self.wait_for(usize::MAX, plan.calm);
            self.stop();
        });
        self.stopped.store(false, SeqCst);
        (self.seen().len() - before) as f64 / plan.calm.as_secs_f64()
    }

    /// Waits for so many answers more, but not longer than `limit`.
    pub fn wait_for(&self, answers: usize, limit: Duration) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = seen.len().saturating_add(answers);
        drop(self.news.wait_timeout_while(seen, limit, |seen| seen.len() < wanted));
    }

    pub fn stop(&self) {
        self.stopped.store(true, SeqCst);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn refused(&self) -> usize {
        self.refused.load(SeqCst)
    }

    /// Has conversations until it is told to stop.
    pub fn talk(&self, number: usize, replicas: usize) {
        let dialect = DIALECTS[number % DIALECTS.len()];
        while !self.stopped.load(SeqCst) {
            let name = self.conversations.fetch_add(1, SeqCst);
            let model = DIALECTS[(number + name) % DIALECTS.len()];
            self.converse(dialect, model, name.is_multiple_of(2), &format!("soak{name}"), replicas);
        }
    }

    fn converse(&self, dialect: &str, model: &str, stream: bool, name: &str, replicas: usize) {
        let mut history = Vec::new();
        for turn in 0..TURNS {
            history.push(json!({"role": "user", "content": format!("Read the file {name}-{turn}.txt")}));
            let Some(Some(call)) = self.ask(dialect, model, stream, &mut history, replicas) else { return };
            history.push(result_of(dialect, &call, &format!("what {name}-{turn} says")));
            if self.ask(dialect, model, stream, &mut history, replicas).is_none() {
                return;
            }
        }
    }

    /// Sends the conversation until an answer came to its end, and returns the call in it; nothing once the agents
    /// are told to stop.
    fn ask(
        &self,
        dialect: &str,
        model: &str,
        stream: bool,
        history: &mut Vec<Value>,
        replicas: usize,
    ) -> Option<Option<String>> {
        let request = body(dialect, model, stream, history).to_string();
        while !self.stopped.load(SeqCst) {
            let address = &self.replicas.addresses[self.next.fetch_add(1, SeqCst) % replicas];
            let answered = exchange(address, "POST", path(dialect), &request);
            let ended = answered.as_ref().filter(|(head, _)| head.contains(" 200 "));
            let Some((head, answer)) =
                ended.and_then(|(head, body)| Some((head, whole(dialect, stream, body)?)))
            else {
                self.refused.fetch_add(1, SeqCst);
                self.wait_for(1, Duration::from_millis(50));
                continue;
            };
            let header = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                line.unwrap_or_else(|| panic!("{head}")).to_owned()
            };
            let (call, text) = said(dialect, &answer);
            let (exchange, conversation) =
                (header("x-throughline-request"), header("x-throughline-conversation"));
            let seen = Seen { exchange, conversation, call: call.clone(), text };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            self.news.notify_all();
            history.extend(resent(dialect, answer));
            return Some(call);
        }
        None
    }
}

impl Display for Agents<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let answers = self.seen.lock().unwrap_or_else(PoisonError::into_inner).len();
        write!(to, "{answers} answers, {} requests failed", self.refused())
    }
}
