//! What compaction would send of a request, without a conversation and without a backend.
//!
//! The same planner, the same counts and the same rendering as in the gateway, on a request that stands for
//! itself: nothing was decided before, and nothing is kept.

use super::planning::{Counter, explained, forbids};
use super::recall;
use crate::view::class_name;
use throughline_core::plan::{
    Budget, Decision, Measured, Plan, PlanError, Planner, Policy, Taken, Tokens, ToolRules,
};
use throughline_core::{Ask, Dialect, Entry, Prompt, Report, Rules, Subject, Target, Text, prepare};
use throughline_tokens::{Counts, Gauge, Method};
use throughline_wire::json::{DecodeError, Document};
use throughline_wire::{decode_document, encode_request, path};

/// How a request is to be compacted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The dialect of the request.
    pub dialect: Dialect,
    /// How much there may be.
    pub budget: Budget,
    /// Whether the model is offered a tool that gives back what was taken out, where it could call one.
    pub recall: bool,
    /// Whether the whole budget is filled, as for a backend that takes over.
    pub fill: bool,
}

/// A request as compaction would send it.
#[derive(Debug)]
pub struct Preview {
    /// The body.
    pub body: String,
    /// The model that it is counted for.
    pub model: Option<Text>,
    /// Whether the counts are exact for the model.
    pub is_exact: bool,
    /// What the request takes as it came, and as it is sent.
    pub tokens: (u64, u64),
    /// The same at most, with what an estimate may be off by: what the budget is held against.
    pub tokens_at_most: (u64, u64),
    /// What of that are calls and results.
    pub tool_tokens: (u64, u64),
    /// The name of the tool by which the model has back what was taken out, if it is offered.
    pub recall: Option<Text>,
    /// What becomes of each entry.
    pub entries: Vec<Shown>,
    /// What stands for the rounds that went into it, and before which entry of the request it stands.
    pub summary: Option<(String, Text)>,
    /// What else was changed, by place.
    pub changes: Vec<(String, &'static str, Text)>,
}

/// What becomes of an entry.
#[derive(Debug)]
pub struct Shown {
    /// Where it stands in the request.
    pub place: String,
    /// What it is.
    pub kind: &'static str,
    /// What was decided about it.
    pub decision: &'static str,
    /// By which the model has it back.
    pub handle: Option<String>,
    /// What it takes as it came, and as it is sent.
    pub tokens: (u64, u64),
    /// Why it is shown as it is.
    pub reason: Text,
}

/// Why there is nothing to send.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The request cannot be understood.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// It cannot be made to fit, or may not be shortened.
    #[error("{0}")]
    Unplanned(String),
}

/// Returns what compaction would send of a request.
///
/// # Errors
/// When it cannot be understood, or does not fit.
pub fn preview(document: &Document, wanted: &Wanted) -> Result<Preview, PreviewError> {
    let ask = decode_document(wanted.dialect, document)?;
    let gauge = Gauge::of_model(ask.model.as_deref().unwrap_or_default());
    gauge.vocabulary().load();
    let counts = Counts::default();
    let work = Work { ask: &ask, gauge, counts: &counts, wanted };
    let sizes = work.counter().sizes(&ask.entries);
    let before = sizes.iter().copied().sum::<Tokens>() + work.counter().besides(&ask);
    work.plan(&sizes)
        .and_then(|plan| work.rendered(&plan, before))
        .map_err(|error| PreviewError::Unplanned(explained(&error, &ask, &work.gauge)))
}

struct Work<'a> {
    ask: &'a Ask,
    gauge: Gauge,
    counts: &'a Counts,
    wanted: &'a Wanted,
}

