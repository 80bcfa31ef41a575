//! What an exchange writes into the history, and when.
//!
//! The request is on the disk before a backend sees it, and the answer before the client is told that it is
//! over: two waits for the disk, whatever happens in between. The request is written together with the first
//! attempt. What a long stream has brought so far is written along the way, every so often, without waiting.

use super::aside::SUMMARY;
use super::items;
use super::place::Placed;
use super::sizing::Sizing;
use super::traces;
use crate::gateway::{Gateway, now};
use crate::privacy::Privacy;
use crate::telemetry::{AttemptOutcome, Fallback, StoreUse, Telemetry};
use crate::trace::Trace as ExchangeTrace;
use crate::view::failure_of;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline_core::plan::{Decisions, Plan};
use throughline_core::{
    Ask, Dialect, Ending, Entry, EntryId, Handover, Kind, Origin, Reply, Source, Stop, Text, Trace,
};
use throughline_store::{
    Attempt, Batch, CompactionStep, DocumentKind, Durability, Exchange, ExchangeId, Extension, History,
    Moment, NewConversation, ProviderEvent, ResponseMark, StepId, StoreError, Write, title_of,
};

/// The record of one exchange.
#[derive(Debug)]
pub struct Recorder {
    history: Arc<dyn History>,
    exchange: Exchange,
    /// Whether anything could not be written, which is then said in the answer.
    pub lapsed: bool,
    /// How large the prompt of the attempt under way is, as far as it is counted.
    pub sizing: Option<Sizing>,
    /// What clients are shown of answers that are in the history already, of this exchange.
    pub shown: Vec<Entry>,
    /// The backend that takes over with the answer, if one does.
    pub handover: Option<Handover>,
    /// The client's request as it came, which is written with the first attempt.
    pub received: Option<Bytes>,
    /// What the record is told about the exchange itself, with its first attempt.
    pub note: Option<ProviderEvent>,
    /// The last entry of those answers.
    tip: Option<EntryId>,
    /// How many entries the branch has by now.
    recorded: u32,
    passes: bool,
    /// What is taken out of everything before it is written.
    privacy: Arc<Privacy>,
    /// Whether anything is written at all.
    keeps: bool,
    /// What could not be written when it should have been, and goes with whatever is written next.
    unwritten: Vec<Write>,
    /// The request, as long as it is not in the history.
    opening: Vec<Write>,
    /// Whether the exchange is in the history, so that its end belongs there too.
    begun: bool,
    /// Events that have come and are not in the history yet.
    pending: Pending,
    telemetry: Arc<Telemetry>,
    arrived: Instant,
    trace: Option<ExchangeTrace>,
}

/// What is written with an attempt.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// What is sent, to the byte.
    pub body: Bytes,
    /// What was changed for the backend, as JSON.
    pub report: String,
    /// Where what is sent comes from, if it is of the history.
    pub provenance: Option<Bytes>,
    /// What is shown of a history that does not fit.
    pub decided: Option<&'a Decided>,
}

/// What a plan has the record told about what it shows of a history.
#[derive(Clone, Debug)]
pub enum Decided {
    /// It shows what was decided up to this step.
    Before(StepId),
    /// It takes a step: this is new, beyond that step.
    Step {
        /// The step that it goes further than, if there is one.
        follows: Option<StepId>,
        /// What it adds.
        added: Decisions,
    },
}

impl Decided {
    /// Returns what is new in a plan that went on from `before`.
    ///
    /// A plan that took something back, because the client has rewritten its history, begins anew with all of it.
    #[must_use]
    pub fn from_plan(plan: &Plan, before: Option<(&StepId, &Decisions)>) -> Self {
        let Some((step, decisions)) = before else {
            return Self::Step { follows: None, added: plan.decisions.clone() };
        };
        if !plan.is_step {
            return Self::Before(step.clone());
        }
        match plan.decisions.added_since(decisions) {
            Some(added) => Self::Step { follows: Some(step.clone()), added },
            None => Self::Step { follows: None, added: plan.decisions.clone() },
        }
    }

