//! What of a history a backend is shown when not all of it fits (R06, R10, R36).
//!
//! Most requests fit, and whether one does is first asked of its bytes, which costs next to nothing. Where that
//! leaves a doubt, tokens are counted, on a thread that may be blocked; only where they are too many is
//! anything taken out. What was decided is in rows of the conversation, and the next plan goes on from it, also where
//! everything would fit by now: so do a restart and another gateway over the same history, with the same bytes.
//!
//! Nothing is touched while it fits the backend, whoever keeps the history. Only where `truncation_threshold` is
//! set are calls and results kept below that, too.

use super::Running;
use super::compaction_record::{CompactionRecord, RecordedDecisions};
use super::editing;
use super::prompting::history;
use super::recall;
use super::record::Decided;
use super::retell::Untold;
use crate::config::{Backend, Budget as PromptBudget, FactSource};
use crate::failure::gateway_error;
use crate::gateway::Gateway;
use crate::privacy::Privacy;
use crate::routing::Destination;
use std::sync::Arc;
use throughline_core::plan::{
    Budget, Count, Decisions, Measured, Plan, PlanError, Planner, Policy, Tally, Tokens, ToolRule, ToolRules,
};
use throughline_core::{Ask, Content, Dialect, Entry, Failure, FailureKind, Kind, Media, Part, Text};
use throughline_store::PlanSizes;
use throughline_tokens::{Counts, Gauge, Size};
use throughline_wire::ContextEdits;

/// A plan, and what of it is new.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What the record is told about it.
    pub decided: Decided,
    /// The tool by which the model can have back what was taken out, if it is offered one.
    pub recall: Option<Text>,
    /// What of it the client asked to have cleared.
    pub cleared: Tally,
    /// What a model is to summarise, if this plan has put anything into the digest and a model is wanted for it.
    pub untold: Option<Untold>,
}

/// How much of a history a destination may be shown.
#[derive(Clone, Debug)]
struct Limits {
    budget: Budget,
    rules: ToolRules,
    recall: bool,
}

/// A history with all that it takes to plan it, for a thread of its own.
struct Work {
    gateway: Arc<Gateway>,
    gauge: Gauge,
    limits: Limits,
    /// What the client asks to have done, where the backend does not do it.
    edits: Option<ContextEdits>,
    /// What is taken out of the digest, as it is out of everything that is kept.
    privacy: Arc<Privacy>,
    entries: Vec<Entry>,
    sizes: Vec<Tokens>,
    besides: Tokens,
}

/// Counts as the models of a backend do, on the safe side.
pub struct Counter<'a> {
    /// How they count.
    pub gauge: &'a Gauge,
    /// What was counted before.
    pub counts: &'a Counts,
}

/// How much of a window is kept for the answer, if the request does not say how long that may be.
const RESERVE_TOKENS: u64 = 8_192;

/// A byte of text is never counted as more tokens, whatever was learned about how a model counts: what fits by that
/// measure was never too long.
const TOKENS_PER_BYTE_MAX: u64 = 6;

