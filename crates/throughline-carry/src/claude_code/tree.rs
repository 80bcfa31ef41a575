//! The tree that the lines of a session form, made straight where calls were made side by side.

use crate::Spot;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use throughline_core::Text;

/// Where lines stand. Ids of lines are kept as digests: a long session has many.
#[derive(Debug, Default)]
pub(super) struct Tree {
    lines: BTreeMap<u128, Line>,
    answers: BTreeMap<u128, usize>,
    calls: BTreeMap<u128, usize>,
    batches: Vec<Batch>,
    threads: Vec<Thread>,
}

/// A line that others may follow.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The last piece up to it.
    spot: Option<Spot>,
    thread: usize,
    batch: Option<usize>,
}

/// An answer of the model and the results of its calls.
#[derive(Clone, Copy, Debug)]
struct Batch {
    tail: Option<Spot>,
    /// Whether something else has followed it.
    is_over: bool,
}

/// The session itself, or a sub-agent in it.
#[derive(Clone, Debug, Default)]
struct Thread {
    name: Option<Text>,
    tip: Option<Spot>,
    entries: u32,
}

/// What a line says about its place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links<'a> {
    /// Its id.
    pub id: Option<&'a str>,
    /// The id of the line before it.
    pub parent: Option<&'a str>,
    /// Whether it is a sub-agent's.
    pub is_side: bool,
    /// The answer that it is a part of.
    pub answer: Option<&'a str>,
    /// A call that it is the result of.
    pub result_of: Option<&'a str>,
}

/// A place for a piece.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// What it stands behind.
    pub behind: Option<Spot>,
    thread: usize,
    batch: Option<usize>,
}

impl Tree {
    /// Says whether a line of that id was there before.
    pub fn knows(&self, id: &str) -> bool {
        self.lines.contains_key(&digest(id))
    }

    /// Finds the place of a line.
    pub fn place(&mut self, links: Links<'_>) -> Place {
        let parent = links.parent.map(|parent| self.lines.get(&digest(parent)).copied());
        let thread = self.thread(links, parent.flatten());
        let batch = self.batch_of(links, thread);
        let tip = self.threads[thread].tip;
        let behind = match (batch.map(|batch| self.batches[batch]), parent) {
            // A further line of the answer, or a result of it.
            (Some(Batch { is_over: false, tail: Some(tail) }), Some(_)) => Some(tail),
            (Some(Batch { is_over: true, .. }), _) if links.result_of.is_some() => tip,
            (_, Some(Some(line))) => match line.batch {
                Some(before) if Some(before) != batch => self.end(before),
                _ => line.spot,
            },
            // A line that is not in this file, or could not be read.
            (_, Some(None)) => tip,
            (_, None) => None,
        };
        Place { behind, thread, batch }
    }

    /// Takes in a line that brought nothing: what follows it follows what it follows.
    pub fn pass(&mut self, links: Links<'_>) {
        let place = self.place(links);
        self.remember(links, place.behind, &place);
    }

    /// Takes in a line that brought a piece.
    pub fn grow(&mut self, links: Links<'_>, spot: Spot, entries: usize, calls: &[&str], mut place: Place) {
        if let Some(answer) = links.answer.filter(|_| place.batch.is_none()) {
            self.batches.push(Batch { tail: None, is_over: false });
            place.batch = Some(self.batches.len() - 1);
            self.answers.insert(digest(&format!("{}/{answer}", place.thread)), self.batches.len() - 1);
        }
        if let Some(batch) = place.batch {
            self.batches[batch].tail = Some(spot);
            self.calls.extend(calls.iter().map(|call| (digest(&format!("{}/{call}", place.thread)), batch)));
        }
        let thread = &mut self.threads[place.thread];
        thread.tip = Some(spot);
        thread.entries += u32::try_from(entries).unwrap_or(u32::MAX);
        self.remember(links, Some(spot), &place);
    }

    /// Returns the name of the sub-agent at a place.
    pub fn thread_name(&self, place: &Place) -> Option<Text> {
        self.threads[place.thread].name.clone()
    }

    /// Returns how many entries there were before a place.
    pub fn entries_before(&self, place: &Place) -> u32 {
        self.threads[place.thread].entries
    }

    /// Returns where the session itself, or the sub-agent, has come to.
    pub fn tip(&self, place: &Place) -> Option<Spot> {
        self.threads[place.thread].tip
    }

    fn remember(&mut self, links: Links<'_>, spot: Option<Spot>, place: &Place) {
        if let Some(id) = links.id {
            let line = Line { spot, thread: place.thread, batch: place.batch };
            self.lines.insert(digest(id), line);
        }
    }

    fn thread(&mut self, links: Links<'_>, parent: Option<Line>) -> usize {
        if self.threads.is_empty() {
            self.threads.push(Thread::default());
        }
        match parent.filter(|line| links.is_side == (line.thread != 0)) {
            Some(line) => line.thread,
            None if !links.is_side => 0,
            // A sub-agent's line whose parent is unknown belongs to the last one; without a parent, to a new one.
            None if links.parent.is_some() && self.threads.len() > 1 => self.threads.len() - 1,
            None => {
                let name = links.id.map_or_else(|| self.threads.len().to_string().into(), Text::from);
                self.threads.push(Thread { name: Some(name), ..Thread::default() });
                self.threads.len() - 1
            }
        }
    }

    fn batch_of(&self, links: Links<'_>, thread: usize) -> Option<usize> {
        let of = |id: &str| digest(&format!("{thread}/{id}"));
        let answer = links.answer.and_then(|answer| self.answers.get(&of(answer)));
        let call = || links.result_of.and_then(|call| self.calls.get(&of(call)));
        // An answer that something has followed is not gone on with: the line is a copy, at its own place.
        answer.filter(|batch| !self.batches[**batch].is_over).or_else(call).copied()
    }

    fn end(&mut self, batch: usize) -> Option<Spot> {
        self.batches[batch].is_over = true;
        self.batches[batch].tail
    }
}

fn digest(id: &str) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        id.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