    /// Says whether anything is new.
    #[must_use]
    pub const fn is_step(&self) -> bool {
        matches!(self, Self::Step { .. })
    }
}

/// Events that wait to be written.
#[derive(Debug)]
struct Pending {
    events: Vec<ProviderEvent>,
    bytes: usize,
    since: Instant,
}

/// Events wait until there are so many bytes of them, or until the first has waited so long.
const PENDING_BYTES_MAX: usize = 64 * 1024;
const PENDING_TIME_MAX: Duration = Duration::from_secs(1);

/// Events of which something is taken out wait for the end of the answer, or until there are so many bytes of them.
const PRIVATE_BYTES_MAX: usize = 32 << 20;

impl Recorder {
    /// Begins the record of an exchange whose request was read whole at `arrived`; with `passes`, failures to
    /// write do not fail the exchange.
    #[must_use]
    pub fn new(gateway: &Gateway, exchange: Exchange, passes: bool, arrived: Instant) -> Self {
        let (history, telemetry) = (Arc::clone(&gateway.history), Arc::clone(&gateway.telemetry));
        let pending = Pending { events: Vec::new(), bytes: 0, since: arrived };
        Self {
            history,
            exchange,
            lapsed: false,
            sizing: None,
            shown: Vec::new(),
            handover: None,
            received: None,
            note: None,
            tip: None,
            recorded: 0,
            passes,
            privacy: Arc::default(),
            keeps: true,
            unwritten: Vec::new(),
            opening: Vec::new(),
            begun: false,
            pending,
            telemetry,
            arrived,
            trace: None,
        }
    }

    /// Says what is taken out before anything is written, and whether anything is; if not, the answer says so.
    #[must_use]
    pub fn private(self, privacy: &Arc<Privacy>, keeps: bool) -> Self {
        let mut private = self;
        private.privacy = Arc::clone(privacy);
        private.keeps = keeps;
        private.lapsed = !keeps;
        private
    }

    /// Has the exchange traced.
    #[must_use]
    pub fn traced(self, trace: Option<ExchangeTrace>) -> Self {
        // A recorder writes what was left unwritten when it is dropped, so it cannot be taken apart.
        let mut traced = self;
        traced.trace = trace;
        traced
    }

    /// Returns the headers by which the backend of the attempt under way continues the trace.
    #[must_use]
    pub fn trace_headers(&self) -> Option<HeaderMap> {
        self.trace.as_ref().map(ExchangeTrace::headers)
    }

    /// Returns the id of the exchange.
    #[must_use]
    pub const fn id(&self) -> &ExchangeId {
        &self.exchange.id
    }

    /// Returns why the attempt before did not come to an answer.
    #[must_use]
    pub fn last_failure(&self) -> Option<Text> {
        let counts = |attempt: &&Attempt| attempt.strategy.as_deref() != Some(SUMMARY);
        self.exchange.attempts.iter().rev().filter(counts).find_map(|attempt| attempt.failure.clone())
    }

    /// Returns how many attempts were made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.exchange.attempts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the exchange as it is now.
    #[must_use]
    pub const fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Returns the last entry before the answer.
    #[must_use]
    pub const fn before(&self) -> Option<&EntryId> {
        self.exchange.before.as_ref()
    }

    /// Returns the last entries of the request and of its answer.
    #[must_use]
    pub fn tips(&self) -> (Option<EntryId>, Option<EntryId>) {
        (self.exchange.before.clone(), self.exchange.after.clone())
    }

    /// Returns how many entries the branch has by now.
    #[must_use]
    pub const fn recorded(&self) -> u32 {
        self.recorded
    }