impl Running {
    /// Plans what a destination is shown; nothing, if that is all there is.
    ///
    /// What a backend keeps itself (`is_kept`) is only shortened where it would not fit: it costs nothing to
    /// leave it there.
    ///
    /// # Errors
    /// When the history cannot be made to fit, or may not be shortened.
    pub(super) async fn plan(
        &self,
        destination: &Destination,
        is_kept: bool,
        record: &CompactionRecord,
    ) -> Result<Option<Planned>, Failure> {
        let mut limits = Limits::of(destination, &self.ask);
        limits.budget.tool_history = limits.budget.tool_history.filter(|_| !is_kept);
        let edits = editing::honoured(&self.ask, &destination.backend);
        if !limits.exist() && edits.is_none() {
            return Ok(None);
        }

        let entries = history(&self.ask, &self.placed, &destination.backend);
        let before = record.for_branch(&destination.backend.name, &destination.model, &entries).cloned();
        // What was decided is shown until more has to go: a prompt that grows back changes from its beginning.
        let sticks = before.is_some() && !is_kept && limits.budget.policy != Policy::Off;
        if edits.is_none() && !sticks && limits.surely_hold(&entries, &self.ask) {
            return Ok(None);
        }

        let offers = limits.recall;
        let gauge = self.gateway.token_counters.of(&self.gateway.standing(), destination);
        let work = Work {
            gateway: Arc::clone(&self.gateway),
            privacy: Arc::clone(&self.setup.config.privacy),
            gauge,
            limits,
            edits,
            entries,
            sizes: Vec::new(),
            besides: Tokens(0),
        };
        let ask = self.ask.clone();
        let work = on_a_thread(move || work.measured(&ask)).await?;
        if !sticks && work.fits() {
            return Ok(None);
        }

        let recall = offers.then(|| recall::tool_name(&self.ask)).filter(|_| !self.recalls.are_used_up());
        let (gauge, wants_words) = (work.gauge, self.wants_words());
        let planned = on_a_thread(move || work.planned(before.as_ref(), wants_words)).await?;
        let planned = planned.map_err(|error| too_long(&error, &self.ask, &gauge))?;
        Ok(Some(Planned { recall, ..planned }).filter(|planned| !planned.plan.is_untouched()))
    }

    /// Says whether a request that was not read whole is surely small enough for a destination, by the bytes
    /// of its body: those of its texts are fewer.
    pub(super) fn surely_fits(&self, destination: &Destination, record: &CompactionRecord) -> bool {
        let Some(bytes) = self.reading.bytes_if_abridged() else { return true };
        if !record.is_empty() || editing::honoured(&self.ask, &destination.backend).is_some() {
            return false;
        }
        let limits = Limits::of(destination, &self.ask);
        let holds = |limit: Tokens| surely_within(bytes as u64, limit);
        limits.budget.tool_history.is_none() && limits.budget.limit().is_none_or(holds)
    }

    /// Reads what was decided about this conversation, unless nothing can have been.
    ///
    /// What cannot be read is decided anew: the prompt is then another one, and as good.
    pub(super) async fn compaction_record(&self, destination: &Destination) -> CompactionRecord {
        let is_new = self.placed.parent.is_none() && self.recorder.attempts() == 0;
        if is_new || !self.may_be_decided(destination) {
            return CompactionRecord::default();
        }
        match self.gateway.history.compaction(self.placed.conversation.clone()).await {
            Ok(steps) => CompactionRecord::from_steps(steps),
            Err(error) => {
                tracing::warn!(%error, "what was shortened before could not be read; it is decided anew");
                CompactionRecord::default()
            }
        }
    }

    /// Says whether the history is so long that something of it may have been shortened before.
    fn may_be_decided(&self, destination: &Destination) -> bool {
        if editing::honoured(&self.ask, &destination.backend).is_some() {
            return true;
        }
        let history = || self.placed.history.iter().map(bytes_of).sum::<u64>();
        let bytes = self.reading.bytes_if_abridged().map_or_else(history, |bytes| bytes as u64);
        let budget = Limits::of(destination, &self.ask).budget;
        let smallest = budget.limit().into_iter().chain(budget.tool_history).min();
        smallest.is_some_and(|limit| bytes * TOKENS_PER_BYTE_MAX > limit.0)
    }
}

/// Returns what the tools are, as a backend's settings say.
pub fn tool_rules(backend: &Backend) -> ToolRules {
    let rule = |rule: &crate::config::ToolRule| ToolRule {
        tools: rule.tools.iter().map(|name| Text::from(name.as_str())).collect(),
        kind: rule.kind.plans(),
        key: rule.key.as_deref().map(Text::from),
    };
    ToolRules::new(backend.history.rules.iter().map(rule).collect())
}

