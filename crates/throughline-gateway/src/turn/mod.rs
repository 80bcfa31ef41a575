//! A turn driven: the tool loop of the core over the same engine that answers clients (R23 to R31).
//!
//! The machine says what is to be done ([`throughline_core::Turn`]), and this does it: it asks by an exchange, has
//! calls run by [`Hands`], and writes everything down before it acts on it. A call is in the history before it runs,
//! since the answer that made it is; its result is there before the next call runs, and what is asked before it is
//! sent.
//!
//! What the history has no place for goes into the recording as notes, beside the events of the provider:
//! with what the turn began, how long tools took, how it ended. So the turn can be [replayed](replay).

pub mod compose;
pub mod hands;
mod note;
pub mod replay;
mod request;
pub mod settings;
mod view;
pub mod workbench;

pub use hands::{Done, Hands, Kept};
pub use note::is_note;
pub use request::{Manner, image_item, said_item};
pub use view::{write_run, write_run_whole};

use crate::bill::Bill;
use crate::config::Compose;
use crate::exchange::{self, CANCELLED, InProcessAnswer, Listener, OwnRequest, RouteHints};
use crate::failure::undecodable;
use crate::gateway::{Gateway, mint, now};
use crate::privacy::Privacy;
use crate::run_ids::client_of;
use crate::token_counters::TokenCounters;
use note::Answered;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline_core::{
    Call, Conclusion, ConversationId, Dialect, Ending, Entry, EntryId, Failure, Frame, Ledger, PairState,
    Settled, Text, Turn, TurnLimits, TurnStep,
};
use throughline_store::{
    Batch, Entries, ExchangeId, Exchanges, Extension, History, Learned, Locate, Moment, NewConversation,
    ProviderEvent, StoreError, Write,
};
use throughline_wire::decode_request;
use tokio_util::sync::CancellationToken;

/// What a turn is given.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its id, by which it can be replayed.
    pub id: Text,
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// The entry that it goes on from; none if the conversation begins with it.
    pub behind: Option<EntryId>,
    /// Calls in what it goes on from that have no result.
    pub open: Vec<Call>,
    /// What the user says, as items of the Responses dialect.
    pub opening: Vec<String>,
    /// How the model is asked.
    pub manner: Manner,
    /// A second model that writes the answer, if one does.
    pub compose: Option<Compose>,
    /// Before what the turn is called off, counted in answers and in calls that ran; for a replay.
    pub cancel_at: Option<(u32, u32)>,
}

/// What happens in a turn, for whoever looks on.
#[derive(Debug)]
pub enum Happening<'a> {
    /// The model is asked.
    Asked {
        /// In this exchange.
        exchange: &'a str,
        /// Because the answer before broke off.
        again: bool,
        /// Whether what it says is what the user is told; a draft is worked over by a second model.
        draft: bool,
    },
    /// Something of an answer came.
    Heard {
        /// In this exchange.
        exchange: &'a str,
        /// The events, unaltered.
        events: &'a [ProviderEvent],
        /// What followed from them.
        frames: &'a [Frame],
    },
    /// An answer is over.
    Answered {
        /// In this exchange.
        exchange: &'a str,
        /// Who gave it.
        backend: &'a str,
        /// Its entries, in their order.
        entries: &'a [Entry],
        /// How it ended.
        ending: &'a Ending,
        /// Whether all of it came at once, so that nothing was heard of it before.
        whole: bool,
    },
    /// A call is about to be run.
    Called(&'a Call),
    /// A call was dealt with.
    Settled {
        /// What came of it.
        settled: &'a Settled,
        /// The exit code of a command.
        exit_code: Option<i32>,
        /// How long it took; nothing if it was not run.
        took: Option<Duration>,
    },
    /// The second model did not write the answer: the first one's stands.
    NotComposed {
        /// Why.
        reason: &'a str,
    },
}

/// Looks on.
pub trait Watch: Send {
    /// Is told what happens.
    fn see(&mut self, happening: Happening<'_>);
}

/// Looks on and says nothing.
#[derive(Debug, Default)]
pub struct Nobody;

/// Names exchanges.
pub trait Names: Send {
    /// Returns the id of the next exchange.
    fn next(&mut self) -> String;
}

/// Names exchanges as nobody has named them before.
#[derive(Debug, Default)]
pub struct Minted;

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// As what.
    pub conclusion: Conclusion,
    /// How many calls were run.
    pub calls: u32,
    /// How many answers came.
    pub answers: u32,
    /// What the answers took, each with who gave it.
    pub usage: Bill,
    /// The last entry of the history.
    pub tip: Option<EntryId>,
}

