//! Turns in the order that the target's template demands.

use super::Item;
use crate::{Action, Addition, Entry, Kind, Report, Role, Rules, Side, Trace};

const CONTINUED: &str = "(continued)";
const RECEIVED: &str = "Tool results received.";
const GO_ON: &str = "Continue.";

/// Merges, completes and separates turns; a request that `continues` an answer may say nothing itself.
pub(super) fn order(items: &mut Vec<Item>, rules: &Rules, continues: bool, report: &mut Report) {
    if rules.user_first {
        start_with_user(items, report);
    }
    if !rules.user_after_results {
        answer_results(items, report);
    }
    if rules.alternate {
        merge_neighbours(items, report);
    }
    if !rules.assistant_last && items.last().is_some_and(|item| item.entry.side() == Side::Assistant) {
        items.push(added(Role::User, GO_ON, Addition::ClosingWords));
        report.entry(Action::Repaired, None, "the last message may not be the assistant's");
    }
    if !continues && items.iter().all(|item| item.entry.side() == Side::System) {
        items.push(added(Role::User, CONTINUED, Addition::OpeningWords));
        report.entry(Action::Repaired, None, "a request needs at least one message");
    }
}

fn added(role: Role, words: &'static str, addition: Addition) -> Item {
    Item::lone(Entry { trace: Trace::Added(addition), ..Entry::said(role, words) })
}

fn start_with_user(items: &mut Vec<Item>, report: &mut Report) {
    let first = items.iter().position(|item| item.entry.side() != Side::System);
    let Some(first) = first.filter(|at| items[*at].entry.side() != Side::User) else { return };
    items.insert(first, added(Role::User, CONTINUED, Addition::OpeningWords));
    report.entry(Action::Repaired, None, "the first message must be the user's");
}

/// Lets the assistant answer before the user speaks again after tool results.
fn answer_results(items: &mut Vec<Item>, report: &mut Report) {
    let mut answered: Vec<Item> = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        let after_result = answered.last().is_some_and(|last| last.entry.as_return().is_some());
        if after_result && item.entry.as_said().is_some_and(|said| said.role != Role::Assistant) {
            answered.push(added(Role::Assistant, RECEIVED, Addition::WordsBetween));
            report.entry(
                Action::Repaired,
                item.entry.place,
                "the user may not speak right after tool results",
            );
        }
        answered.push(item);
    }
    *items = answered;
}

/// Joins what one side says in several messages into one.
fn merge_neighbours(items: &mut Vec<Item>, report: &mut Report) {
    let mut merged: Vec<Item> = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        match merged.last_mut() {
            Some(last) if merges(&last.entry, &item.entry) => {
                report.entry(
                    Action::Repaired,
                    item.entry.place,
                    "roles must alternate; joined with the message before",
                );
                join(&mut last.entry, item.entry);
            }
            _ => merged.push(item),
        }
    }
    *items = merged;
}

fn merges(a: &Entry, b: &Entry) -> bool {
    match (a.as_said(), b.as_said()) {
        (Some(a), Some(b)) => a.role == b.role && a.role.side() != Side::System,
        _ => false,
    }
}

fn join(into: &mut Entry, entry: Entry) {
    if let (Kind::Said(said), Kind::Said(more)) = (&mut into.kind, entry.kind) {
        said.parts.extend(more.parts);
        into.intact = false;
        into.trace.join(&entry.trace);
    }
}
