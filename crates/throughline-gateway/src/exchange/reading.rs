//! A request read and placed: without what is settled of it where that is known, and else whole.

use super::failures::misplaced;
use super::identity::{self, Claim};
use super::known::{Abridged, Address, Known, Lesson};
use super::place::{self, Past, PlaceError, Placed};
use super::prompting::{Prompted, Showing, prompt};
use super::record::Recorder;
use super::{Incoming, Purpose, Running, background_request};
use crate::config::OnStoreFailure;
use crate::failure::undecodable;
use crate::gateway::Gateway;
use crate::memory::Reservation;
use crate::routing::Destination;
use crate::telemetry::StoreUse;
use bytes::Bytes;
use std::sync::Arc;
use throughline_core::{Ask, ConversationId, Dialect, Failure, Reply, Text};
use throughline_wire::decode_request;

/// How a request was read.
#[derive(Debug)]
pub struct Reading {
    body: Arc<str>,
    /// Where what is known of it is to be found, if it is remembered at all.
    address: Option<Address>,
    /// What it was read with, if it was not read whole.
    known: Option<Arc<Known>>,
    /// The memory that was set apart for the request.
    reservation: Option<Reservation>,
}

/// How many bytes an exchange holds for each byte of its request once it was sent.
const COPIES_WHILE_ANSWERED: usize = 2;