/// Returns how many tokens a prompt for a destination may have, if that is known.
pub fn prompt_limit(destination: &Destination, ask: &Ask) -> Option<u64> {
    Limits::of(destination, ask).budget.limit().map(|limit| limit.0)
}

impl Limits {
    fn of(destination: &Destination, ask: &Ask) -> Self {
        let settings = &destination.backend.history;
        let (prompt, reserve) = match settings.budget {
            PromptBudget::Tokens(tokens) => {
                let refused = destination.window.refused.map_or(tokens, |window| window.min(tokens));
                (Some(Tokens(refused)), Tokens(0))
            }
            PromptBudget::Auto => {
                let facts = destination.backend.model_facts(&destination.model);
                let configured = facts.context_window.filter(|it| it.source == FactSource::Configuration);
                let known = configured.map(|it| it.value).or(destination.window.listed);
                let known = known.or(facts.context_window.map(|it| it.value));
                let window = [known, destination.window.refused].into_iter().flatten().min().map(Tokens);
                (window, window.map_or(Tokens(0), |window| reserve(ask, window)))
            }
        };
        let budget = Budget {
            prompt,
            reserve,
            tool_history: settings.truncation_threshold.map(Tokens),
            recent_calls_to_keep: settings.recent_calls_to_keep.map(|calls| calls as usize),
            policy: if forbids(ask) { Policy::Off } else { settings.policy.plans() },
            ..Budget::default()
        };
        Self {
            budget,
            rules: tool_rules(&destination.backend),
            recall: settings.recall && recall::is_usable(ask),
        }
    }

    const fn exist(&self) -> bool {
        self.budget.prompt.is_some() || self.budget.tool_history.is_some()
    }

    /// Says whether a history is so small that nobody need count it.
    fn surely_hold(&self, entries: &[Entry], ask: &Ask) -> bool {
        let mut all: u64 = ask.fields.iter().filter(|field| field.name == "tools").map(bytes_of_field).sum();
        let mut tools = 0;
        for entry in entries {
            let bytes = bytes_of(entry);
            all += bytes;
            if matches!(entry.kind, Kind::Called(_) | Kind::Returned(_)) {
                tools += bytes;
            }
        }
        let holds = |limit: Option<Tokens>, bytes: u64| limit.is_none_or(|limit| surely_within(bytes, limit));
        holds(self.budget.limit(), all) && holds(self.budget.tool_history, tools)
    }
}

impl Work {
    fn measured(mut self, ask: &Ask) -> Self {
        let counter = Counter { gauge: &self.gauge, counts: &self.gateway.token_counters.counts };
        self.gauge.vocabulary().load();
        self.sizes = counter.sizes(&self.entries);
        self.besides = counter.besides(ask);
        self
    }

    fn fits(&self) -> bool {
        if self.edits.is_some() {
            return false;
        }
        let is_tool = |entry: &Entry| matches!(entry.kind, Kind::Called(_) | Kind::Returned(_));
        let all = self.sizes.iter().copied().sum::<Tokens>() + self.besides;
        let of_tools = self.entries.iter().zip(&self.sizes).filter(|(entry, _)| is_tool(entry));
        let tools: Tokens = of_tools.map(|(_, size)| *size).sum();
        self.limits.budget.limit().is_none_or(|limit| all <= limit)
            && self.limits.budget.tool_history.is_none_or(|limit| tools <= limit)
    }