    /// Returns what a reply says, and who says it.
    #[must_use]
    pub fn said(&self, reply: &Reply) -> Vec<Entry> {
        let origin = self.origin(reply);
        // Results are not the backend's: they are what was recalled for it.
        let kept = |entry: &Entry| {
            let origin = origin.clone().filter(|_| entry.as_return().is_none());
            Entry { origin, place: None, ..entry.clone() }
        };
        reply.entries.iter().map(kept).collect()
    }

    /// Takes down the request: its conversation, and its new entries. It is written with the first attempt, or
    /// with the end if there is none.
    pub fn begin(&mut self, placed: &Placed, ask: &Ask, now: Moment) {
        let entries = self.privacy.entries(&ask.entries);
        let conversation = NewConversation {
            id: placed.conversation.clone(),
            at: now,
            identified: Text::from_static(placed.identified),
            title: title_of(&entries),
            keys: placed.key.iter().cloned().collect(),
        };
        tracing::debug!(
            request = self.exchange.id.as_str(),
            conversation = placed.conversation.as_str(),
            by = placed.identified,
            known = placed.known,
            new = entries.len() - placed.known,
            history = placed.history.len(),
            "placed"
        );
        let mut extension = self.extension(placed.parent.clone(), now);
        extension.extend(&entries[placed.known..]);
        self.exchange.before = extension.tip();
        self.recorded = placed.recorded;
        self.opening = vec![Write::Conversation(conversation), Write::Entries(extension)];
    }

