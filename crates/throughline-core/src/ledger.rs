//! The ledger: every tool call paired with its result (R01).
//!
//! Nothing else in Throughline decides which result belongs to which call. Ids are not to be trusted: they
//! recur in later turns, are missing, stand for the item instead of the call, come twice, or come before the
//! call. The ledger settles each result against the call it most plausibly answers, and lists as a
//! [`Mismatch`] whatever did not go by the book.

use crate::{Entry, Outcome, Return, Side, Text};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The pairs of a list of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pairs: Vec<ToolPair>,
    mismatches: Vec<Mismatch>,
    /// For each entry that is half of a pair, which pair that is.
    pair_of: BTreeMap<usize, usize>,
}

/// A call and its result; entries are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolPair {
    /// The call.
    pub call: usize,
    /// The result that settled it.
    pub result: Option<usize>,
    /// Which batch the call was made in: calls that the model made side by side share one.
    pub batch: usize,
    /// How it stands.
    pub state: PairState,
}

/// How a pair stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairState {
    /// No result yet.
    Open,
    /// There is a result, and this is how it went.
    Settled(Outcome),
}

/// An entry whose counterpart was not found where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The entry, by its index.
    pub entry: usize,
    /// What is odd about it.
    pub oddity: Oddity,
}

/// What is odd about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// A call that nothing answers.
    NoResult,
    /// A result of a call that is not there.
    NoCall,
    /// A further result of a call that had one.
    Duplicate {
        /// The result that settled the call, by its index.
        of: usize,
    },
    /// A result that stands before its call.
    Early,
    /// A result that names the item instead of the call.
    ByItemId,
    /// A result without an id, taken by its position.
    ByPosition,
}

impl Ledger {
    /// Derives the pairs of `entries`.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Self {
        let mut scan = Scan {
            entries,
            ledger: Self::default(),
            open: Open::default(),
            batch: 0,
            unresolved: Vec::new(),
        };
        scan.run();
        scan.settle_the_rest();
        scan.ledger
    }

    /// Returns the pairs, in the order of their calls.
    #[must_use]
    pub fn pairs(&self) -> &[ToolPair] {
        &self.pairs
    }

    /// Returns what did not go by the book, in the order of the entries.
    #[must_use]
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// Returns the pair that an entry is half of.
    #[must_use]
    pub fn pair_of(&self, entry: usize) -> Option<&ToolPair> {
        self.pair_of.get(&entry).map(|pair| &self.pairs[*pair])
    }

    /// Returns what is odd about an entry.
    #[must_use]
    pub fn oddity_of(&self, entry: usize) -> Option<Oddity> {
        let at = self.mismatches.binary_search_by_key(&entry, |mismatch| mismatch.entry).ok()?;
        Some(self.mismatches[at].oddity)
    }

    fn settle(&mut self, pair: usize, entry: usize, outcome: Outcome) {
        self.pairs[pair].result = Some(entry);
        self.pairs[pair].state = PairState::Settled(outcome);
        self.pair_of.insert(entry, pair);
    }
}

/// The pairs that wait for a result, by what a result could name them by.
///
/// Some servers use one id in every turn, and nothing stops a client from using it a hundred thousand times: what is
/// settled is passed over once, and never looked at again.
#[derive(Default)]
struct Open<'e> {
    by_call_id: BTreeMap<&'e Text, Waiting>,
    by_item_id: BTreeMap<&'e Text, Waiting>,
    /// Those of the batch under way, by the name of their tool and all together.
    by_name: BTreeMap<&'e Text, VecDeque<usize>>,
    by_position: VecDeque<usize>,
}

/// The pairs of one id, batch by batch; those that were settled by another id are still among them.
#[derive(Default)]
struct Waiting {
    batches: Vec<(usize, VecDeque<usize>)>,
}

impl Waiting {
    fn push(&mut self, pair: usize, batch: usize) {
        match self.batches.last_mut() {
            Some((last, pairs)) if *last == batch => pairs.push_back(pair),
            _ => self.batches.push((batch, VecDeque::from([pair]))),
        }
    }

    /// Picks the open pair that a result answers: ids recur, so the latest batch is meant, and in it the
    /// first call that still waits.
    fn first_of_last_batch(&mut self, pairs: &[ToolPair]) -> Option<usize> {
        while let Some((_, waiting)) = self.batches.last_mut() {
            if let Some(pair) = first_open(waiting, pairs) {
                return Some(pair);
            }
            self.batches.pop();
        }
        None
    }
}

/// Returns the first pair that still waits, and forgets those before it.
fn first_open(waiting: &mut VecDeque<usize>, pairs: &[ToolPair]) -> Option<usize> {
    while let Some(pair) = waiting.front() {
        if pairs[*pair].result.is_none() {
            return Some(*pair);
        }
        waiting.pop_front();
    }
    None
}

struct Scan<'e> {
    entries: &'e [Entry],
    ledger: Ledger,
    open: Open<'e>,
    batch: usize,
    unresolved: Vec<usize>,
}

