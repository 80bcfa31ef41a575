//! One exchange, from a client's request to the last byte of its answer. Read this file first.
//!
//! 1. The body is decoded; a bad one is refused in the client's own envelope.
//! 2. The request is placed: which conversation, what of it is known, what the backend is to be shown.
//! 3. It is written to the history, with what is about to be sent, before anybody acts on it.
//! 4. It is routed, and sent: rendered for the backend at hand, again in another form or to another backend
//!    as the [attempts](crate::capability::Attempts) decide, as long as the client has not seen a byte.
//! 5. The answer is relayed, and its end held back until the history has it.

pub mod aside;
mod background;
pub mod clients;
mod compact;
pub mod compaction_record;
mod count;
mod deliver;
mod editing;
mod footing;
mod handover;
mod healing;
mod identity;
mod items;
mod known;
mod large;
mod open;
mod permit;
mod place;
mod planning;
mod preview;
mod prompting;
mod reading;
mod recall;
mod recollection;
mod record;
mod rejoined;
mod relay;
mod response_ids;
mod retell;
mod round;
mod sizing;
mod stretch;
mod summary;
mod taken_out;
mod warm;

pub use count::{Counted, count};
pub use handover::CONTINUE_HEADER;
pub use identity::{CONVERSATION_HEADER, conversation_mark};
pub use known::Knowledge;
pub use large::{answer as answer_unhindered, unhindered};
pub use place::SIDE_QUESTIONS;
pub(crate) use place::restated;
pub use planning::tool_rules;
pub use preview::{Preview, PreviewError, Shown, Wanted, preview};
pub(crate) use record::REFUSED;
pub use response_ids::ResponseIds;
pub(crate) use round::{CANCELLED, Heard, Listener, hear};
pub(crate) use taken_out::{items_taken_out, taken_out_items};

use crate::capability::{self, Ability, Decision, Evidence, Learned, Verdict};
use crate::capability::{Attempts, Failed, Form, Leg, Lesson, Rejection, Repairs, RetryPolicy, Step};
use crate::config::OnStoreFailure;
use crate::egress::Presented;
use crate::gateway::{Gateway, Setup, mint, now};
use crate::ingress::reject::{own, reject, status};
use crate::listing::Listed;
use crate::memory::Reservation;
use crate::routing::{Asked, Destination, LearnedWindow, Route, RouteError, route};
use crate::switch;
use crate::telemetry::StoreUse;
use crate::trace::Trace;
use crate::verdicts;
use axum::response::Response;
use footing::Footing;
use handover::Cause;
use http::{HeaderMap, header};
use open::Opened;
use place::{PlaceError, Placed};
use prompting::BRIEF;
use reading::Reading;
use recall::Recalls;
use record::Recorder;
use relay::Relay;
use response_ids::ClaimedId;
use retell::PendingSummary;
use std::sync::Arc;
use std::time::Instant;
use throughline_core::{Ask, Continued, ConversationId, Dialect, EntryId, Failure, FailureKind, Kind, Text};
use throughline_store::{Batch, ExchangeId, Moment, ProviderEvent, Scope, Standing, StoreError, Write};
use throughline_wire::Stamp;

/// The header by which a client chooses a backend.
pub const BACKEND_HEADER: &str = "x-throughline-backend";

/// The header by which a client says that nothing of a request is to be kept.
pub const STORE_HEADER: &str = "x-throughline-store";

/// A request as it came.
#[derive(Debug)]
pub struct Incoming {
    /// The dialect of the endpoint that it came to.
    pub dialect: Dialect,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
    /// The response that it may continue although that was not to be stored: the latest of its connection.
    pub remembered: Option<Text>,
    /// What is to become of it.
    pub purpose: Purpose,
    /// What is settled already about a request of our own, made for a turn.
    pub own: Option<Own>,
    /// The memory that was set apart for it; one of our own needs none.
    pub reservation: Option<Reservation>,
}