    /// Plans what goes on from what was decided before.
    fn planned(&self, before: Option<&RecordedDecisions>, wants_words: bool) -> Result<Planned, PlanError> {
        let nothing = Decisions::default();
        let decided = before.map_or(&nothing, |before| &before.decisions);
        let mut plan = self.plan(decided)?;
        // The prefix changes anyway, so this is the time for words that were found since.
        let words = before.and_then(|before| before.summary.as_ref());
        if let Some(words) = words.filter(|_| plan.is_step) {
            let mut told = decided.clone();
            told.retell(words, &Counter { gauge: &self.gauge, counts: &self.gateway.token_counters.counts });
            plan = self.plan(&told).unwrap_or(plan);
            plan.is_step = true;
        }
        // What is shown now is what is read back later.
        plan.decisions.change_span_text(|text| self.privacy.text(text).into_owned());

        let cleared = Tally::of(&self.entries, &plan.decisions);
        let untold = (wants_words && plan.is_step).then(|| Untold::of(&self.entries, &plan.decisions));
        let decided = Decided::from_plan(&plan, before.map(|before| (&before.step, decided)));
        Ok(Planned { plan, decided, recall: None, cleared, untold: untold.flatten() })
    }

    fn plan(&self, before: &Decisions) -> Result<Plan, PlanError> {
        let count = Counter { gauge: &self.gauge, counts: &self.gateway.token_counters.counts };
        let Limits { budget, rules, recall } = &self.limits;
        let planner = Planner { budget, rules, count: &count, recall: *recall };
        let Self { entries, sizes, besides, .. } = self;
        // Whatever is taken out, the tool that gives it back comes in.
        let besides = *besides + if *recall { count.recall() } else { Tokens(0) };
        let history = Measured { entries, sizes, besides };
        let Some(edits) = &self.edits else { return planner.plan(history, before) };
        let cleared = planner.clear(history, before, &edits.clearing);
        let below = edits.compact_above.and_then(|above| self.limits.budget.below(Tokens(above)));
        // A client's threshold is a wish: what cannot be brought below it is sent all the same.
        let compacted = below
            .and_then(|budget| Planner { budget: &budget, ..planner }.plan(history, &cleared.decisions).ok());
        let mut plan = compacted.map_or_else(|| planner.plan(history, &cleared.decisions), Ok)?;
        plan.is_step |= cleared.is_step;
        Ok(plan)
    }
}

impl Counter<'_> {
    /// Returns the size of each entry.
    pub fn sizes(&self, entries: &[Entry]) -> Vec<Tokens> {
        entries.iter().map(|entry| self.tokens(self.gauge.entry(self.counts, entry))).collect()
    }

    /// Returns what a request takes beside its history.
    pub fn besides(&self, ask: &Ask) -> Tokens {
        self.tokens(self.gauge.prompt(self.counts, &[], &ask.tools, ask.settings.format.as_ref()))
    }

    /// Returns what the tool takes by which the model has back what was taken out.
    pub fn recall(&self) -> Tokens {
        self.tokens(self.gauge.prompt(self.counts, &[], &[recall::tool(&Text::default())], None))
    }

    const fn tokens(&self, size: Size) -> Tokens {
        Tokens(self.gauge.tokens_at_most(size))
    }
}

impl Count for Counter<'_> {
    fn count(&self, text: &str) -> Tokens {
        self.tokens(self.gauge.text(self.counts, text))
    }
}

impl Planned {
    /// Returns how large the prompt is.
    #[must_use]
    pub const fn sizes(&self) -> PlanSizes {
        let Plan { before, after, tool_history, .. } = &self.plan;
        PlanSizes { before: before.0, after: after.0, tools: tool_history.0 }
    }

    /// Returns how many of so many changes the record need not name again: all of them, if the exchange in
    /// which they were decided does.
    #[must_use]
    pub const fn counts_only(&self, changes: usize) -> usize {
        if self.decided.is_step() { 0 } else { changes }
    }
}

/// Says whether so many bytes of text are surely no more tokens than that.
///
/// A token stands for at least one byte in every vocabulary in use: those that know no character for something fall
/// back to its bytes. Prose has four or five bytes to a token, but dumps, tables of figures and logs have less than
/// two, so no larger number is safe.
const fn surely_within(bytes: u64, limit: Tokens) -> bool {
    bytes <= limit.0
}