impl<'e> Scan<'e> {
    fn run(&mut self) {
        let mut in_batch = false;
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.as_call().is_some() {
                if !in_batch {
                    self.batch += 1;
                    self.open.by_name.clear();
                    self.open.by_position.clear();
                }
                in_batch = true;
                self.open_pair(at, entry);
            } else if let Some(returned) = entry.as_return() {
                in_batch = false;
                self.settle(at, returned);
            } else if entry.side() != Side::Assistant {
                in_batch = false;
            }
        }
    }

    fn open_pair(&mut self, at: usize, entry: &'e Entry) {
        let Some(call) = entry.as_call() else { return };
        let (pair, batch) = (self.ledger.pairs.len(), self.batch);
        self.ledger.pairs.push(ToolPair { call: at, result: None, batch, state: PairState::Open });
        self.ledger.pair_of.insert(at, pair);

        self.open.by_call_id.entry(&call.id).or_default().push(pair, batch);
        if let Some(item_id) = &call.item_id {
            self.open.by_item_id.entry(item_id).or_default().push(pair, batch);
        }
        self.open.by_name.entry(&call.name).or_default().push_back(pair);
        self.open.by_position.push_back(pair);
    }

    fn settle(&mut self, at: usize, returned: &Return) {
        let found = match &returned.call_id {
            Some(id) => self.open_by_id(id),
            None => {
                self.open_by_position(returned.name.as_ref()).map(|pair| (pair, Some(Oddity::ByPosition)))
            }
        };
        match found {
            Some((pair, oddity)) => {
                self.ledger.settle(pair, at, returned.outcome);
                self.ledger.mismatches.extend(oddity.map(|oddity| Mismatch { entry: at, oddity }));
            }
            None => self.unresolved.push(at),
        }
    }

    fn open_by_id(&mut self, id: &Text) -> Option<(usize, Option<Oddity>)> {
        let pairs = &self.ledger.pairs;
        let among = |waiting: Option<&mut Waiting>| waiting?.first_of_last_batch(pairs);
        if let Some(pair) = among(self.open.by_call_id.get_mut(id)) {
            return Some((pair, None));
        }
        among(self.open.by_item_id.get_mut(id)).map(|pair| (pair, Some(Oddity::ByItemId)))
    }

    fn open_by_position(&mut self, name: Option<&Text>) -> Option<usize> {
        let waiting = match name {
            Some(name) => self.open.by_name.get_mut(name)?,
            None => &mut self.open.by_position,
        };
        first_open(waiting, &self.ledger.pairs)
    }

    /// Deals with results that met no open call: they came again, came too early, or belong nowhere.
    fn settle_the_rest(&mut self) {
        let unresolved = std::mem::take(&mut self.unresolved);
        let mut rest = Rest::default();
        if !unresolved.is_empty() {
            (0..self.ledger.pairs.len()).for_each(|pair| rest.note(self.entries, &self.ledger.pairs, pair));
        }
        for at in unresolved {
            let Some(returned) = self.entries[at].as_return() else { continue };
            let oddity = match rest.settled_before(at, returned.call_id.as_ref()) {
                Some(of) => Oddity::Duplicate { of },
                None => self.settle_early(at, returned, &mut rest),
            };
            self.ledger.mismatches.push(Mismatch { entry: at, oddity });
        }
        let unanswered = self.ledger.pairs.iter().filter(|pair| pair.result.is_none());
        let unanswered = unanswered.map(|pair| Mismatch { entry: pair.call, oddity: Oddity::NoResult });
        self.ledger.mismatches.extend(unanswered);
        self.ledger.mismatches.sort_by_key(|mismatch| mismatch.entry);
    }

    fn settle_early(&mut self, at: usize, returned: &Return, rest: &mut Rest<'e>) -> Oddity {
        let later = returned.call_id.as_ref().and_then(|id| rest.open.get_mut(id));
        let Some(pair) = later.and_then(|waiting| first_open(waiting, &self.ledger.pairs)) else {
            return Oddity::NoCall;
        };
        self.ledger.settle(pair, at, returned.outcome);
        rest.note(self.entries, &self.ledger.pairs, pair);
        Oddity::Early
    }
}

/// What the results that met no open call are held against.
#[derive(Default)]
struct Rest<'e> {
    /// The results that settled a call, by the ids of that call.
    settled: BTreeMap<&'e Text, BTreeSet<usize>>,
    /// The pairs that wait, by the id of their call.
    open: BTreeMap<&'e Text, VecDeque<usize>>,
}

impl<'e> Rest<'e> {
    fn note(&mut self, entries: &'e [Entry], pairs: &[ToolPair], pair: usize) {
        let Some(call) = entries[pairs[pair].call].as_call() else { return };
        match pairs[pair].result {
            Some(result) => {
                for id in std::iter::once(&call.id).chain(&call.item_id) {
                    self.settled.entry(id).or_default().insert(result);
                }
            }
            None => self.open.entry(&call.id).or_default().push_back(pair),
        }
    }