    /// Writes what the client is given before there is an answer, and waits until it is on the disk.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn queue(&mut self, answer: Text) -> Result<(), StoreError> {
        let exchange = self.exchange.id.clone();
        let writes = self.with_opening(vec![Write::Answer { exchange, json: answer }]);
        self.append(Batch::durable(writes)).await
    }

    /// Writes that a backend is about to be sent something, and what.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn attempt(
        &mut self,
        mut attempt: Attempt,
        Outgoing { body, report, provenance, decided }: Outgoing<'_>,
    ) -> Result<(), StoreError> {
        let number = self.attempts();
        let step = self.step(number, &mut attempt, decided);
        // What follows an answer goes on from it, and falls back from nothing.
        if let Some(before) = self.exchange.attempts.last().filter(|before| before.failure.is_some()) {
            self.telemetry.fell_back(&attempt.backend, fallback(before, &attempt));
        }
        tracing::debug!(
            request = self.exchange.id.as_str(),
            backend = attempt.backend.as_str(),
            dialect = attempt.dialect.name(),
            model = attempt.model.as_deref().unwrap_or("none"),
            strategy = attempt.strategy.as_deref().unwrap_or("none"),
            bytes = body.len(),
            "sending"
        );
        self.exchange.attempts.push(attempt);
        // Nothing is sent that is not on the disk; further attempts change nothing about what was asked.
        let is_first = !self.opening.is_empty();
        let mut writes = self.with_opening(Vec::new());
        writes.push(self.document(number, DocumentKind::Sent, body));
        writes.push(self.document(number, DocumentKind::Report, report.into()));
        writes
            .extend(provenance.map(|provenance| self.document(number, DocumentKind::Provenance, provenance)));
        let received = self.received.take();
        writes.extend(received.map(|received| self.document(number, DocumentKind::Received, received)));
        writes.extend(step.map(|step| Write::Compaction(Box::new(step))));
        if let Some(note) = self.note.take() {
            writes.push(Write::Events {
                exchange: self.exchange.id.clone(),
                attempt: number,
                events: vec![note],
            });
        }
        self.append(if is_first { Batch::durable(writes) } else { Batch::relaxed(writes) }).await?;
        self.trace.iter_mut().for_each(ExchangeTrace::attempt);
        if number == 0 {
            self.telemetry.added_before_backend(self.arrived.elapsed());
        }
        Ok(())
    }

    fn document(&self, attempt: u32, kind: DocumentKind, body: Bytes) -> Write {
        Write::Document { exchange: self.exchange.id.clone(), attempt, kind, body }
    }

    /// Notes with an attempt which decisions its prompt shows, and returns the step that it takes, if it takes one.
    fn step(&self, number: u32, attempt: &mut Attempt, decided: Option<&Decided>) -> Option<CompactionStep> {
        let id = StepId { exchange: self.exchange.id.clone(), attempt: number };
        let (follows, added) = match decided? {
            Decided::Before(step) => {
                attempt.compaction = Some(step.clone());
                return None;
            }
            Decided::Step { follows, added } => (follows.clone(), added),
        };
        attempt.compaction = Some(id.clone());
        Some(CompactionStep {
            id,
            conversation: self.exchange.conversation.clone(),
            backend: attempt.backend.clone(),
            model: attempt.model.clone().unwrap_or_default(),
            at: attempt.started,
            follows,
            decisions: added.to_text().into(),
            summary: None,
        })
    }

    /// Notes what came of the attempt under way; written with whatever is written next.
    pub fn attempt_ended(&mut self, status: Option<u16>, failure: Option<Text>, now: Moment) {
        self.trace.iter_mut().for_each(ExchangeTrace::attempt_ended);
        if let Some(attempt) = self.exchange.attempts.last_mut() {
            let outcome = match (&failure, status) {
                (None, _) => AttemptOutcome::Answered,
                (Some(_), Some(_)) => AttemptOutcome::Refused,
                (Some(_), None) => AttemptOutcome::Failed,
            };
            tracing::debug!(
                request = self.exchange.id.as_str(),
                backend = attempt.backend.as_str(),
                status = status.unwrap_or_default(),
                ?outcome,
                "attempt ended"
            );
            self.telemetry.attempt_ended(&attempt.backend, outcome);
            attempt.status = status;
            attempt.failure = failure;
            attempt.ended = Some(now);
        }
    }

    /// Notes why the answer of the attempt under way was ended by us; written with whatever is written next.
    pub fn attempt_aborted(&mut self, failure: Text) {
        if let Some(attempt) = self.exchange.attempts.last_mut() {
            tracing::warn!(
                request = self.exchange.id.as_str(),
                backend = attempt.backend.as_str(),
                reason = failure.as_str(),
                "the answer was ended"
            );
            attempt.failure = Some(failure);
        }
    }

    /// Writes what a backend said before the attempt under way failed, without waiting for the disk.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn flush(&mut self, events: Vec<ProviderEvent>) -> Result<(), StoreError> {
        if events.is_empty() && self.pending.events.is_empty() {
            return Ok(());
        }
        let write = self.events_write(events);
        self.append(Batch::relaxed(vec![write])).await
    }

    /// Takes down events that have come, and writes them every so often, without waiting for the disk.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn events(&mut self, events: Vec<ProviderEvent>) -> Result<(), StoreError> {
        tracing::trace!(request = self.exchange.id.as_str(), events = events.len(), "heard");
        let is_due = self.pending.take_in(events);
        // A secret comes in pieces, and can only be told when all of them are there.
        let waits = self.privacy.is_active() && self.pending.bytes < PRIVATE_BYTES_MAX;
        if !is_due || waits {
            return Ok(());
        }
        let write = self.events_write(Vec::new());
        self.append(Batch::relaxed(vec![write])).await
    }

    /// Writes an answer that is not the last of this exchange, with the results of its calls, and waits until it
    /// is on the disk; returns what was written.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn go_on(
        &mut self,
        reply: &Reply,
        events: Vec<ProviderEvent>,
        now: Moment,
    ) -> Result<Vec<Entry>, StoreError> {
        let entries = self.said(reply);
        let mut extension = self.answer(&entries, now);
        extension.extend(self.privacy.entries(&entries).iter());
        self.tip = extension.tip();
        self.shown.extend(entries.iter().filter(|entry| !entry.is_hidden()).cloned());
        let writes = vec![self.events_write(events), Write::Entries(extension)];
        self.append(Batch::durable(writes)).await?;
        let first = self.recorded;
        self.recorded += traces::length(&entries);
        let traced = |(entry, at)| Entry { trace: Trace::from(Source::Record(at)), ..entry };
        Ok(entries.into_iter().zip(first..).map(traced).collect())
    }

    /// Writes the answer and how it ended, and waits until it is on the disk.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn end(
        &mut self,
        reply: &Reply,
        status: u16,
        answer: Option<Text>,
        events: Vec<ProviderEvent>,
        now: Moment,
    ) -> Result<(), StoreError> {
        let said = self.said(reply);
        let mut extension = self.answer(&said, now);
        let all: Vec<Entry> = self.shown.iter().chain(&reply.entries).cloned().collect();
        let items = answer.as_deref().map_or_else(Vec::new, |answer| items::ids(answer, &all));
        let items = items.into_iter().skip(self.shown.len()).chain(std::iter::repeat(None));
        for (entry, item) in self.privacy.entries(&said).iter().zip(items) {
            extension.push_item(entry, item);
        }
        self.exchange.after = extension.tip();
        self.recorded += traces::length(&said);
        self.exchange.ended = Some(now);
        self.exchange.ending = Some(word_of(&reply.ending));
        self.exchange.status = Some(status);
        self.exchange.usage = reply.usage;
        let events = self.events_write(events);
        let mut writes = self.with_opening(vec![events, Write::Entries(extension)]);
        if let Some(sizing) = &mut self.sizing {
            writes.extend(sizing.lesson(reply, now).await);
        }
        writes.extend(answer.map(|json| Write::Answer { exchange: self.exchange.id.clone(), json }));
        self.count();
        self.append(Batch::durable(writes)).await?;
        self.log();
        Ok(())
    }

    /// Writes that no answer came of it.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn fail(&mut self, status: u16, now: Moment) -> Result<(), StoreError> {
        self.exchange.ended = Some(now);
        self.exchange.ending = Some(Text::from_static("failed"));
        self.exchange.status = Some(status);
        self.count();
        let writes = self.ending_writes();
        self.append(Batch::durable(writes)).await?;
        self.log();
        Ok(())
    }

    /// Writes that it was called off before there was an answer.
    ///
    /// # Errors
    /// When the history cannot be written, unless that is to be passed over.
    pub async fn cancel(&mut self, now: Moment) -> Result<(), StoreError> {
        self.attempt_ended(None, Some(Text::from_static("called off")), now);
        self.exchange.ended = Some(now);
        self.exchange.ending = Some(word_of(&Ending::Cancelled));
        self.count();
        let writes = self.ending_writes();
        self.append(Batch::durable(writes)).await?;
        self.log();
        Ok(())
    }

    /// Says which response the client may refer to later.
    pub fn promise(&mut self, id: Text, stored: bool) {
        self.exchange.response = Some(ResponseMark { id, stored, deleted: false });
    }

    /// Counts the exchange, which is over; also one that cannot be recorded.
    fn count(&self) {
        let exchange = &self.exchange;
        let backend = exchange.attempts.last().map(|attempt| &attempt.backend);
        let ending = exchange.ending.clone().unwrap_or(Text::from_static("unknown"));
        self.telemetry.exchange_ended(exchange.dialect, backend, &ending, self.arrived.elapsed());
        if let (Some(backend), Some(usage)) = (backend, exchange.usage) {
            self.telemetry.used(backend, usage);
        }
    }

    /// Writes the line of the log that says what became of the exchange. No words of the conversation are in it.
    fn log(&self) {
        let exchange = &self.exchange;
        let attempt = exchange.attempts.last();
        let took = exchange.ended.map_or(0, |ended| ended.0 - exchange.started.0);
        tracing::info!(
            request = exchange.id.as_str(),
            conversation = exchange.conversation.as_str(),
            dialect = exchange.dialect.name(),
            backend = attempt.map_or("none", |attempt| attempt.backend.as_str()),
            strategy = attempt.and_then(|attempt| attempt.strategy.as_deref()).unwrap_or("none"),
            attempts = exchange.attempts.len(),
            status = exchange.status.unwrap_or_default(),
            ending = exchange.ending.as_deref().unwrap_or("unknown"),
            input_tokens = exchange.usage.map_or(0, |usage| usage.input),
            output_tokens = exchange.usage.map_or(0, |usage| usage.output),
            took_ms = took,
            cached_tokens = exchange.usage.map_or(0, |usage| usage.cache_read),
            failure = failure_of(exchange).map(|failure| failure.line()),
            "exchange"
        );
    }

    fn extension(&self, parent: Option<EntryId>, now: Moment) -> Extension {
        Extension::new(self.exchange.conversation.clone(), parent, now).of_exchange(self.exchange.id.clone())
    }

    /// Returns what an answer is added to, behind the handover that it makes.
    fn answer(&mut self, said: &[Entry], now: Moment) -> Extension {
        let mut extension = self.extension(self.tip.clone().or_else(|| self.exchange.before.clone()), now);
        // Who says nothing has taken nothing over.
        if !said.is_empty()
            && let Some(handover) = self.handover.take()
        {
            let entry = Entry::new(Kind::HandedOver(handover));
            extension.extend(self.privacy.entries(std::slice::from_ref(&entry)).iter());
            self.recorded += 1;
        }
        extension
    }

    /// Returns `writes` behind the request, if that is still to be written, and the exchange as it is now.
    fn with_opening(&mut self, writes: Vec<Write>) -> Vec<Write> {
        let mut all = std::mem::take(&mut self.opening);
        all.push(Write::Exchange(Box::new(self.exchange.clone())));
        all.extend(writes);
        all
    }

    /// Returns what is left to write about an exchange that no answer came of.
    fn ending_writes(&mut self) -> Vec<Write> {
        let pending = (!self.pending.events.is_empty()).then(|| self.events_write(Vec::new()));
        self.with_opening(pending.into_iter().collect())
    }

    fn events_write(&mut self, events: Vec<ProviderEvent>) -> Write {
        let mut all = std::mem::take(&mut self.pending.events);
        self.pending.bytes = 0;
        all.extend(events);
        let events = all;
        let attempt = u32::try_from(self.exchange.attempts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Write::Events { exchange: self.exchange.id.clone(), attempt, events }
    }

    /// Returns who said the reply: the backend and model of the attempt that counted.
    fn origin(&self, reply: &Reply) -> Option<Origin> {
        let attempt = self.exchange.attempts.last()?;
        let model = attempt.model.clone().or_else(|| reply.model.clone()).unwrap_or_default();
        Some(Origin { backend: attempt.backend.clone(), dialect: attempt.dialect, model })
    }

    async fn append(&mut self, batch: Batch) -> Result<(), StoreError> {
        if !self.keeps {
            return Ok(());
        }
        let mut batch = self.privacy.batch(batch);
        batch.writes.splice(0..0, self.unwritten.drain(..));
        let spare = self.passes.then(|| batch.writes.clone());
        let is_durable = batch.durability == Durability::Durable;
        let began = is_durable.then(Instant::now);
        let (request, writes) = (self.exchange.id.as_str(), batch.writes.len());
        tracing::trace!(request, writes, is_durable, "writing");
        // Also while it is being written: whoever is dropped then cannot know whether it was.
        let begun = std::mem::replace(&mut self.begun, true);
        let appended = self.history.append(batch).await;
        if let (Some(trace), Some(began)) = (&mut self.trace, began) {
            trace.phase("record", began);
        }
        if appended.is_err() {
            self.begun = begun;
            self.telemetry.store_failed(StoreUse::Write);
        }
        match appended {
            Err(error) if self.passes => {
                tracing::error!(%error, exchange = self.exchange.id.as_str(), "not recorded");
                self.lapsed = true;
                self.unwritten = spare.unwrap_or_default();
                Ok(())
            }
            other => other.map(drop),
        }
    }
}