/// Says whether the client asks for an error rather than a shortened history.
pub fn forbids(ask: &Ask) -> bool {
    let says = |name: &str, value: &str| {
        ask.fields.iter().any(|field| field.name == name && field.value.trim_matches('"') == value)
    };
    ask.dialect == Dialect::Responses && says("truncation", "disabled")
}

/// Returns what is kept for the answer; never more than half of the window.
fn reserve(ask: &Ask, window: Tokens) -> Tokens {
    let asked = ask.settings.max_output_tokens.as_ref().and_then(|tokens| tokens.parse().ok());
    Tokens(asked.unwrap_or(RESERVE_TOKENS)).min(window.percent(50))
}

fn bytes_of_field(field: &throughline_core::Extra) -> u64 {
    field.value.len() as u64
}

/// Returns about how many bytes of text an entry has; pictures and files are taken for as large as they are.
fn bytes_of(entry: &Entry) -> u64 {
    let of_parts = |parts: &[Part]| parts.iter().map(bytes_of_part).sum::<usize>();
    let bytes = match &entry.kind {
        Kind::Said(said) => of_parts(&said.parts),
        Kind::Returned(returned) => of_parts(&returned.parts),
        Kind::Called(call) => call.name.len() + call.input.text().len(),
        Kind::Thought(thought) => thought.content.iter().chain(&thought.summary).map(|text| text.len()).sum(),
        Kind::Summarised(summary) => summary.text.len(),
        Kind::HandedOver(_) | Kind::Reference { .. } => 0,
        Kind::Opaque { .. } => entry.wire.as_ref().map_or(0, |wire| wire.text.len()),
    };
    // Each entry takes some tokens for its marks.
    bytes as u64 + 32
}

fn bytes_of_part(part: &Part) -> usize {
    let of_media = |media: &Media| match media {
        Media::Inline { base64: text, .. } | Media::Plain(text) => text.len(),
        Media::Url(_) | Media::Stored(_) => PICTURE_BYTES,
    };
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => text.len(),
        Content::Image(image) => of_media(&image.media).max(PICTURE_BYTES),
        Content::File(file) => of_media(&file.media).max(PICTURE_BYTES),
        Content::Opaque { .. } => part.wire.as_ref().map_or(0, |wire| wire.text.len()),
    }
}

/// A picture takes some thousand tokens, however few bytes it has.
const PICTURE_BYTES: usize = 8 * 1024;

/// Runs what may take long where nobody waits for it.
///
/// # Errors
/// When it panicked.
pub async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| gateway_error(FailureKind::Backend, "throughline_not_planned", error.to_string()))
}

/// Says why there is no plan: who forbids it where somebody does, and what is in the numbers.
pub fn explained(error: &PlanError, ask: &Ask, gauge: &Gauge) -> String {
    let by = match error {
        PlanError::Forbidden { .. } if forbids(ask) => ": `truncation` is `disabled`",
        PlanError::Forbidden { .. } => ": the policy is `off`",
        _ => "",
    };
    let counted = match gauge.margin() {
        0 => String::new(),
        margin => format!("; an estimate, with {} % added to be on the safe side", f64::from(margin) / 10.0),
    };
    format!("{error}{by}{counted}")
}

/// Says in the words that clients of the dialect know, and act on, that a prompt is too long: see docs/decisions/0029.
fn too_long(error: &PlanError, ask: &Ask, gauge: &Gauge) -> Failure {
    let code = match ask.dialect {
        Dialect::Chat | Dialect::Responses => "context_length_exceeded",
        Dialect::Messages => "throughline_prompt_too_long",
    };
    let param = match ask.dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
    };
    let message = format!("prompt is too long: {}", explained(error, ask, gauge));
    Failure {
        code: Some(Text::from_static(code)),
        param: Some(Text::from_static(param)),
        ..Failure::new(FailureKind::InvalidRequest, message)
    }
}