impl Work<'_> {
    const fn counter(&self) -> Counter<'_> {
        Counter { gauge: &self.gauge, counts: self.counts }
    }

    fn offers_recall(&self) -> bool {
        self.wanted.recall && recall::is_usable(self.ask)
    }

    fn plan(&self, sizes: &[Tokens]) -> Result<Plan, PlanError> {
        let (count, recall) = (self.counter(), self.offers_recall());
        let policy = if forbids(self.ask) { Policy::Off } else { self.wanted.budget.policy };
        let budget = Budget { policy, ..self.wanted.budget.clone() };
        let planned = |besides: Tokens, recall: bool| {
            let rules = ToolRules::default();
            let planner = Planner { budget: &budget, rules: &rules, count: &count, recall };
            let history = Measured { entries: &self.ask.entries, sizes, besides };
            if self.wanted.fill {
                planner.hand_over(history)
            } else {
                planner.plan(history, &Default::default())
            }
        };
        let besides = count.besides(self.ask);
        // The tool comes in only where something is taken out.
        match planned(besides, recall)? {
            plan if plan.is_untouched() => Ok(plan),
            _ if recall => planned(besides + count.recall(), true),
            plan => Ok(plan),
        }
    }

    fn rendered(&self, plan: &Plan, before: Tokens) -> Result<Preview, PlanError> {
        let recall = (self.offers_recall() && !plan.is_untouched()).then(|| recall::tool_name(self.ask));
        let mut expanded = self.ask.clone();
        expanded.entries = plan.apply(&self.ask.entries, &mut Report::default());
        expanded.tools.extend(recall.iter().map(recall::tool));
        let rules = Rules::of_dialect(self.wanted.dialect);
        let (prompt, mut report) = prepare(&expanded, &Target::new(&rules));
        let body = encode_request(&prompt, &mut report);
        report.sort();
        let tokens = (self.size(&self.ask.entries, &self.ask.tools), self.size_of(&prompt));
        self.check(tokens.1)?;
        let place = |subject: &Subject| path(self.wanted.dialect, subject);
        let span = plan.decisions.span();
        let at = span.and_then(|span| self.ask.entries.get(span.at as usize));
        let summary = span.zip(at).map(|(span, at)| (place(&Subject::Entry(at.place)), span.text.clone()));
        let changes = report
            .changes
            .iter()
            .map(|change| (place(&change.subject), change.action.name(), change.reason.clone()));
        Ok(Preview {
            body,
            model: self.ask.model.clone(),
            is_exact: self.gauge.method() == Method::Exact,
            tokens,
            tokens_at_most: (before.0, plan.after.0),
            tool_tokens: (self.tool_size(&self.ask.entries), self.tool_size(&prompt.entries)),
            recall,
            entries: self.entries(plan),
            summary,
            changes: changes.collect(),
        })
    }

    /// Returns what becomes of each entry.
    fn entries(&self, plan: &Plan) -> Vec<Shown> {
        let mut reasons = plan.reasons().peekable();
        let shown = |(at, entry): (usize, &Entry)| {
            let taken = reasons.next_if(|(taken, _)| taken.entry as usize == at);
            let came = self.gauge.tokens(self.gauge.entry(self.counts, entry));
            let is_pair = entry.as_call().is_some() || entry.as_return().is_some();
            let (decision, after, reason) = match &taken {
                Some((taken, reason)) => (decided(taken), taken.tokens.0, reason.clone()),
                None => ("kept", came, Text::from_static("as it came")),
            };
            let handle = taken.filter(|_| is_pair).map(|(taken, _)| taken.handle.to_string());
            let place = path(self.wanted.dialect, &Subject::Entry(entry.place));
            Shown { place, kind: class_name(entry), decision, handle, tokens: (came, after), reason }
        };
        self.ask.entries.iter().enumerate().map(shown).collect()
    }

    fn size(&self, entries: &[Entry], tools: &[throughline_core::Tool]) -> u64 {
        let format = self.ask.settings.format.as_ref();
        self.gauge.tokens(self.gauge.prompt(self.counts, entries, tools, format))
    }

    fn size_of(&self, prompt: &Prompt<'_>) -> u64 {
        self.size(&prompt.entries, &prompt.tools)
    }

    fn tool_size(&self, entries: &[Entry]) -> u64 {
        let is_tool = |entry: &&Entry| entry.as_call().is_some() || entry.as_return().is_some();
        let size = |entry: &Entry| self.gauge.tokens(self.gauge.entry(self.counts, entry));
        entries.iter().filter(is_tool).map(size).sum()
    }

    /// What rendering adds is little, and still may not be more than there is room for.
    fn check(&self, tokens: u64) -> Result<(), PlanError> {
        match self.wanted.budget.limit() {
            Some(limit) if Tokens(tokens) > limit => {
                let entries = &self.ask.entries;
                let size = |entry: &Entry| Tokens(self.gauge.tokens(self.gauge.entry(self.counts, entry)));
                let sizes: Vec<Tokens> = entries.iter().map(size).collect();
                let besides = Tokens(self.size(&[], &self.ask.tools));
                Err(Measured { entries, sizes: &sizes, besides }.does_not_fit(Tokens(tokens), limit))
            }
            _ => Ok(()),
        }
    }
}

const fn decided(taken: &Taken) -> &'static str {
    match taken.decision {
        Decision::Superseded { .. } => "superseded",
        Decision::Excerpt(_) => "excerpt",
        Decision::Masked => "masked",
        Decision::Summarised => "summarised",
        Decision::Dropped => "dropped",
        Decision::Cleared => "cleared",
    }
}