impl Pending {
    /// Takes in events and says whether it is time to write what there is.
    fn take_in(&mut self, events: Vec<ProviderEvent>) -> bool {
        if events.is_empty() {
            return false;
        }
        if self.events.is_empty() {
            self.since = Instant::now();
        }
        self.bytes += events.iter().map(|event| event.data.len() + size_of::<ProviderEvent>()).sum::<usize>();
        self.events.extend(events);
        self.bytes >= PENDING_BYTES_MAX || self.since.elapsed() >= PENDING_TIME_MAX
    }
}

/// Returns what an attempt is, seen from the one before it.
fn fallback(before: &Attempt, next: &Attempt) -> Fallback {
    if before.backend != next.backend {
        Fallback::Failover
    } else if before.strategy != next.strategy {
        Fallback::TextEmbed
    } else if before.continues.is_some() && next.continues.is_none() {
        Fallback::FullHistory
    } else {
        Fallback::Retry
    }
}

impl Drop for Recorder {
    /// Writes how an exchange ended that nobody ended: its client went away before the answer began, and the
    /// server dropped everything that was under way for it.
    fn drop(&mut self) {
        if (self.begun || !self.opening.is_empty()) && self.exchange.ended.is_none() {
            self.call_off();
        }
        if let Some(trace) = self.trace.take() {
            trace.finish(&self.exchange);
        }
    }
}

