//! What the record says was decided about a history.
//!
//! The report of the attempt whose plan took a step has the decisions; those of later attempts name the exchange
//! where that was, so that a long conversation keeps them once.

use super::retell;
use throughline_core::Text;
use throughline_core::plan::Decisions;
use throughline_store::{Attempt, Exchange, ExchangeId};
use throughline_wire::json::Document;

/// What the report of an attempt says about decisions.
pub enum Noted {
    /// They are here, perhaps with the words of a model for the digest.
    Here(Decisions, Option<Text>),
    /// They are in another exchange.
    In(ExchangeId),
}

impl Noted {
    /// Reads the report of an attempt; none if nothing was decided for it.
    #[must_use]
    pub fn of(attempt: &Attempt) -> Option<Self> {
        let report = attempt.report.as_deref()?;
        let document = Document::parse(report).ok()?;
        let plan = document.root().field("plan")?;
        let text = |name| plan.field(name).and_then(|value| value.as_text());
        match text("since") {
            Some(id) => Some(Self::In(ExchangeId::new(&*id))),
            None => {
                let decisions = Decisions::from_text(&text("decisions")?).ok()?;
                Some(Self::Here(decisions, retell::words_in(plan)))
            }
        }
    }
}

/// Returns what the record of an exchange has last for a backend.
#[must_use]
pub fn last(exchange: &Exchange, backend: &str) -> Option<Noted> {
    of_backend(exchange, backend).next()
}

/// Returns the decisions for a backend that the record of an exchange has itself, with the words of a model.
///
/// Later attempts of the same exchange, such as those after a recall, lead to the one that decided.
#[must_use]
pub fn here(exchange: &Exchange, backend: &str) -> Option<(Decisions, Option<Text>)> {
    of_backend(exchange, backend).find_map(|noted| match noted {
        Noted::Here(decisions, words) => Some((decisions, words)),
        Noted::In(_) => None,
    })
}

fn of_backend(exchange: &Exchange, backend: &str) -> impl Iterator<Item = Noted> {
    exchange.attempts.iter().rev().filter(move |attempt| attempt.backend == backend).filter_map(Noted::of)
}
