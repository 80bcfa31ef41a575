//! Pairs completed and placed: every call gets its result, right behind its batch (R05, R09).

use super::Item;
use crate::render::retold;
use crate::{
    Absence, Action, Addition, Entry, Kind, Ledger, NameRule, Oddity, Outcome, Part, Report, Return, Side,
    Text, Trace, Treatment, joined_text,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

const NO_RESULT: &str = "No result of this call was recorded. Whether the tool ran is not known.";

/// Returns the entries with all results of a batch behind it and nothing unpaired.
///
/// Where calls may have been issued elsewhere, under ids of that form, their results are left alone.
pub(super) fn arrange(
    entries: &[Entry],
    issued_elsewhere: Option<NameRule>,
    report: &mut Report,
) -> Vec<Item> {
    let ledger = Ledger::of(entries);
    let items = Vec::with_capacity(entries.len() + ledger.mismatches().len());
    let mut arranger = Arranger {
        entries,
        ledger,
        issued_elsewhere,
        call_ids: entries.iter().filter_map(Entry::as_call).map(|call| &call.id).collect(),
        left_alone: BTreeMap::new(),
        waiting: Vec::new(),
        batch: HashMap::new(),
        items,
        report,
    };
    arranger.run();
    arranger.items
}

struct Arranger<'a> {
    entries: &'a [Entry],
    ledger: Ledger,
    issued_elsewhere: Option<NameRule>,
    /// The ids of all calls that are here.
    call_ids: BTreeSet<&'a Text>,
    /// The results that were left alone, by the ids of their calls.
    left_alone: BTreeMap<&'a Text, usize>,
    /// The pairs of the batch under way, whose results are still to be placed.
    waiting: Vec<usize>,
    /// The calls of that batch, with the results that are there for each.
    batch: HashMap<CallKey<'a>, HashSet<(Outcome, Text)>>,
    items: Vec<Item>,
    report: &'a mut Report,
}

/// What makes two calls of a batch the same: a name that they share, and what they call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CallKey<'a> {
    name: CallName<'a>,
    tool: &'a Text,
    namespace: Option<&'a Text>,
    input: &'a str,
    is_freeform: bool,
}

/// A name by which a call is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CallName<'a> {
    Id(&'a Text),
    Item(&'a Text),
}

impl CallName<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Item(name) if name.is_empty())
    }
}

impl<'a> Arranger<'a> {
    fn run(&mut self) {
        let mut pairs = 0;
        for (at, entry) in self.entries.iter().enumerate() {
            match entry.side() {
                Side::Assistant => {
                    let is_call = entry.as_call().is_some();
                    let pair = is_call.then_some(pairs);
                    pairs += usize::from(is_call);
                    if let Some(again) = pair.filter(|pair| self.came_before(*pair)) {
                        self.report.entry(Action::Dropped, entry.place, "the same call came twice");
                        let result = self.ledger.pairs()[again].result;
                        for at in std::iter::once(at).chain(result) {
                            self.report.leave_out(&self.entries[at], Absence::DuplicateResult);
                        }
                        continue;
                    }
                    self.waiting.extend(pair);
                    self.items.push(Item { entry: entry.clone(), pair });
                }
                Side::System | Side::User => {
                    self.place_results(at);
                    self.place(at, entry);
                }
            }
        }
        self.place_results(self.entries.len());
    }

    /// Says whether a call is the same as one before it in its batch, and has nothing else to show for it.
    fn came_before(&mut self, pair: usize) -> bool {
        let entries = self.entries;
        let (call, result) = (self.ledger.pairs()[pair].call, self.ledger.pairs()[pair].result);
        let Some(call) = entries[call].as_call() else { return false };
        let returned = result.and_then(|at| entries[at].as_return());
        let result = returned.and_then(comparable);

        let names = [Some(CallName::Id(&call.id)), call.item_id.as_ref().map(CallName::Item)];
        let keys: Vec<CallKey<'a>> = names
            .into_iter()
            .flatten()
            .filter(|name| !name.is_empty())
            .map(|name| CallKey {
                name,
                tool: &call.name,
                namespace: call.namespace.as_ref(),
                input: call.input.text(),
                is_freeform: matches!(call.input, crate::Input::Freeform(_)),
            })
            .collect();
        let says_nothing_new = |results: &HashSet<(Outcome, Text)>| {
            returned.is_none() || result.as_ref().is_some_and(|result| results.contains(result))
        };
        let is_again = keys.iter().any(|key| self.batch.get(key).is_some_and(says_nothing_new));
        if !is_again {
            for key in keys {
                self.batch.entry(key).or_default().extend(result.clone());
            }
        }
        is_again
    }

    fn place(&mut self, at: usize, entry: &'a Entry) {
        match &entry.kind {
            Kind::Returned(returned) if self.ledger.pair_of(at).is_none() => {
                self.place_unpaired(at, entry, returned);
            }
            // Placed with its call, before or after this point.
            Kind::Returned(_) => {}
            _ => self.items.push(Item::lone(entry.clone())),
        }
    }