impl Recorder {
    fn call_off(&mut self) {
        let at = now();
        self.attempt_ended(None, Some(Text::from_static("the client went away")), at);
        self.exchange.ended = Some(at);
        self.exchange.ending = Some(word_of(&Ending::Cancelled));
        self.count();
        self.log();
        let batch = Batch::durable(self.ending_writes());
        let mut batch = self.privacy.batch(batch);
        batch.writes.splice(0..0, self.unwritten.drain(..));
        if !self.keeps {
            return;
        }
        let history = Arc::clone(&self.history);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = history.append(batch).await {
                tracing::error!(%error, "a cancelled exchange was not recorded");
            }
        });
    }
}

/// Returns an exchange in which nothing has happened yet.
#[must_use]
pub fn begun(id: ExchangeId, placed: &Placed, ask: &Ask, client: Option<Text>, now: Moment) -> Exchange {
    Exchange {
        id,
        conversation: placed.conversation.clone(),
        before: None,
        after: None,
        dialect: ask.dialect,
        client,
        asked_model: ask.model.clone(),
        started: now,
        ended: None,
        ending: None,
        status: None,
        usage: None,
        attempts: Vec::new(),
        response: None,
    }
}

/// Returns an attempt that is about to be made.
#[must_use]
pub fn attempted(
    backend: Text,
    dialect: Dialect,
    model: Text,
    strategy: &'static str,
    now: Moment,
) -> Attempt {
    Attempt {
        model: Some(model),
        strategy: Some(Text::from_static(strategy)),
        ..Attempt::begun(backend, dialect, now)
    }
}

fn word_of(ending: &Ending) -> Text {
    Text::from_static(match ending {
        Ending::Stopped(Stop::EndTurn) => "end_turn",
        Ending::Stopped(Stop::ToolCalls) => "tool_calls",
        Ending::Stopped(Stop::MaxTokens) => "max_tokens",
        Ending::Stopped(Stop::ContextWindow) => "context_window",
        Ending::Stopped(Stop::Sequence(_)) => "stop_sequence",
        Ending::Stopped(Stop::Refusal) => "refusal",
        Ending::Stopped(Stop::Filtered) => "filtered",
        Ending::Stopped(Stop::Paused) => "paused",
        Ending::Stopped(Stop::Other(_)) => "stopped",
        Ending::Failed(_) => "failed",
        Ending::Broken => "broken",
        Ending::Cancelled => "cancelled",
    })
}
