//! What the tests share: reading a session, and telling what is in it.

use std::collections::BTreeMap;
use throughline_carry::{Agent, Contents, Damage, Facts, Piece, SessionReader, Spot, Told};
use throughline_core::{Entry, Kind, Ledger, joined_text};

/// A session that was read.
pub struct Session {
    pub pieces: Vec<Piece>,
    pub facts: Facts,
    pub damaged: Vec<(usize, Damage)>,
}

pub fn read(agent: Agent, lines: &str) -> Session {
    let mut reader = SessionReader::new(agent).unwrap();
    let (mut pieces, mut damaged) = (Vec::new(), Vec::new());
    for (number, line) in lines.lines().enumerate() {
        match reader.line(line) {
            Ok(piece) => pieces.extend(piece),
            Err(error) => damaged.push((number + 1, error)),
        }
    }
    Session { pieces, facts: reader.facts().clone(), damaged }
}

impl From<Contents> for Session {
    fn from(Contents { facts, pieces, damaged }: Contents) -> Self {
        Self { pieces, facts, damaged: (1..).zip(damaged).collect() }
    }
}

impl Session {
    /// Returns what was told up to the last piece of the session itself.
    pub fn told(&self) -> Vec<Told> {
        let tip = self.pieces.iter().rev().find(|piece| piece.thread.is_none()).map(|piece| piece.spot);
        self.branch(tip)
    }

    /// Returns what was told up to a piece.
    pub fn branch(&self, tip: Option<Spot>) -> Vec<Told> {
        let by_spot: BTreeMap<Spot, &Piece> = self.pieces.iter().map(|piece| (piece.spot, piece)).collect();
        let mut branch = Vec::new();
        let mut next = tip;
        while let Some(piece) = next.map(|spot| by_spot[&spot]) {
            branch.push(piece);
            next = piece.behind;
        }
        let entries =
            branch.iter().rev().flat_map(|piece| piece.entries.iter().map(|entry| (entry, piece.at)));
        let told = |(number, (entry, at)): (u32, (&Entry, Option<i64>))| Told {
            entry: entry.clone(),
            at: at.unwrap_or(0),
            number: Some(number),
        };
        (0..).zip(entries).map(told).collect()
    }

    /// Returns what was told, a short line each.
    pub fn story(&self) -> Vec<String> {
        story(&self.told())
    }
}

pub fn story(told: &[Told]) -> Vec<String> {
    told.iter().map(|told| line(&told.entry)).collect()
}

fn line(entry: &Entry) -> String {
    match &entry.kind {
        Kind::Said(said) => format!("{:?}: {}", said.role, joined_text(&said.parts)),
        Kind::Thought(thought) => format!("thought {:?} sealed {}", thought.content, thought.seal.is_some()),
        Kind::Called(call) => format!("called {} {} {}", call.name, call.id, call.input.text()),
        Kind::Returned(returned) => {
            let id = returned.call_id.as_deref().unwrap_or("-");
            format!("returned {id} {:?} {}", returned.outcome, joined_text(&returned.parts))
        }
        Kind::Summarised(summary) => format!("summary of {}: {}", summary.covers, summary.text),
        Kind::HandedOver(_) => "handed over".to_owned(),
        Kind::Reference { id } => format!("reference {id}"),
        Kind::Opaque { kind } => format!("opaque {kind}"),
    }
}

/// Returns each pair: what the tool was given and what it returned.
pub fn pairs(told: &[Told]) -> Vec<(String, Option<String>)> {
    let entries: Vec<Entry> = told.iter().map(|told| told.entry.clone()).collect();
    let words = |at: usize| entries[at].as_return().map(|returned| joined_text(&returned.parts).to_string());
    let pair = |pair: &throughline_core::ToolPair| {
        let call = entries[pair.call].as_call().unwrap();
        (call.input.text().to_string(), pair.result.and_then(words))
    };
    Ledger::of(&entries).pairs().iter().map(pair).collect()
}
