//! The normaliser: one pass before every send that leaves nothing a backend would reject.
//!
//! Each step is a file that takes the entries and hands them on, in this order: foreign things are taken
//! out, attachments put back into their results, pairs completed and placed, the strategy applied, reasoning
//! sorted, ids and names mapped, media moved out of results, system messages placed, blank text removed,
//! reasoning that nothing follows any more dropped, turns ordered. Each repair is in the report; an entry
//! that needs none stays as it came.

mod blank;
mod foreign;
mod media;
mod names;
mod pairs;
mod reasoning;
mod system;
#[cfg(test)]
mod tests;
mod turns;

pub use reasoning::without_reasoning;

use crate::render;
use crate::{Ask, Entry, Prompt, Report, Rules, Target};

/// An entry on its way through the normaliser.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The entry as it stands by now.
    pub entry: Entry,
    /// The pair that it is half of; stays valid however the list changes.
    pub pair: Option<usize>,
}

impl Item {
    fn lone(entry: Entry) -> Self {
        Self { entry, pair: None }
    }
}

/// Makes the prompt that `ask` becomes for `target`.
pub(crate) fn normalise<'a>(ask: &'a Ask, target: &Target<'a>, report: &mut Report) -> Prompt<'a> {
    let rules = target.rules;
    let entries = foreign::without_foreign(&ask.entries, rules, report);
    let entries = if rules.media_in_results { media::reattach(entries) } else { entries };
    let issued_elsewhere = continues(ask, &entries, rules).then_some(rules.call_id);
    let mut items = pairs::arrange(&entries, issued_elsewhere, report);
    render::apply(target.strategy, &mut items, report);
    reasoning::sort(&mut items, target, report);
    let names = names::name_tools(ask, rules, report);
    let ids = names::name_calls(&mut items, &names, rules, report);
    if !rules.media_in_results {
        media::detach(&mut items, report);
    }
    system::place(&mut items, rules, report);
    blank::clear(&mut items, rules, report);
    reasoning::drop_dangling(&mut items, rules, report);
    turns::order(&mut items, rules, issued_elsewhere.is_some(), report);
    let without_reasoning = reasoning::must_be_off(&items, ask, rules, report);
    let (tools, tool_choice) = names::offer(ask, &items, &names, rules, report);
    Prompt {
        ask,
        rules,
        model: target.model.clone().or_else(|| ask.model.clone()),
        entries: items.into_iter().map(|item| item.entry).collect(),
        tools,
        tool_choice,
        without_reasoning,
        names: names.into_map(),
        ids,
    }
}

/// Says whether the request leans on history that the backend keeps, so that a result may answer a call
/// that is not in the request.
fn continues(ask: &Ask, entries: &[Entry], rules: &Rules) -> bool {
    let refers = || entries.iter().any(|entry| matches!(entry.kind, crate::Kind::Reference { .. }));
    ask.dialect == rules.dialect && (ask.previous.is_some() || ask.conversation.is_some() || refers())
}