/// Why a turn could not go on.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The history cannot be kept or read.
    #[error("the history cannot be kept: {0}")]
    Store(#[from] StoreError),
    /// Nothing of a backend that may answer is to be kept, and a turn is run from what is kept.
    #[error("`{0}` has `store = false`, and what a turn does is kept: choose another backend")]
    Unkept(Text),
    /// What was to be written cannot be read back: a defect of ours.
    #[error("what came of a call cannot be recorded: {0}")]
    Unreadable(String),
}

/// How often in a row an answer that broke off is asked for again.
const RETRIES: u32 = 2;

impl Watch for Nobody {
    fn see(&mut self, _: Happening<'_>) {}
}

impl Names for Minted {
    fn next(&mut self) -> String {
        mint()
    }
}

/// Where a turn may go on: the end of a conversation, and the calls in it that nobody knows the outcome of.
///
/// # Errors
/// When the history cannot be read.
pub async fn place(
    history: &dyn History,
    conversation: &ConversationId,
) -> Result<(Option<EntryId>, Vec<Call>), StoreError> {
    let located = history.locate(Locate::Conversation(conversation.clone())).await?;
    let Some(tip) = located.and_then(|located| located.entry) else { return Ok((None, Vec::new())) };
    let open = open_calls(history, &tip).await?;
    Ok((Some(tip), open))
}

/// Returns the calls before an entry that have no result.
///
/// # Errors
/// When the history cannot be read.
pub async fn open_calls(history: &dyn History, tip: &EntryId) -> Result<Vec<Call>, StoreError> {
    let branch: Vec<Entry> =
        history.entries(Entries::Branch(tip.clone())).await?.into_iter().map(|kept| kept.entry).collect();
    let ledger = Ledger::of(&branch);
    let open = ledger.pairs().iter().filter(|pair| pair.state == PairState::Open);
    let calls = open.filter_map(|pair| branch.get(pair.call)?.as_call().cloned());
    Ok(calls.filter(|call| call.namespace.as_deref() != Some(Entry::OWN_TOOLS)).collect())
}

/// Drives a turn to its end.
///
/// # Errors
/// When the history cannot be kept, or is not to be; whatever else goes wrong is how the turn ends.
pub async fn drive(
    gateway: &Arc<Gateway>,
    task: &Task,
    hands: &dyn Hands,
    names: &mut dyn Names,
    watch: &mut dyn Watch,
    cancel: &CancellationToken,
) -> Result<Finished, TurnError> {
    if let Some(backend) = unkept(gateway, task).await {
        return Err(TurnError::Unkept(backend));
    }
    let limits = TurnLimits { max_tool_calls: task.manner.max_tool_calls, retries: RETRIES };
    let machine = Turn::new(limits, task.open.iter().cloned());
    let mut driver = Driver {
        gateway,
        task,
        hands,
        names,
        watch,
        cancel,
        machine,
        opening: task.opening.clone(),
        behind: task.behind.clone(),
        latest: None,
        last: None,
        answers: 0,
        backend: None,
        cancelled_at: None,
        usage: Bill::default(),
        note: None,
    };
    driver.begin().await?;
    driver.run().await
}

/// Returns the backend that may be asked and of which nothing is to be kept, if there is one.
async fn unkept(gateway: &Gateway, task: &Task) -> Option<Text> {
    let standing = gateway.latest_standing().await;
    let composing = task.compose.as_ref().filter(|compose| compose.backend.is_some());
    let composing = composing.map(|compose| (compose.backend.as_ref(), compose.model.as_ref()));
    let asked = [Some((task.manner.backend.as_ref(), task.manner.model.as_ref())), composing];
    asked.into_iter().flatten().find_map(|(backend, model)| {
        let hints = RouteHints::for_backend(destination(backend, model));
        exchange::unkept(gateway, &standing, &hints, model.map(Text::as_str), &task.conversation)
    })
}

struct Driver<'d> {
    gateway: &'d Arc<Gateway>,
    task: &'d Task,
    hands: &'d dyn Hands,
    names: &'d mut dyn Names,
    watch: &'d mut dyn Watch,
    cancel: &'d CancellationToken,
    machine: Turn,
    /// What the user says, as long as it was not said.
    opening: Vec<String>,
    /// The entry that the next request goes on from.
    behind: Option<EntryId>,
    /// The last entry of the latest answer, as long as it is not certain that it stands.
    latest: Option<EntryId>,
    /// The exchange of the latest answer, and its last attempt.
    last: Option<(ExchangeId, u32)>,
    answers: u32,
    /// Who answered last.
    backend: Option<Text>,
    cancelled_at: Option<(u32, u32)>,
    usage: Bill,
    /// What the record is told with the first request.
    note: Option<ProviderEvent>,
}

