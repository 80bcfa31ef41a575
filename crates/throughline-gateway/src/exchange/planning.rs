//! What of a history a backend is shown when not all of it fits (R06, R10, R36).
//!
//! Most requests fit, and whether one does is first asked of its bytes, which costs next to nothing. Where that
//! leaves a doubt, tokens are counted, on a thread that may be blocked; only where they are too many is
//! anything taken out. What was decided is kept with the attempt, and the next plan goes on from it: so do a
//! restart and another gateway over the same history, with the same bytes.
//!
//! A client that resends its history owns it: it is touched only where the backend could not take it. A
//! history that is ours to show is also kept below `truncation_threshold`.

use super::Running;
use super::editing;
use super::noted::{self, Noted};
use super::prompting::history;
use super::recall;
use super::retell::Untold;
use crate::config::{Backend, Budget as PromptBudget};
use crate::gateway::Gateway;
use crate::ingress::reject::own;
use crate::routing::Destination;
use std::sync::Arc;
use throughline_core::plan::{
    Budget, Count, Decisions, Measured, Plan, PlanError, Planner, Policy, Tally, Tokens, ToolRule, ToolRules,
};
use throughline_core::{
    Ask, Content, Dialect, Entry, Failure, FailureKind, Kind, Media, Part, Strategy, Text,
};
use throughline_store::{ExchangeId, Exchanges, Paging, StoreError};
use throughline_tokens::{Counts, Gauge, Size};
use throughline_wire::ContextEdits;
use throughline_wire::json::Writer;

/// A plan, and where what it goes on from was decided.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The exchange whose record has the decisions, unless this plan took a step itself.
    pub since: Option<ExchangeId>,
    /// The tool by which the model can have back what was taken out, if it is offered one.
    pub recall: Option<Text>,
    /// What of it the client asked to have cleared.
    pub cleared: Tally,
    /// What a model is to retell, if this plan has put anything into the digest and a model is wanted for it.
    pub untold: Option<Untold>,
}