/// What is settled already about a request of our own.
#[derive(Clone, Debug)]
pub struct Own {
    /// The id of the exchange.
    pub exchange: Text,
    /// The entry that it goes on from, in the conversation that it names.
    pub behind: Option<EntryId>,
    /// What the record is told about it, beside the events of the provider.
    pub note: Option<ProviderEvent>,
}

/// What is to become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is answered.
    Answer,
    /// It is only taken in, to be continued.
    TakeIn,
    /// What it holds is put into few words.
    Compact,
}

/// An exchange under way.
struct Running {
    gateway: Arc<Gateway>,
    setup: Arc<Setup>,
    headers: HeaderMap,
    presented: Presented,
    ask: Ask,
    placed: Placed,
    destinations: Vec<Destination>,
    /// Why the first of them is asked.
    cause: Cause,
    /// The conversation that this one is to go on from, if it does so with this request.
    continued: Option<Continued>,
    /// The answer that it goes on from, where a destination may keep that.
    footing: Option<Footing>,
    recorder: Recorder,
    recalls: Recalls,
    stamp: Stamp,
    reading: Reading,
    /// Whether the answer is for ourselves, so that it is kept in frames and written in no dialect.
    listens: bool,
    /// What a model is to retell once the exchange is over.
    untold: Option<PendingSummary>,
    /// Whether the client is shown the answer under an id of ours, although it is forwarded.
    has_own_id: bool,
    /// The backend's id of the answer, which no other has meanwhile.
    claimed: Option<ClaimedId>,
}

/// Answers a request.
pub async fn answer(gateway: &Arc<Gateway>, incoming: Incoming) -> Response {
    let Incoming { dialect, purpose, .. } = incoming;
    match Running::begin(gateway, incoming).await {
        Ok(running) if purpose == Purpose::TakeIn => running.warm_up().await,
        Ok(running) if purpose == Purpose::Compact => running.compact().await,
        Ok(running) if compact::is_triggered(&running.ask) => running.compact_in_place().await,
        Ok(running) if background::is_wanted(&running.ask) => running.leave_running().await,
        Ok(running) => running.run().await,
        Err(failure) => {
            gateway.telemetry.turned_away(dialect);
            reject(dialect, &failure)
        }
    }
}

impl Running {
    async fn begin(gateway: &Arc<Gateway>, incoming: Incoming) -> Result<Self, Failure> {
        let arrived = Instant::now();
        let setup = gateway.setup();
        let made = incoming.own.clone();
        let id = made.as_ref().map_or_else(mint, |own| own.exchange.to_string());
        let fresh = ConversationId::new(format!("conv_{id}"));
        let (headers, purpose) = (incoming.headers.clone(), incoming.purpose);
        let mut trace = setup.tracer.as_ref().map(|tracer| Trace::begin(tracer, &headers, arrived));
        let began = Instant::now();
        let (reading, ask, placed) = Reading::read(gateway, incoming, fresh).await?;
        trace.iter_mut().for_each(|trace| trace.phase("place", began));
        if purpose == Purpose::Compact && ask.model.is_none() {
            return Err(Failure {
                param: Some(Text::from_static("model")),
                ..own(FailureKind::InvalidRequest, "throughline_invalid_request", "model: must be given")
            });
        }
        let (mut placed, mut continued) = (placed, None);
        if purpose == Purpose::Answer && placed.identified != SIDE_QUESTIONS {
            let passes = setup.config.store.on_failure == OnStoreFailure::Pass;
            let (conversation, known) = (&placed.conversation, &placed.history);
            (placed.earlier, continued) =
                handover::earlier(gateway, &headers, conversation, known, passes).await?;
        }
        let standing = gateway.latest_standing().await;
        let route = routed(&setup, &standing, &headers, ask.model.as_deref(), &placed.conversation)?;
        let cause = Cause::of(route.reason, &standing, &placed.conversation, ask.model.as_deref());
        let keeps = is_kept(&headers, &route)?;
        if !keeps {
            check_unkept(&ask, made.is_some())?;
        }
        let recorder = recorder(gateway, &setup, &id, &headers, (&ask, &placed), arrived);
        let mut recorder = recorder.private(&setup.config.privacy, keeps).traced(trace);
        let listens = made.is_some();
        recorder.note = made.and_then(|own| own.note);
        recorder.received = Some(reading.received());
        recorder.begin(&placed, &ask, now());
        let stamp = Stamp {
            id: id.into(),
            created_at: u64::try_from(now().0 / 1000).unwrap_or_default(),
            model: Some(route.shown_model),
            input_tokens: None,
        };
        let destinations: Vec<_> = std::iter::once(route.first).chain(route.fallbacks).collect();
        let footing = footing::find(&*gateway.history, &ask, &placed, &destinations).await;
        let presented = Presented::for_backends(&headers, &setup.config.access);
        let gateway = Arc::clone(gateway);
        Ok(Self {
            gateway,
            setup,
            headers,
            presented,
            ask,
            placed,
            destinations,
            cause,
            continued,
            footing,
            recorder,
            recalls: Recalls::default(),
            stamp,
            reading,
            listens,
            untold: None,
            has_own_id: false,
            claimed: None,
        })
    }