    /// Places the results of the batch that ends at `at`, in the order in which they came.
    fn place_results(&mut self, at: usize) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.batch.clear();
        waiting.sort_by_key(|pair| self.ledger.pairs()[*pair].result.unwrap_or(usize::MAX));
        let mut expected = at;
        for pair in waiting {
            let call = &self.entries[self.ledger.pairs()[pair].call];
            let entry = match self.ledger.pairs()[pair].result {
                Some(result) => {
                    let has_moved = self.note_move(result, expected);
                    expected = result + 1;
                    let mut entry = self.matching(result, call);
                    if has_moved {
                        entry.trace.note(Treatment::Moved);
                    }
                    entry
                }
                None => self.closing(call),
            };
            self.items.push(Item { entry, pair: Some(pair) });
        }
    }

    /// Notes that a result does not stand where it is expected; says whether that is so.
    fn note_move(&mut self, result: usize, expected: usize) -> bool {
        let skipped = self.entries.get(expected..result);
        let in_place = skipped.is_some_and(|skipped| skipped.iter().all(|entry| entry.as_return().is_some()));
        let reason = match self.ledger.oddity_of(result) {
            Some(Oddity::Early) => "the result stood before its call",
            Some(Oddity::ByItemId) => "the result named the item instead of the call",
            Some(Oddity::ByPosition) => "the result named no call; taken by its position",
            _ if !in_place => "the result did not follow its call",
            _ => return false,
        };
        self.report.entry(Action::Repaired, self.entries[result].place, reason);
        true
    }

    /// Returns the result in the form that its call demands.
    fn matching(&self, result: usize, call: &Entry) -> Entry {
        let entry = &self.entries[result];
        let (Some(returned), Some(call)) = (entry.as_return(), call.as_call()) else { return entry.clone() };
        let freeform = matches!(call.input, crate::Input::Freeform(_));
        if returned.freeform == freeform {
            return entry.clone();
        }
        entry.altered(Kind::Returned(Return { freeform, ..returned.clone() }))
    }

    /// Returns the result that closes a call which nothing answered.
    fn closing(&mut self, entry: &Entry) -> Entry {
        self.report.entry(Action::Repaired, entry.place, "no result of this call was recorded");
        let call = entry.as_call();
        let mut closing = Entry::new(Kind::Returned(Return {
            call_id: call.map(|call| call.id.clone()),
            item_id: None,
            name: None,
            parts: vec![Part::text(Text::from_static(NO_RESULT))],
            outcome: Outcome::Unknown,
            freeform: call.is_some_and(|call| matches!(call.input, crate::Input::Freeform(_))),
        }));
        closing.place = entry.place;
        closing.trace = Trace::Added(Addition::ClosingResult);
        closing
    }

    fn place_unpaired(&mut self, at: usize, entry: &'a Entry, returned: &'a Return) {
        let first = match self.ledger.oddity_of(at) {
            Some(Oddity::Duplicate { of }) => Some(of),
            _ => returned.call_id.as_ref().and_then(|id| self.left_alone.get(id).copied()),
        };
        if let Some(of) = first {
            if self.entries[of].as_return().is_some_and(|first| same_result(first, returned)) {
                self.report.entry(Action::Dropped, entry.place, "the same result came twice");
                self.report.leave_out(entry, Absence::DuplicateResult);
                return;
            }
            self.report.entry(Action::Repaired, entry.place, "a second, other result, retold as text");
        } else if let Some(id) = self.issued(returned) {
            self.left_alone.insert(id, at);
            self.items.push(Item::lone(entry.clone()));
            return;
        } else {
            self.report.entry(Action::Repaired, entry.place, "a result without its call, retold as text");
        }
        self.items.push(Item::lone(retold(entry, returned)));
    }

    /// Returns the id of a call that the target itself may have issued in a request before this one.
    fn issued(&self, returned: &'a Return) -> Option<&'a Text> {
        let rule = self.issued_elsewhere?;
        returned.call_id.as_ref().filter(|id| rule.admits(id) && !self.call_ids.contains(id))
    }
}

/// Returns what a result says, to be compared; a result with pictures or files is never taken for another.
fn comparable(returned: &Return) -> Option<(Outcome, Text)> {
    let is_text = returned.parts.iter().all(|part| part.as_text().is_some());
    is_text.then(|| (returned.outcome, joined_text(&returned.parts)))
}

fn same_result(a: &Return, b: &Return) -> bool {
    let media = |parts: &[Part]| -> Vec<_> {
        parts.iter().filter(|part| part.as_text().is_none()).map(|part| part.content.clone()).collect()
    };
    a.outcome == b.outcome
        && joined_text(&a.parts) == joined_text(&b.parts)
        && media(&a.parts) == media(&b.parts)
}
