//! The sections of the bench: what is sent, and what it may cost.

use crate::agent::{Talk, small};
use bytes::Bytes;

/// What is measured of every target in turn.
pub struct Section {
    pub name: String,
    /// What the mock backend answers: one of [`crate::mock::ANSWERS`].
    pub answer: &'static str,
    /// The dialect of the backend; clients always speak Messages.
    pub backend: &'static str,
    pub connections: usize,
    /// How many requests each connection makes, and how many before those are not counted.
    pub requests: usize,
    pub warm_up: usize,
    pub load: Load,
    /// The most that the gateway may cost, as a multiple, and of whom.
    pub aim: Option<(f64, &'static str)>,
}

/// What each connection sends.
#[derive(Clone, Copy)]
pub enum Load {
    /// A request of a kilobyte that nobody has sent before.
    Small { stream: bool },
    /// A talk of so many pairs, with results of so many lines, that grows by a pair with each request.
    Growing { pairs: usize, lines: usize },
    /// The same, sent again as it was.
    Resent { pairs: usize, lines: usize },
}

/// The requests of one connection.
pub struct Requests {
    load: Load,
    talk: Option<Talk>,
    number: usize,
}

/// Lines of a result that make a talk of 140 pairs one of 424 KB.
const LINES: usize = 26;

/// Lines of a result in the talks of up to 3,000 pairs.
const LINES_OF_LONG_TALKS: usize = 4;

/// Returns all sections.
pub fn sections() -> Vec<Section> {
    let mut sections = Vec::new();
    for (backend, way) in [("messages", "same dialect"), ("chat", "messages to chat")] {
        let same = backend == "messages";
        let section = |name: &str, answer, load| Section {
            name: format!("{name}, {way}"),
            answer,
            backend,
            connections: 8,
            requests: 30,
            warm_up: 2,
            load,
            aim: None,
        };
        let small = section("1 KB", "whole", Load::Small { stream: false });
        let aim = same.then_some((1.5, "durable"));
        sections.push(Section { requests: 400, warm_up: 20, connections: 16, aim, ..small });
        let aim = Some(if same { (5.0, "plain") } else { (10.0, "plain") });
        let agent =
            section("agent 424 KB, grown by a pair", "whole", Load::Growing { pairs: 140, lines: LINES });
        sections.push(Section { aim, ..agent });
        let agent = section("agent 424 KB, resent", "whole", Load::Resent { pairs: 140, lines: LINES });
        sections.push(Section { aim, ..agent });
        let burst = section("burst of 200 deltas", "burst", Load::Small { stream: true });
        let aim = same.then_some((1.0, "plain"));
        sections.push(Section { requests: 100, aim, ..burst });
        let paced = section("200 deltas, one each 5 ms", "paced", Load::Small { stream: true });
        let aim = same.then_some((1.5, "plain"));
        sections.push(Section { requests: 3, warm_up: 1, connections: 32, aim, ..paced });
        for pairs in [10, 100, 1_000, 3_000] {
            let load = Load::Growing { pairs, lines: LINES_OF_LONG_TALKS };
            let curve = section(&format!("curve, {pairs} known pairs"), "whole", load);
            sections.push(Section { connections: 2, requests: 40, ..curve });
        }
    }
    sections
}

impl Requests {
    /// Begins the requests of the connection of that number.
    pub fn new(section: &Section, number: usize) -> Self {
        let talk = match section.load {
            Load::Small { .. } => None,
            Load::Growing { pairs, lines } | Load::Resent { pairs, lines } => {
                Some(Talk::new(number, pairs, lines, false))
            }
        };
        Self { load: section.load, talk, number: number * 1_000_000 }
    }

    /// Returns the next request.
    pub fn next(&mut self) -> Bytes {
        self.number += 1;
        match (self.load, &mut self.talk) {
            (Load::Growing { .. }, Some(talk)) => {
                let body = talk.body();
                talk.grow();
                body
            }
            (Load::Resent { .. }, Some(talk)) => talk.body(),
            (Load::Small { stream }, _) => small(self.number, stream),
            (_, None) => Bytes::new(),
        }
    }
}
