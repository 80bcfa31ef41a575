//! One request, stage by stage, from its bytes to the last byte of its answer. Read this file first.
//!
//! ```text
//! received → decode → place → route → per attempt: plan → render → record → send → relay → conclude
//! ```
//!
//! 1. *Decode* (`reading.rs`): the body becomes a request; what the prefix cache knows of it is not read again.
//! 2. *Place* (`place.rs`): which conversation it belongs to, and what of it is in the history already.
//! 3. *Route* (`route.rs`): who is asked, and who stands in.
//! 4. *Attempt* (`attempt.rs`): what is shown is planned (`planning.rs`), rendered (`prompting.rs`), written to the history
//!    (`record.rs`) and only then sent (`open.rs`); again, in another form or elsewhere, until somebody answers.
//! 5. *Relay* (`relay.rs`): the answer goes to whoever wants it.
//! 6. *Conclude* (`conclude.rs`): it is in the history before anybody is told that it is over.

// The stages, in their order.
mod reading;

mod place;

mod route;

mod attempt;

mod planning;

mod prompting;

mod record;

mod open;

mod relay;

mod conclude;

// Who wants an answer.
mod background;
mod deliver;
mod round;

// Requests that no backend is asked for.
mod compact_answer;
mod count;
mod preview;
mod warm;

// What the stages use.
mod answer_stream;
pub mod aside;
mod background_request;
pub mod clients;
mod compact;
pub mod compaction_record;
mod countable;
mod editing;
mod failures;
mod follow_up;
mod footing;
mod handover;
mod healing;
mod hidden_calls;
mod identity;
mod items;
mod known;
mod large;
mod permit;
mod place_error;
mod recall;
mod recollection;
mod rejoined;
mod response_ids;
mod retell;
mod sizing;
mod stretch;
mod summary;
mod taken_out;
mod traces;
mod unshown;

pub use count::{Counted, count};
pub use handover::CONTINUE_HEADER;
pub use identity::{CONVERSATION_HEADER, conversation_mark};
pub use known::Knowledge;
pub use large::{answer as answer_unhindered, unhindered};
pub use place::SIDE_QUESTIONS;
pub(crate) use place::restated;
pub use planning::tool_rules;
pub use preview::{Preview, PreviewError, Shown, Wanted, preview};
pub(crate) use round::{Answer as InProcessAnswer, CANCELLED, Listener, answer_in_process};
pub use route::{RouteHints, unkept};
pub(crate) use taken_out::{items_taken_out, taken_out_items};

use crate::config::OnStoreFailure;
use crate::egress::Presented;
use crate::failure::{gateway_error, reject, status};
use crate::gateway::{Gateway, Setup, mint, now};
use crate::memory::Reservation;
use crate::response_ids::ClaimedId;
use crate::routing::Destination;
use crate::trace::Trace;
use axum::response::Response;
use footing::Footing;
use handover::Cause;
use http::{HeaderMap, header};
use place::Placed;
use reading::Reading;
use recall::Recalls;
use record::Recorder;
use retell::PendingSummary;
use route::{Routed, check_unkept, route_request};
use std::sync::Arc;
use std::time::Instant;
use throughline_core::{Ask, Continued, ConversationId, Dialect, EntryId, Failure, FailureKind, Text};
use throughline_store::{ExchangeId, ProviderEvent};
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
    /// The request itself, where it is one of our own and needs no decoding.
    pub own: Option<Box<OwnRequest>>,
    /// The memory that was set apart for it; one of our own needs none.
    pub reservation: Option<Reservation>,
}

/// A request of our own, made for a turn: a value, with no headers.
#[derive(Clone, Debug)]
pub struct OwnRequest {
    /// What is asked.
    pub ask: Ask,
    /// The same as the record keeps what was received.
    pub received: String,
    /// The id of the exchange.
    pub exchange: Text,
    /// The conversation that it belongs to.
    pub conversation: ConversationId,
    /// The backend that is asked, perhaps with a model, if not the one that would be.
    pub backend: Option<Text>,
    /// Who asks.
    pub client: Text,
    /// The entry that it goes on from.
    pub behind: Option<EntryId>,
    /// What the record is told about it, beside the events of the provider.
    pub note: Option<ProviderEvent>,
}