/// The request of a client as bytes, without a copy.
struct SharedBody(Arc<str>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Finds the place of a request that was read whole; with `passes`, one that brings its own history is also placed
/// when the record cannot be read.
///
/// # Errors
/// When the request has no place.
pub async fn place_whole(
    gateway: &Gateway,
    claim: Claim,
    ask: &Ask,
    past: Past<'_>,
    fresh: ConversationId,
    passes: bool,
) -> Result<Placed, Failure> {
    let setup = gateway.setup();
    let placed =
        place::place(&*gateway.history, claim, ask, past, fresh.clone(), &setup.config.privacy).await;
    match placed {
        // A history that cannot be read is no reason to fail a request that brings its own.
        Err(PlaceError::Store(error)) if passes && !place::leans_on_record(ask) => {
            gateway.telemetry.store_failed(StoreUse::Read);
            tracing::error!(%error, "placed without the history");
            Ok(Placed::unknown(ask, fresh))
        }
        placed => placed.map_err(|error| misplaced(gateway, &error)),
    }
}

/// Decodes a body.
///
/// # Errors
/// When it cannot be understood.
pub fn decode(dialect: Dialect, body: impl Into<Arc<str>>) -> Result<Ask, Failure> {
    decode_request(dialect, body).map_err(|error| undecodable(&error))
}

impl Reading {
    /// Reads a request and finds its place.
    ///
    /// # Errors
    /// When the body cannot be understood, or the request has no place.
    pub async fn read(
        gateway: &Gateway,
        incoming: Incoming,
        fresh: ConversationId,
    ) -> Result<(Self, Ask, Placed), Failure> {
        let Incoming { dialect, headers, body, remembered, purpose, own, reservation } = incoming;
        let body: Arc<str> = body.into();
        // Whatever else is done with a history is done with all of it.
        let address = gateway.knowledge.address(dialect, identity::session(&headers), &body);
        // What is known is compared with what is kept, and that may be redacted.
        let setup = gateway.setup();
        let passes = setup.config.store.on_failure == OnStoreFailure::Pass;
        let is_plain = purpose == Purpose::Answer && own.is_none() && !setup.config.privacy.is_active();
        let address = address.filter(|_| is_plain);
        let known = address.as_ref().and_then(|address| gateway.knowledge.recall(address, &body));
        let mut reading = Self { body, address, known, reservation };
        if let Some((known, abridged)) = reading.abridge(dialect) {
            let claim = identity::claim(&headers, &abridged.ask);
            let placed = place::place_abridged(&*gateway.history, claim, &abridged, &known, fresh.clone());
            match placed.await {
                Ok(Some(placed)) => return Ok((reading, abridged.ask, placed)),
                Err(PlaceError::Store(_)) if passes => {}
                other => drop(other.map_err(|error| misplaced(gateway, &error))?),
            }
        }
        reading.known = None;
        let (ask, claim, behind) = match own {
            Some(own) => (own.ask, Claim::Explicit(Text::from(own.conversation.as_str())), own.behind),
            None => {
                let ask = decode(dialect, Arc::clone(&reading.body))?;
                background_request::check(&ask)?;
                let claim = identity::claim(&headers, &ask);
                (ask, claim, None)
            }
        };
        let past = Past { remembered: remembered.as_ref(), behind: behind.as_ref() };
        let placed = place_whole(gateway, claim, &ask, past, fresh, passes).await?;
        Ok((reading, ask, placed))
    }

    fn abridge(&self, dialect: Dialect) -> Option<(Arc<Known>, Abridged)> {
        let known = self.known.as_ref()?;
        let abridged = known.abridge(dialect, &self.body)?;
        // What runs in the background, or is refused for asking that wrongly, is looked at whole.
        let is_usual =
            background_request::check(&abridged.ask).is_ok() && !background_request::is_wanted(&abridged.ask);
        is_usual.then(|| (Arc::clone(known), abridged))
    }

    /// Gives back the memory that is not needed any more once the request was sent.
    pub fn release_sent(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            // To give something back needs no room.
            let _ = reservation.resize(self.body.len() * COPIES_WHILE_ANSWERED);
        }
    }

    /// Returns the request as it came, to the byte.
    pub fn received(&self) -> Bytes {
        Bytes::from_owner(SharedBody(Arc::clone(&self.body)))
    }

    /// Returns how many bytes the whole request has, if not all of it was read.
    pub fn bytes_if_abridged(&self) -> Option<usize> {
        self.known.as_ref().map(|_| self.body.len())
    }

    /// Says whether there are calls in what was left out.
    pub fn has_calls_besides(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.has_calls())
    }

    /// Remembers what is known of the conversation after an answer.
    pub fn learn(
        &mut self,
        gateway: &Gateway,
        recorder: &Recorder,
        (ask, placed): (&Ask, &Placed),
        (prompted, reply): (&Prompted, &Reply),
    ) {
        let Some(address) = self.address.take().filter(|_| !recorder.lapsed) else { return };
        let (before, after) = recorder.tips();
        let reply = recorder.said(reply);
        let (body, known) = (Arc::clone(&self.body), self.known.clone());
        let recorded = recorder.recorded();
        let lesson = Lesson { address, body, known, ask, placed, prompted, reply, before, after, recorded };
        gateway.knowledge.learn(&lesson);
    }
}

impl Running {
    /// Renders the request for a destination; reads it whole if it must be whole for that.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub(super) async fn prompt(
        &mut self,
        destination: &Destination,
        showing: Showing<'_>,
    ) -> Result<Prompted, Failure> {
        if let Some(known) = self.reading.known.clone() {
            let (body, ask, placed) = (&self.reading.body, &self.ask, &self.placed);
            if let Some(prompted) = known.prompt(body, ask, placed, destination, showing) {
                self.gateway.telemetry.abridged();
                return Ok(prompted);
            }
            self.read_whole().await?;
        }
        Ok(prompt(&self.ask, &self.placed, destination, showing))
    }

    /// Reads the request whole, if it was not.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub(super) async fn read_whole(&mut self) -> Result<(), Failure> {
        if self.reading.known.is_none() {
            return Ok(());
        }
        let ask = decode(self.ask.dialect, Arc::clone(&self.reading.body))?;
        let abridged = (&self.ask, &self.placed);
        let placed = place::unabridged(&*self.gateway.history, &ask, abridged).await;
        self.placed = placed.map_err(|error| misplaced(&self.gateway, &error))?;
        self.ask = ask;
        self.reading.known = None;
        Ok(())
    }
}
