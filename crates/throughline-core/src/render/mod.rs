//! Strategies: how tool history is shown to a backend (R02).
//!
//! A strategy renders a pair, renders a summary, and has a name. Nothing else in Throughline writes tool
//! history as text. Both strategies get entries that are already paired and placed.

mod brief;
mod embed;

pub use brief::{BriefOptions, BriefSummary, brief, brief_in_force, briefed, own_message, with_brief};
pub use embed::EmbedForm;

use crate::normalise::Item;
use crate::{Absence, Action, Call, Entry, Kind, Report, Return, Role, Summary, Trace, Treatment};
use std::collections::BTreeMap;

/// How tool history is shown to a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As tool calls and results, in place (R04).
    #[default]
    Native,
    /// As text in the user's role (R03), for backends that reject tool items in the history.
    TextEmbed(EmbedForm),
}

impl Strategy {
    /// Returns the name that users and logs know it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::TextEmbed(_) => "text-embed",
        }
    }

    /// Renders a call: as itself, or not at all.
    fn render_call(self, entry: Entry) -> Option<Entry> {
        match self {
            Self::Native => Some(entry),
            Self::TextEmbed(_) => None,
        }
    }

    /// Renders the result of `call`.
    fn render_result(self, entry: Entry, call: Option<&Call>) -> Entry {
        match (self, entry.as_return()) {
            (Self::TextEmbed(form), Some(returned)) => embed::embedded(&entry, returned, call, form),
            _ => entry,
        }
    }

    /// Renders a summary, which no dialect has an item for.
    fn render_summary(self, summary: &Summary) -> Entry {
        Entry::said(Role::User, summary.text.clone())
    }
}

/// Shows the tool history in `items` by `strategy`.
pub(crate) fn apply(strategy: Strategy, items: &mut Vec<Item>, report: &mut Report) {
    let mut calls: BTreeMap<usize, (Call, Trace)> = BTreeMap::new();
    // Only comments tell the call along with its result.
    let tells_calls = strategy == Strategy::TextEmbed(EmbedForm::Comments);
    let mut out = Vec::with_capacity(items.len());
    for Item { entry, pair } in items.drain(..) {
        match &entry.kind {
            Kind::Called(call) => {
                if strategy != Strategy::Native {
                    calls.extend(pair.map(|pair| (pair, (call.clone(), entry.trace.clone()))));
                    report.entry(Action::Translated, entry.place, "the call is left out of the text");
                    if !tells_calls {
                        report.leave_out(&entry, Absence::CallOfText);
                    }
                }
                out.extend(strategy.render_call(entry).map(|entry| Item { entry, pair }));
            }
            Kind::Returned(_) => {
                let call = pair.and_then(|pair| calls.get(&pair));
                if strategy != Strategy::Native {
                    report.entry(Action::Translated, entry.place, "the result is sent as text");
                }
                let mut entry = strategy.render_result(entry, call.map(|(call, _)| call));
                if let Some((_, trace)) = call.filter(|_| tells_calls) {
                    entry.trace.join(&trace.with(Treatment::Retold));
                }
                out.push(Item { entry, pair });
            }
            Kind::Summarised(summary) => {
                let trace = entry.trace.with(Treatment::Retold);
                let entry = Entry { trace, ..strategy.render_summary(summary) };
                out.push(Item { entry, pair });
            }
            _ => out.push(Item { entry, pair }),
        }
    }
    *items = out;
}

/// Retells a result that has no call as text, whatever the strategy.
pub(crate) fn retold(entry: &Entry, returned: &Return) -> Entry {
    embed::embedded(entry, returned, None, EmbedForm::Plain)
}