impl From<OwnRequest> for Incoming {
    fn from(mut own: OwnRequest) -> Self {
        Self {
            dialect: own.ask.dialect,
            headers: HeaderMap::new(),
            body: std::mem::take(&mut own.received),
            remembered: None,
            purpose: Purpose::Answer,
            own: Some(Box::new(own)),
            reservation: None,
        }
    }
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
    /// Whether the client is shown an answer that is forwarded under the backend's id, once that is decided.
    keeps_backend_id: Option<bool>,
    /// The backend's id of the answer, which no other has meanwhile.
    claimed: Option<ClaimedId>,
}

/// Answers a request.
pub async fn answer(gateway: &Arc<Gateway>, incoming: Incoming) -> Response {
    let Incoming { dialect, purpose, .. } = incoming;
    // Boxed, here and below: an exchange is large, and each of these would hold it on the stack once more.
    match Box::pin(Running::begin(gateway, incoming)).await {
        Ok(running) if purpose == Purpose::TakeIn => Box::pin(running.warm_up()).await,
        Ok(running) if purpose == Purpose::Compact => Box::pin(running.compact()).await,
        Ok(running) if compact::is_triggered(&running.ask) => Box::pin(running.compact_in_place()).await,
        Ok(running) if background_request::is_wanted(&running.ask) => Box::pin(running.leave_running()).await,
        Ok(running) => Box::pin(running.run()).await,
        Err(failure) => {
            gateway.telemetry.turned_away(dialect);
            reject(dialect, &failure)
        }
    }
}

impl Running {
    /// Takes a request in: decodes, places and routes it.
    async fn begin(gateway: &Arc<Gateway>, incoming: Incoming) -> Result<Self, Failure> {
        let arrived = Instant::now();
        let setup = gateway.setup();
        let mut incoming = incoming;
        let id = incoming.own.as_ref().map_or_else(mint, |own| own.exchange.to_string());
        let (client, hints) = (client_of(&incoming), RouteHints::for_request(&incoming));
        let (is_own, note) = (incoming.own.is_some(), incoming.own.as_mut().and_then(|own| own.note.take()));
        let fresh = ConversationId::new(format!("conv_{id}"));
        let (headers, purpose) = (incoming.headers.clone(), incoming.purpose);
        let mut trace = setup.tracer.as_ref().map(|tracer| Trace::begin(tracer, &headers, arrived));

        let began = Instant::now();
        let (reading, ask, placed) = Reading::read(gateway, incoming, fresh).await?;
        trace.iter_mut().for_each(|trace| trace.phase("place", began));
        if purpose == Purpose::Compact && ask.model.is_none() {
            return Err(Failure {
                param: Some(Text::from_static("model")),
                ..gateway_error(
                    FailureKind::InvalidRequest,
                    "throughline_invalid_request",
                    "model: must be given",
                )
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
        let routed = route_request(&setup, &standing, &hints, &ask, &placed.conversation)?;
        let Routed { destinations, cause, shown_model, is_kept } = routed;
        if !is_kept {
            check_unkept(&ask, is_own)?;
        }

        let recorder = recorder(gateway, &setup, &id, client, (&ask, &placed), arrived);
        let mut recorder = recorder.private(&setup.config.privacy, is_kept).traced(trace);
        recorder.note = note;
        recorder.received = Some(reading.received());
        recorder.begin(&placed, &ask, now());

        let stamp = Stamp {
            id: id.into(),
            created_at: u64::try_from(now().0 / 1000).unwrap_or_default(),
            model: Some(shown_model),
            input_tokens: None,
        };
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
            listens: is_own,
            untold: None,
            keeps_backend_id: None,
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
    client: Option<Text>,
    (ask, placed): (&Ask, &Placed),
    arrived: Instant,
) -> Recorder {
    let exchange = record::begun(ExchangeId::new(id), placed, ask, client, now());
    let passes = setup.config.store.on_failure == OnStoreFailure::Pass;
    Recorder::new(gateway, exchange, passes, arrived)
}

/// Returns what the client of a request calls itself.
fn client_of(incoming: &Incoming) -> Option<Text> {
    match &incoming.own {
        Some(own) => Some(own.client.clone()),
        None => {
            let named = incoming.headers.get(header::USER_AGENT);
            named.and_then(|value| value.to_str().ok()).map(Text::from)
        }
    }
}