/// Listens to an answer for whoever looks on, and counts what came.
struct Ear<'e> {
    watch: &'e mut dyn Watch,
    exchange: &'e str,
    answered: Answered,
    heard_frames: bool,
}

impl Listener for Ear<'_> {
    fn observe(&mut self, events: &[ProviderEvent], frames: &[Frame]) {
        self.answered.take_in(events);
        self.heard_frames |= !frames.is_empty();
        if !events.is_empty() || !frames.is_empty() {
            self.watch.see(Happening::Heard { exchange: self.exchange, events, frames });
        }
    }

    fn remark(&mut self) -> Option<ProviderEvent> {
        Some(self.answered.note(now()))
    }
}

impl Driver<'_> {
    /// Makes the turn known under its id, and notes with what it begins.
    async fn begin(&mut self) -> Result<(), TurnError> {
        let conversation = NewConversation {
            id: self.task.conversation.clone(),
            at: now(),
            identified: Text::from_static("run"),
            title: None,
            keys: vec![self.task.id.clone()],
        };
        self.gateway.history.append(Batch::relaxed(vec![Write::Conversation(conversation)])).await?;
        // Until the vocabularies are there, sizes are estimated otherwise, and what is sent depends on them.
        let loaded = tokio::task::spawn_blocking(TokenCounters::load).await;
        loaded.map_err(|error| TurnError::Unreadable(error.to_string()))?;
        let mut standing = (*self.gateway.latest_standing().await).clone();
        for held in self.gateway.token_counters.held(now()) {
            let is_other = |learned: &Learned| {
                (&learned.backend, &learned.model, &learned.capability)
                    != (&held.backend, &held.model, &held.capability)
            };
            standing.learned.retain(is_other);
            standing.learned.push(held);
        }
        self.note = Some(note::begun(self.task, &self.gateway.setup().config, &standing, now()));
        Ok(())
    }

    async fn run(&mut self) -> Result<Finished, TurnError> {
        loop {
            if self.task.cancel_at == Some((self.answers, self.machine.runs())) {
                self.cancel.cancel();
            }
            if self.cancel.is_cancelled() {
                self.cancelled_at.get_or_insert((self.answers, self.machine.runs()));
                self.machine.handle_cancel();
            }
            match self.machine.next_step() {
                Some(TurnStep::Ask { results, again, offers_tools }) => {
                    self.ask(&results, again, offers_tools).await?;
                }
                Some(TurnStep::Run(call)) => self.call(&call).await?,
                Some(TurnStep::Keep(results)) => {
                    self.keep(&results, Vec::new()).await?;
                    let closed = results.iter().filter(|settled| request::is_closed(settled));
                    closed.for_each(|settled| self.say_settled(settled, None, None));
                }
                Some(TurnStep::Finish(conclusion)) => return self.finish(conclusion).await,
                // Every fact is handed over before the next step is asked for.
                None => return self.finish(Conclusion::Answer(Ending::Broken)).await,
            }
        }
    }

    async fn ask(&mut self, results: &[Settled], again: bool, offers_tools: bool) -> Result<(), TurnError> {
        if again {
            self.latest = None;
        } else {
            self.stand();
            let closed = results.iter().filter(|settled| request::is_closed(settled));
            closed.for_each(|settled| self.say_settled(settled, None, None));
        }
        let mut items = request::result_items(results);
        items.extend_from_slice(&self.opening);
        let manner = &self.task.manner;
        let conversation = self.behind.as_ref().map(|_| &self.task.conversation);
        let body = manner.body(conversation, &items, offers_tools);
        let draft = self.task.compose.is_some();
        match self.hear(body, (manner.backend.as_ref(), manner.model.as_ref()), again, draft).await {
            Ok(heard) => {
                self.opening.clear();
                self.machine.handle_answer(&heard.reply.entries, &heard.reply.ending);
            }
            Err(failure) if failure.code.as_deref() == Some(CANCELLED) => {
                self.machine.handle_answer(&[], &Ending::Cancelled);
            }
            Err(failure) => self.machine.handle_failure(failure),
        }
        Ok(())
    }

    /// Takes note of an exchange that brought no answer, if it got so far as to be in the history.
    async fn note_failed(&mut self, exchange: String) {
        let found = self.gateway.history.exchanges(Exchanges::One(ExchangeId::new(exchange))).await;
        if let Some(exchange) = found.ok().and_then(|page| page.items.into_iter().next()) {
            let attempt = exchange.attempts.len().saturating_sub(1);
            self.last = Some((exchange.id, u32::try_from(attempt).unwrap_or(u32::MAX)));
        }
    }

    /// Returns what the engine is asked.
    fn request(
        &mut self,
        body: String,
        (backend, model): (Option<&Text>, Option<&Text>),
        exchange: &str,
    ) -> Result<OwnRequest, Failure> {
        let ask = decode_request(Dialect::Responses, body.as_str()).map_err(|error| undecodable(&error))?;
        Ok(OwnRequest {
            ask,
            received: body,
            exchange: Text::from(exchange),
            conversation: self.task.conversation.clone(),
            backend: destination(backend, model),
            client: Text::from(client_of(&self.task.id)),
            behind: self.behind.clone(),
            note: self.note.take(),
        })
    }

    /// Has a request answered, and takes note of the answer.
    async fn hear(
        &mut self,
        body: String,
        asked: (Option<&Text>, Option<&Text>),
        again: bool,
        draft: bool,
    ) -> Result<InProcessAnswer, Failure> {
        let exchange = self.names.next();
        self.watch.see(Happening::Asked { exchange: &exchange, again, draft });
        let request = self.request(body, asked, &exchange);
        let answered = Answered::new(!self.privacy().is_active());
        let mut ear = Ear { watch: self.watch, exchange: &exchange, answered, heard_frames: false };
        let heard = match request {
            Ok(request) => exchange::answer_in_process(self.gateway, request, &mut ear, self.cancel).await,
            Err(failure) => Err(failure),
        };
        let whole = !ear.heard_frames;
        self.answers += 1;
        let heard = match heard {
            Ok(heard) => heard,
            Err(failure) => {
                self.note_failed(exchange).await;
                return Err(failure);
            }
        };
        self.backend = Some(heard.backend.clone());
        self.watch.see(Happening::Answered {
            exchange: &exchange,
            backend: &heard.backend,
            entries: &heard.reply.entries,
            ending: &heard.reply.ending,
            whole,
        });
        if let Some(usage) = heard.reply.usage {
            self.usage.add(&heard.backend, Some(&heard.model), usage);
        }
        self.latest.clone_from(&heard.after);
        self.last = Some((heard.exchange.clone(), heard.attempt));
        Ok(heard)
    }

    async fn call(&mut self, call: &Call) -> Result<(), TurnError> {
        self.stand();
        self.watch.see(Happening::Called(call));
        let (started, clock) = (now(), Instant::now());
        let done = self.hands.run(call, self.cancel).await;
        let took = clock.elapsed();
        let ended = now();
        let kept = done.kept.iter().map(|kept| Kept {
            bytes: self.privacy().bytes(&kept.bytes).into_owned(),
            name: kept.name.clone(),
        });
        let exit_code = done.exit_code;
        let notes = note::tool(call, done.outcome, exit_code, &kept.collect::<Vec<_>>(), (started, ended));
        self.machine.handle_return(done.outcome, done.parts);
        let settled = self.machine.settled().to_vec();
        self.keep(&settled, notes).await?;
        if let Some(settled) = settled.last() {
            self.say_settled(settled, exit_code, Some(took));
        }
        Ok(())
    }

    fn say_settled(&mut self, settled: &Settled, exit_code: Option<i32>, took: Option<Duration>) {
        self.watch.see(Happening::Settled { settled, exit_code, took });
    }

    /// Takes it that the latest answer stands: what comes next goes on from it.
    fn stand(&mut self) {
        if let Some(latest) = self.latest.take() {
            self.behind = Some(latest);
        }
    }

    /// Writes what came of calls, and waits until it is on the disk.
    ///
    /// The next request brings the same entries behind the same ones, so there they cost nothing.
    async fn keep(&mut self, results: &[Settled], notes: Vec<ProviderEvent>) -> Result<(), TurnError> {
        self.stand();
        let Some((exchange, attempt)) = self.last.clone() else { return Ok(()) };
        let body = self.task.manner.said(&request::result_items(results));
        let ask = decode_request(Dialect::Responses, body);
        let ask = ask.map_err(|error| TurnError::Unreadable(error.to_string()))?;
        let entries = self.privacy().entries(&ask.entries);
        let known = self.instructed(&entries).await?;
        let conversation = self.task.conversation.clone();
        let mut extension =
            Extension::new(conversation, self.behind.clone(), now()).of_exchange(exchange.clone());
        extension.extend(&entries[known..]);
        let mut writes = vec![Write::Entries(extension)];
        if !notes.is_empty() {
            writes.push(Write::Events { exchange, attempt, events: notes });
        }
        self.gateway.history.append(self.privacy().batch(Batch::durable(writes))).await?;
        Ok(())
    }

    /// Returns how many of these entries the request before has brought already: the instructions.
    async fn instructed(&mut self, entries: &[Entry]) -> Result<usize, TurnError> {
        if self.behind != self.task.behind {
            return Ok(entries.iter().take_while(|entry| entry.is_standing()).count());
        }
        // No answer stands, so nothing that was asked in this turn is behind what is kept.
        let Some(behind) = self.behind.clone() else { return Ok(0) };
        let kept = self.gateway.history.entries(Entries::Branch(behind)).await?;
        let kept: Vec<Entry> = kept.into_iter().map(|kept| kept.entry).collect();
        Ok(exchange::restated(entries, &kept))
    }

    /// Returns what is to be taken out of whatever is written.
    fn privacy(&self) -> Arc<Privacy> {
        Arc::clone(&self.gateway.setup().config.privacy)
    }

    async fn finish(&mut self, conclusion: Conclusion) -> Result<Finished, TurnError> {
        self.stand();
        let is_answered =
            matches!(&conclusion, Conclusion::Answer(Ending::Stopped(stop)) if !stop.is_incomplete());
        let conclusion = match &self.task.compose {
            Some(compose) if is_answered && self.machine.runs() > 0 => {
                self.compose(compose, conclusion).await
            }
            _ => conclusion,
        };
        let located =
            self.gateway.history.locate(Locate::Conversation(self.task.conversation.clone())).await?;
        let tip = located.and_then(|located| located.entry);
        let calls = self.machine.runs();
        if let Some((exchange, attempt)) = self.last.clone() {
            let note = note::ended(&conclusion, calls, tip.as_ref(), self.cancelled_at, now());
            let write = Write::Events { exchange, attempt, events: vec![note] };
            self.gateway.history.append(Batch::durable(vec![write])).await?;
        }
        let usage = std::mem::take(&mut self.usage);
        Ok(Finished { conclusion, calls, answers: self.answers, usage, tip })
    }

    /// Has a second model write the answer; where that fails, the first one's stands.
    async fn compose(&mut self, compose: &Compose, conclusion: Conclusion) -> Conclusion {
        let body = compose.body(&self.task.conversation);
        let backend = compose.backend.clone().or_else(|| self.backend.clone());
        let asked = (backend.as_ref(), compose.model.as_ref());
        match self.hear(body, asked, false, false).await {
            Ok(heard) if matches!(heard.reply.ending, Ending::Stopped(_)) => {
                self.stand();
                Conclusion::Answer(heard.reply.ending)
            }
            Ok(_) => {
                self.stand();
                self.watch.see(Happening::NotComposed { reason: "the answer of the second model broke off" });
                conclusion
            }
            Err(failure) => {
                let reason = failure.message.as_str();
                tracing::warn!(reason, "the answer was not composed; the draft stands");
                self.watch.see(Happening::NotComposed { reason });
                conclusion
            }
        }
    }
}

/// Returns who is asked, if the turn says so; a model is asked for by its own name, whatever the backend makes of others.
fn destination(backend: Option<&Text>, model: Option<&Text>) -> Option<Text> {
    let backend = backend?;
    Some(model.map_or_else(|| backend.clone(), |model| Text::from(format!("{backend}/{model}"))))
}

/// Returns an id for a turn that nobody has used.
#[must_use]
pub fn mint_id() -> Text {
    Text::from(format!("run_{}", mint()))
}

/// Returns how long something took that began and ended then.
pub(crate) fn span(started: Moment, ended: Moment) -> i64 {
    (ended.0 - started.0).max(0)
}