    fn settled_before(&self, at: usize, id: Option<&Text>) -> Option<usize> {
        self.settled.get(id?)?.range(..at).next_back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Input, Kind, Part, Role};

    fn call(id: &str) -> Entry {
        let call = Call {
            id: id.into(),
            item_id: Some(format!("item_{id}").into()),
            name: "read".into(),
            namespace: None,
            input: Input::Arguments("{}".into()),
        };
        Entry::new(Kind::Called(call))
    }

    fn result(id: &str) -> Entry {
        let returned = Return {
            call_id: (!id.is_empty()).then(|| id.into()),
            item_id: None,
            name: None,
            parts: vec![Part::text("ok")],
            outcome: Outcome::Ok,
            freeform: false,
        };
        Entry::new(Kind::Returned(returned))
    }

    fn user() -> Entry {
        Entry::said(Role::User, "go on")
    }

    /// Writes the pairs as `call-result` and the oddities behind them.
    fn check(entries: &[Entry], pairs: &str, oddities: &[(usize, Oddity)]) {
        let ledger = Ledger::of(entries);
        let written: Vec<String> = ledger
            .pairs()
            .iter()
            .map(|pair| format!("{}-{}", pair.call, pair.result.map_or("?".into(), |at| at.to_string())))
            .collect();
        assert_eq!(written.join(" "), pairs);
        let found: Vec<_> = ledger.mismatches().iter().map(|m| (m.entry, m.oddity)).collect();
        assert_eq!(found, oddities);
    }

    #[test]
    fn results_find_their_calls_in_any_order() {
        check(&[call("a"), call("b"), result("b"), result("a")], "0-3 1-2", &[]);
    }

    #[test]
    fn calls_side_by_side_share_a_batch_also_with_text_between() {
        let text = Entry::said(Role::Assistant, "and now");
        let entries = [call("a"), text, call("b"), result("a"), result("b"), call("c")];
        let ledger = Ledger::of(&entries);
        let batches: Vec<_> = ledger.pairs().iter().map(|pair| pair.batch).collect();
        assert_eq!(batches, [1, 1, 2]);
    }

    #[test]
    fn an_id_that_recurs_is_settled_per_turn() {
        check(&[call("x"), result("x"), user(), call("x"), result("x")], "0-1 3-4", &[]);
    }

    #[test]
    fn an_unanswered_id_that_recurs_leaves_the_result_to_the_later_turn() {
        let entries = [call("x"), user(), call("x"), result("x")];
        check(&entries, "0-? 2-3", &[(0, Oddity::NoResult)]);
    }

    #[test]
    fn the_same_id_twice_in_one_batch_is_settled_in_order() {
        check(&[call("x"), call("x"), result("x"), result("x")], "0-2 1-3", &[]);
    }

    #[test]
    fn a_second_result_is_a_duplicate() {
        let entries = [call("x"), result("x"), result("x")];
        check(&entries, "0-1", &[(2, Oddity::Duplicate { of: 1 })]);
    }

    #[test]
    fn a_result_before_its_call_settles_it() {
        check(&[result("x"), call("x")], "1-0", &[(0, Oddity::Early)]);
    }

    #[test]
    fn an_item_id_in_place_of_the_call_id_is_understood() {
        check(&[call("x"), result("item_x")], "0-1", &[(1, Oddity::ByItemId)]);
    }

    #[test]
    fn a_result_without_an_id_answers_the_first_call_that_waits() {
        let odd = |at| (at, Oddity::ByPosition);
        check(&[call("a"), call("b"), result(""), result("")], "0-2 1-3", &[odd(2), odd(3)]);
    }

    #[test]
    fn a_result_of_nothing_is_an_orphan() {
        check(&[user(), result("x")], "", &[(1, Oddity::NoCall)]);
    }

    /// One id, or none, for everything: with the square of the length each of these would take hours.
    #[test]
    fn a_hundred_thousand_of_one_id_are_paired_in_no_time() {
        const MANY: usize = 100_000;
        let many = |entry: Entry| std::iter::repeat_n(entry, MANY);
        let turns = || many(call("x")).zip(many(result("x"))).flat_map(|(call, result)| [call, result]);
        let settled = |entries: Vec<Entry>| {
            let ledger = Ledger::of(&entries);
            ledger.pairs().iter().filter(|pair| pair.result.is_some()).count()
        };
        assert_eq!(settled(std::iter::once(call("x")).chain(many(result("x"))).collect()), 1);
        assert_eq!(settled(many(call("x")).chain(many(result("x"))).collect()), MANY);
        assert_eq!(settled(many(call("x")).chain(many(result("item_x"))).collect()), MANY);
        assert_eq!(settled(many(call("x")).chain(many(result(""))).collect()), MANY);
        assert_eq!(settled(many(result("x")).chain(many(call("x"))).collect()), 1, "the others came again");
        assert_eq!(settled(turns().collect()), MANY);
        assert_eq!(settled(turns().chain(many(result("x"))).collect()), MANY);
        assert_eq!(settled(many(call("x")).chain(many(result("y"))).collect()), 0);
    }
}