    /// Has somebody answer, and delivers the answer.
    async fn run(mut self) -> Response {
        match self.seek().await {
            Ok(opened) => self.deliver(opened).await,
            Err(failure) => self.give_up(failure).await,
        }
    }

    /// Has one of the destinations answer.
    async fn seek(&mut self) -> Result<Opened, Failure> {
        let attempts = self.attempts();
        self.pursue(attempts, 0, None).await
    }

    /// Makes attempts until one answers or none is left; their legs are the destinations from `first` on.
    async fn pursue(
        &mut self,
        mut attempts: Attempts<Failure>,
        first: usize,
        mut resumed: Option<&mut Relay>,
    ) -> Result<Opened, Failure> {
        let mut opened: Option<Opened> = None;
        while let Some(step) = attempts.next_step() {
            match step {
                Step::Send { leg, form, after, .. } => {
                    if self.gateway.waits {
                        tokio::time::sleep(after).await;
                    }
                    match self.open((first + leg, form), resumed.as_deref_mut()).await {
                        Ok(answer) => {
                            if answer.prompted.report.strategy == BRIEF && !answer.prompted.shows_tools {
                                attempts.handle_no_tool_history();
                            }
                            opened = Some(answer);
                            attempts.handle_answer();
                        }
                        Err(open::Unopened::Backend(failed, failure)) => {
                            self.note_window(first + leg, failed).await;
                            attempts.handle_failure(failed, failure);
                        }
                        Err(open::Unopened::Own(failure)) => return Err(failure),
                    }
                }
                Step::Answer { leg, lessons } => {
                    let healed = opened.as_ref().map(|opened| opened.sent.1.repairs).unwrap_or_default();
                    self.keep_repairs(first + leg, healed).await;
                    let of_all = |lesson: Lesson| Lesson { leg: first + lesson.leg, ..lesson };
                    self.learn(&lessons.into_iter().map(of_all).collect::<Vec<_>>()).await;
                    break;
                }
                Step::Fail(failure) => return Err(failure),
            }
        }
        opened.ok_or_else(|| backend_failed("no backend answered"))
    }

    fn attempts(&self) -> Attempts<Failure> {
        self.attempts_at(self.legs())
    }

    /// Returns the attempts at the rest of a turn: where the answer so far came from, and then those that would
    /// have stood in for it.
    fn attempts_from(&self, (leg, form): (usize, Form)) -> Attempts<Failure> {
        let mut legs = self.legs().split_off(leg);
        legs.iter_mut().take(1).for_each(|leg| leg.form = form);
        self.attempts_at(legs)
    }