/// What was decided about a conversation before.
#[derive(Default)]
struct Before {
    decisions: Decisions,
    /// The exchange whose record has it.
    since: Option<ExchangeId>,
    /// The words in which a model has retold the digest since.
    words: Option<Text>,
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

/// Text has rarely less than two bytes to a token; what fits by that measure is not counted.
const BYTES_PER_TOKEN_MIN: u64 = 2;

/// How many exchanges are looked through for what was decided: auxiliary requests may have come in between.
const EXCHANGES_MAX: u32 = 16;

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
        strategy: Strategy,
        is_kept: bool,
    ) -> Result<Option<Planned>, Failure> {
        let mut limits = Limits::of(destination, &self.ask);
        limits.budget.tool_history = limits.budget.tool_history.filter(|_| !is_kept);
        // Whoever cannot be shown calls as such cannot be relied on to make them.
        limits.recall &= strategy == Strategy::Native;
        let edits = editing::honoured(&self.ask, &destination.backend);
        if !limits.exist() && edits.is_none() {
            return Ok(None);
        }
        let entries = history(&self.ask, &self.placed, &destination.backend);
        if edits.is_none() && limits.surely_hold(&entries, &self.ask) {
            return Ok(None);
        }
        let offers = limits.recall;
        let gauge = self.gateway.gauges.of(&self.gateway.standing(), destination);
        let gateway = Arc::clone(&self.gateway);
        let work = Work { gateway, gauge, limits, edits, entries, sizes: Vec::new(), besides: Tokens(0) };
        let ask = self.ask.clone();
        let work = on_a_thread(move || work.measured(&ask)).await?;
        if work.fits() {
            return Ok(None);
        }
        let recall = offers.then(|| recall::tool_name(&self.ask));
        let before = self.decided(&destination.backend).await;
        let (since, wants_words) = (before.since.clone(), self.wants_words());
        let gauge = work.gauge;
        let planned = on_a_thread(move || work.planned(&before, wants_words)).await?;
        let (plan, cleared, untold) = planned.map_err(|error| too_long(&error, &self.ask, &gauge))?;
        let since = since.filter(|_| !plan.is_step);
        let recall = recall.filter(|_| !self.recalls.are_used_up());
        Ok((!plan.is_untouched()).then_some(Planned { plan, since, recall, cleared, untold }))
    }

    /// Says whether a request that was not read whole is surely small enough for a destination, by the bytes
    /// of its body: those of its texts are fewer.
    pub(super) fn surely_fits(&self, destination: &Destination) -> bool {
        let Some(bytes) = self.reading.bytes_if_abridged() else { return true };
        if editing::honoured(&self.ask, &destination.backend).is_some() {
            return false;
        }
        let limits = Limits::of(destination, &self.ask);
        let holds = |limit: Tokens| bytes as u64 / BYTES_PER_TOKEN_MIN <= limit.0;
        limits.budget.tool_history.is_none() && limits.budget.limit().is_none_or(holds)
    }

    /// Returns what was decided about this conversation for a backend, and in which exchange.
    ///
    /// What cannot be read is decided anew: the prompt is then another one, and as good.
    async fn decided(&self, backend: &Backend) -> Before {
        let found = self.search_decided(backend).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what was shortened before could not be looked up; it is decided anew");
            None
        });
        found.unwrap_or_default()
    }

    async fn search_decided(&self, backend: &Backend) -> Result<Option<Before>, StoreError> {
        let conversation = self.placed.conversation.clone();
        let latest = Exchanges::Of(conversation, Paging::first(EXCHANGES_MAX));
        let exchanges = self.gateway.history.exchanges(latest).await?.items;
        for exchange in exchanges {
            match noted::last(&exchange, &backend.name) {
                Some(Noted::Here(decisions, words)) => {
                    return Ok(Some(Before { decisions, since: Some(exchange.id), words }));
                }
                Some(Noted::In(id)) => {
                    let there = self.gateway.history.exchanges(Exchanges::One(id.clone())).await?;
                    let there = there.items.iter().find_map(|exchange| noted::here(exchange, &backend.name));
                    let before = |(decisions, words)| Before { decisions, since: Some(id), words };
                    return Ok(there.map(before));
                }
                None => {}
            }
        }
        Ok(None)
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

impl Limits {
    fn of(destination: &Destination, ask: &Ask) -> Self {
        let settings = &destination.backend.history;
        let (prompt, reserve) = match settings.budget {
            PromptBudget::Tokens(tokens) => (Some(Tokens(tokens)), Tokens(0)),
            PromptBudget::Auto => {
                let facts = destination.backend.model_facts(&destination.model);
                let window = facts.context_window.map(|window| Tokens(window.value));
                (window, window.map_or(Tokens(0), |window| reserve(ask, window)))
            }
        };
        let budget = Budget {
            prompt,
            reserve,
            tool_history: is_ours(ask).then_some(Tokens(settings.truncation_threshold)),
            recent_calls_to_keep: settings.recent_calls_to_keep as usize,
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
        let holds = |limit: Option<Tokens>, bytes: u64| {
            limit.is_none_or(|limit| bytes / BYTES_PER_TOKEN_MIN <= limit.0)
        };
        holds(self.budget.limit(), all) && holds(self.budget.tool_history, tools)
    }
}

impl Work {
    fn measured(mut self, ask: &Ask) -> Self {
        let counter = Counter { gauge: &self.gauge, counts: &self.gateway.gauges.counts };
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

    /// Plans, and says what of it is the client's wish, and what a model is to retell if one is wanted for that.
    fn planned(
        &self,
        before: &Before,
        wants_words: bool,
    ) -> Result<(Plan, Tally, Option<Untold>), PlanError> {
        let mut plan = self.plan(&before.decisions)?;
        // The prefix changes anyway, so this is the time for words that were found since.
        if let Some(words) = before.words.as_ref().filter(|_| plan.is_step) {
            let mut told = before.decisions.clone();
            told.retell(words, &Counter { gauge: &self.gauge, counts: &self.gateway.gauges.counts });
            plan = self.plan(&told).unwrap_or(plan);
            plan.is_step = true;
        }
        let tally = Tally::of(&self.entries, &plan.decisions);
        let untold = (wants_words && plan.is_step).then(|| Untold::of(&self.entries, &plan.decisions));
        Ok((plan, tally, untold.flatten()))
    }

    fn plan(&self, before: &Decisions) -> Result<Plan, PlanError> {
        let count = Counter { gauge: &self.gauge, counts: &self.gateway.gauges.counts };
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
    /// Returns the plan as the record keeps it: what it decided, or where that is to be found.
    #[must_use]
    pub fn to_json(&self) -> Text {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_uint("tokens_before", self.plan.before.0);
        writer.field_uint("tokens_after", self.plan.after.0);
        writer.field_uint("tool_tokens", self.plan.tool_history.0);
        if let Some(recall) = &self.recall {
            writer.field_str("recall", recall);
        }
        match &self.since {
            Some(since) => writer.field_str("since", since.as_str()),
            None => writer.field_str("decisions", &self.plan.decisions.to_text()),
        }
        writer.end_object();
        writer.into_string().into()
    }

    /// Returns how many of so many changes the record need not name again: all of them, if the exchange in
    /// which they were decided does.
    #[must_use]
    pub const fn counts_only(&self, changes: usize) -> usize {
        if self.since.is_some() { changes } else { 0 }
    }
}

/// Says whether the history is ours to show, and not resent by the client.
fn is_ours(ask: &Ask) -> bool {
    ask.previous.is_some() || ask.conversation.is_some()
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
    done.map_err(|error| own(FailureKind::Backend, "throughline_not_planned", error.to_string()))
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