    fn legs(&self) -> Vec<Leg> {
        let standing = self.gateway.standing();
        let at = now();
        let leg = |destination: &Destination| {
            let native = decision(&standing, destination, Ability::NativeToolHistory, at);
            let state = decision(&standing, destination, Ability::ServerState, at);
            let age = self.footing.as_ref().and_then(|footing| footing.age_at(destination, at));
            // Embedded text retells the whole history, so there is nothing to go on from.
            let age = age.filter(|_| native.verdict() != Some(Verdict::No));
            let mut leg = Leg::new(&native, &state, age);
            leg.form.repairs =
                healing::repairs(&standing, &self.placed.conversation, &destination.backend.name);
            leg
        };
        self.destinations.iter().map(leg).collect()
    }

    fn attempts_at(&self, legs: Vec<Leg>) -> Attempts<Failure> {
        let is_tool = |kind: &Kind| matches!(kind, Kind::Called(_) | Kind::Returned(_));
        let has_tool_history =
            self.reading.has_calls_besides() || self.placed.history.iter().any(|entry| is_tool(&entry.kind));
        // Any number will do that differs from one exchange to the next.
        let seed = self.stamp.id.bytes().fold(0_u64, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
        Attempts::new(legs, has_tool_history, RetryPolicy::default(), seed)
    }

    /// Takes note of a window that a backend names when it refuses a prompt: what is sent again fits into it, and so
    /// does what is sent later.
    async fn note_window(&mut self, leg: usize, failed: Failed) {
        let Failed::Status { rejection: Some(Rejection::TooLong { window }), .. } = failed else { return };
        let destination = &mut self.destinations[leg];
        destination.window.refused = Some(window);
        let write = verdicts::keep_window(
            &destination.backend.name,
            &destination.model,
            window,
            Evidence::Tried,
            now(),
        );
        self.remember(vec![write]).await;
    }

    /// Remembers which repairs helped, for the rest of the conversation.
    async fn keep_repairs(&self, leg: usize, repairs: Repairs) {
        let backend = &self.destinations[leg].backend.name;
        let conversation = &self.placed.conversation;
        let known = healing::repairs(&self.gateway.standing(), conversation, backend);
        if !repairs.lasting().is_empty() && repairs.lasting() != known {
            self.remember(vec![healing::keep(conversation, backend, repairs.lasting(), now())]).await;
        }
    }

    /// Remembers what the attempts have shown, for the next request and for other gateways.
    async fn learn(&self, lessons: &[Lesson]) {
        let at = now();
        let learned = |lesson: &Lesson| {
            let destination = &self.destinations[lesson.leg];
            let Lesson { ability, verdict, words, .. } = *lesson;
            tracing::info!(
                backend = destination.backend.name.as_str(),
                ability = ability.name(),
                verdict = verdict.name(),
                words,
                "learned"
            );
            let learned = Learned::new(ability, verdict, Evidence::Tried, Text::from_static(words), at.0);
            verdicts::keep(&destination.backend.name, destination.model.clone(), &learned)
        };
        self.remember(lessons.iter().map(learned).collect()).await;
    }

    /// Writes verdicts, and has them in effect. That it fails is no reason to fail a request.
    async fn remember(&self, verdicts: Vec<Write>) {
        if verdicts.is_empty() {
            return;
        }
        let written = self.gateway.history.append(Batch::relaxed(verdicts)).await;
        let refreshed = match written {
            Ok(_) => self.gateway.refresh().await,
            Err(error) => Err(error),
        };
        if let Err(error) = refreshed {
            tracing::warn!(%error, "what was learned was not remembered");
        }
    }

    async fn give_up(mut self, failure: Failure) -> Response {
        if let Err(error) = self.recorder.fail(status(&failure), now()).await {
            tracing::error!(%error, "a failure was not recorded");
        }
        reject(self.ask.dialect, &failure)
    }
}

fn recorder(
    gateway: &Gateway,
    setup: &Setup,
    id: &str,
    headers: &HeaderMap,
    (ask, placed): (&Ask, &Placed),
    arrived: Instant,
) -> Recorder {
    let client = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).map(Text::from);
    let exchange = record::begun(ExchangeId::new(id), placed, ask, client, now());
    let passes = setup.config.store.on_failure == OnStoreFailure::Pass;
    Recorder::new(gateway, exchange, passes, arrived)
}

/// Says whether an exchange is kept: not if the client says so, or if it may go to a backend of which nothing is.
fn is_kept(headers: &HeaderMap, route: &Route) -> Result<bool, Failure> {
    let said = headers.get(STORE_HEADER).map(|value| value.to_str().unwrap_or_default());
    let is_wanted = match said {
        None | Some("true") => true,
        Some("false") => false,
        Some(other) => {
            let what = format!("{STORE_HEADER}: `{other}` is neither `true` nor `false`");
            return Err(Failure {
                param: Some(Text::from_static(STORE_HEADER)),
                ..own(FailureKind::InvalidRequest, "throughline_invalid_request", what)
            });
        }
    };
    let mut destinations = std::iter::once(&route.first).chain(&route.fallbacks);
    Ok(is_wanted && destinations.all(|destination| destination.backend.store))
}

/// Refuses what cannot be done without keeping it.
fn check_unkept(ask: &Ask, is_own: bool) -> Result<(), Failure> {
    if is_own {
        let what = "a turn is run from what is kept, and this would not be";
        return Err(own(FailureKind::InvalidRequest, "throughline_not_kept", what));
    }
    if background::is_wanted(ask) {
        let what = "background: what is to be had later has to be kept, and this is not";
        return Err(Failure {
            param: Some(Text::from_static("background")),
            ..own(FailureKind::InvalidRequest, "throughline_invalid_request", what)
        });
    }
    Ok(())
}

/// Returns the backend of which nothing is to be kept, if a request may go to one.
pub(crate) fn unkept(
    gateway: &Gateway,
    standing: &Standing,
    headers: &HeaderMap,
    model: Option<&str>,
    conversation: &ConversationId,
) -> Option<Text> {
    let route = routed(&gateway.setup(), standing, headers, model, conversation).ok()?;
    let mut destinations = std::iter::once(&route.first).chain(&route.fallbacks);
    destinations.find(|to| !to.backend.store).map(|to| to.backend.name.clone())
}

fn routed(
    setup: &Setup,
    standing: &Standing,
    headers: &HeaderMap,
    model: Option<&str>,
    conversation: &ConversationId,
) -> Result<Route, Failure> {
    let everywhere = switch::of(standing, &Scope::Everywhere);
    let switched = identity::asked_beside(headers).unwrap_or_else(|| conversation.clone());
    let conversation = switch::of(standing, &Scope::Conversation(switched));
    let asked = Asked {
        model,
        backend: headers.get(BACKEND_HEADER).and_then(|value| value.to_str().ok()),
        conversation: conversation.as_ref(),
        switched: everywhere.as_ref(),
    };
    let routed = route(&setup.config, &asked, &setup.listings());
    let routed = routed.map(|mut route| {
        let listed = setup.listed();
        for destination in std::iter::once(&mut route.first).chain(&mut route.fallbacks) {
            destination.window = learned_window(standing, &listed, destination);
        }
        route
    });
    routed.map_err(|error| {
        let (code, param) = match &error {
            RouteError::UnknownBackend { .. } => ("throughline_unknown_backend", BACKEND_HEADER),
            RouteError::MisspeltBackend { .. } => ("throughline_unknown_backend", "model"),
            RouteError::UnknownModel { .. } => ("throughline_unknown_model", "model"),
            RouteError::NoModel { .. } => ("throughline_no_model", "model"),
        };
        Failure {
            param: Some(Text::from_static(param)),
            ..own(FailureKind::InvalidRequest, code, error.to_string())
        }
    })
}

/// Returns what a backend says about the window of a destination.
fn learned_window(standing: &Standing, listed: &Listed, destination: &Destination) -> LearnedWindow {
    let Destination { backend, model, .. } = destination;
    let kept = verdicts::window(standing, &backend.name, model, now());
    let of = |evidence: Evidence| kept.filter(|(_, known)| *known == evidence).map(|(window, _)| window);
    let listed = listed.get(&backend.name).and_then(|listing| listing.windows.get(model).copied());
    LearnedWindow { listed: listed.or(of(Evidence::Listing)), refused: of(Evidence::Tried) }
}

/// Decides about an ability of a destination: about its model, or else about all models of its backend.
fn decision(standing: &Standing, destination: &Destination, ability: Ability, at: Moment) -> Decision {
    let backend = &destination.backend;
    let flag = match ability {
        Ability::NativeToolHistory => backend.native_tool_history,
        Ability::ServerState => backend.server_state,
    };
    let about = |model: &str| verdicts::find(standing, &backend.name, model, ability);
    let kept = about(&destination.model).or_else(|| about(""));
    let learned = kept.and_then(verdicts::recall);
    capability::decide(flag, learned.as_ref(), at.0)
}

fn misplaced(gateway: &Gateway, error: &PlaceError) -> Failure {
    match error {
        PlaceError::NoSuchResponse(_) => Failure {
            code: Some(Text::from_static("previous_response_not_found")),
            param: Some(Text::from_static("previous_response_id")),
            // As OpenAI has it: its clients send everything again after a 400 of this code.
            ..Failure::new(FailureKind::InvalidRequest, error.to_string())
        },
        PlaceError::Unfinished(_) => Failure {
            param: Some(Text::from_static("previous_response_id")),
            ..own(FailureKind::InvalidRequest, "throughline_response_unfinished", error.to_string())
        },
        PlaceError::NoSuchConversation(_) => Failure {
            param: Some(Text::from_static("conversation")),
            ..own(FailureKind::NotFound, "throughline_no_such_conversation", error.to_string())
        },
        PlaceError::TwoPasts => Failure {
            param: Some(Text::from_static("conversation")),
            ..own(FailureKind::InvalidRequest, "throughline_invalid_request", error.to_string())
        },
        PlaceError::NoSuchCall { item, .. } => Failure {
            param: Some(Text::from(format!("input[{item}].call_id"))),
            ..own(FailureKind::InvalidRequest, "throughline_no_such_call", error.to_string())
        },
        PlaceError::NoSuchItem(_) => Failure {
            param: Some(Text::from_static("input")),
            ..own(FailureKind::NotFound, "throughline_no_such_item", error.to_string())
        },
        PlaceError::Store(error) => {
            gateway.telemetry.store_failed(StoreUse::Read);
            unrecorded(error)
        }
    }
}

fn unrecorded(error: &StoreError) -> Failure {
    own(FailureKind::Overloaded, "throughline_store_failed", format!("the history cannot be kept: {error}"))
}

fn backend_failed(message: impl Into<Text>) -> Failure {
    own(FailureKind::Backend, "throughline_backend_failed", message)
}

/// Returns the failure of an answer of which there is more than is taken.
fn too_large(how: impl std::fmt::Display) -> Failure {
    let message = format!("the backend's answer is too large: {how}");
    own(FailureKind::Backend, "throughline_answer_too_large", message)
}

/// Returns the failure of an answer that goes on without getting anywhere.
fn stalled(limit: std::time::Duration) -> Failure {
    let message = format!("the backend's answer made no progress for {limit:?} (`timeouts.progress`)");
    own(FailureKind::TimedOut, "throughline_answer_stalled", message)
}

/// Returns the failure of a stream that ended before the answer did.
fn broken_off() -> Failure {
    own(FailureKind::Backend, "throughline_backend_stream_broken", "the backend's answer broke off")
}
