//! Answers of backends as the record has them, played back instead of asking anybody (R30).
//!
//! Who speaks another dialect than the backend that answered then is played the answer in that dialect, by way of the
//! frames that both of them have.

use super::{AnswerBounds, Answered, Body, EgressError};
use crate::echo::EchoFilter;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use throughline_core::{Ask, Dialect, Ending, Extra, Frame, Text};
use throughline_store::{Moment, ProviderEvent};
use throughline_wire::json::Document;
use throughline_wire::sse::{SseEvent, write_event};
use throughline_wire::{
    Outgoing, Stamp, StreamDecoder, StreamEncoder, decode_error, decode_reply, encode_error, encode_reply,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The event that holds the body with which a backend refused an attempt.
pub const REFUSED: &str = "throughline.refused";

/// The answers of a turn, by exchange, each to be had once.
#[derive(Debug, Default)]
pub struct Reel(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    takes: BTreeMap<Text, VecDeque<Take>>,
    current: Text,
}

/// What came of one attempt.
#[derive(Clone, Debug)]
pub struct Take {
    /// The dialect of what the backend said.
    pub dialect: Dialect,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why there was none.
    pub failure: Option<Text>,
    /// What the backend said.
    pub events: Vec<ProviderEvent>,
    /// What is called off where the events end, if the answer was.
    pub cancel: Option<CancellationToken>,
}

/// A body that is played back.
#[derive(Debug)]
pub(super) struct Playing {
    chunks: VecDeque<Bytes>,
    cancel: Option<CancellationToken>,
}

impl Reel {
    /// Adds what came of an attempt of an exchange.
    pub fn add(&self, exchange: &str, take: Take) {
        self.state().takes.entry(Text::from(exchange)).or_default().push_back(take);
    }

    /// Says which exchange is under way from now on.
    pub fn turn_to(&self, exchange: &str) {
        self.state().current = Text::from(exchange);
    }

    /// Returns the next answer of the exchange under way, in a dialect.
    pub(super) fn play(&self, dialect: Dialect) -> Result<Answered, EgressError> {
        let mut state = self.state();
        let current = state.current.clone();
        let take = state.takes.get_mut(&current).and_then(VecDeque::pop_front);
        let take = take.ok_or_else(|| EgressError::Connect("the record has no further answer".to_owned()))?;
        if take.dialect == dialect { take } else { take.retold(dialect) }.answered()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Take {
    fn answered(self) -> Result<Answered, EgressError> {
        let refusal = self.events.iter().find(|event| event.name.as_deref() == Some(REFUSED));
        let (status, is_stream, chunks) = match refusal {
            Some(refusal) => (self.status.unwrap_or(500), false, vec![bytes_of(&refusal.data)].into()),
            None if self.events.is_empty() && self.cancel.is_none() => return Err(self.not_answered()),
            None => match self.events.as_slice() {
                [only] if is_whole(only) => (200, false, vec![bytes_of(&only.data)].into()),
                events => (200, true, chunks_of(events, self.failure.is_some())),
            },
        };
        let content_type = if is_stream { "text/event-stream" } else { "application/json" };
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Ok(Answered {
            status,
            headers,
            bounds: AnswerBounds::NONE,
            echoes: EchoFilter::default(),
            body: Body::Recorded(Playing { chunks, cancel: self.cancel }),
            came: 0,
            progressed: Instant::now(),
        })
    }

    /// Returns the same in another dialect.
    fn retold(self, to: Dialect) -> Self {
        let (from, status) = (self.dialect, self.status.unwrap_or(500));
        let is_refusal = |event: &ProviderEvent| event.name.as_deref() == Some(REFUSED);
        let events = match self.events.as_slice() {
            [only] if is_whole(only) => {
                let reply = decode_reply(from, only.data.as_str());
                let told = |reply| encode_reply(to, &reply, &stamp(), &Ask::of(to, Vec::new()));
                let data = reply.map_or_else(|_| only.data.clone(), |reply| told(reply).into());
                vec![ProviderEvent { data, ..only.clone() }]
            }
            events => match events.iter().find(|event| is_refusal(event)) {
                Some(refusal) => {
                    let data = encode_error(to, &decode_error(from, status, &refusal.data)).into();
                    vec![ProviderEvent { data, ..refusal.clone() }]
                }
                None => streamed(events, (from, to), self.cancel.is_none()),
            },
        };
        Self { dialect: to, events, ..self }
    }

    /// Returns the failure by the words that the record has for it.
    fn not_answered(self) -> EgressError {
        let words = self.failure.unwrap_or_default();
        let words = words.strip_prefix("the backend cannot be reached: ").unwrap_or(&words);
        if let Some(cause) = words.strip_prefix("the connection broke: ") {
            return EgressError::Broke(cause.to_owned());
        }
        match words.strip_prefix("no connection: ") {
            Some(cause) => EgressError::Connect(cause.to_owned()),
            None if words == EgressError::Silent.to_string() => EgressError::Silent,
            None => EgressError::Connect(words.to_owned()),
        }
    }
}

impl Playing {
    pub(super) async fn chunk(&mut self) -> Option<Bytes> {
        let next = self.chunks.pop_front();
        if next.is_none()
            && let Some(cancel) = &self.cancel
        {
            // Somebody called it off here, and so it is done again.
            cancel.cancel();
            std::future::pending::<()>().await;
        }
        next
    }

    pub(super) fn whole(self) -> Bytes {
        self.chunks.into_iter().flatten().collect()
    }
}

fn bytes_of(text: &Text) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Returns the events as they come: an answer that failed before anybody saw its beginning all at once, so that it
/// fails again, and any other one by one.
fn chunks_of(events: &[ProviderEvent], at_once: bool) -> VecDeque<Bytes> {
    let group = if at_once { events.len().max(1) } else { 1 };
    let chunk = |events: &[ProviderEvent]| {
        let mut text = String::new();
        events.iter().for_each(|event| write_event(&mut text, event.name.as_deref(), &event.data));
        Bytes::from(text)
    };
    events.chunks(group).map(chunk).collect()
}

/// Returns the events of a stream in another dialect; one that broke off does so again.
fn streamed(events: &[ProviderEvent], (from, to): (Dialect, Dialect), is_over: bool) -> Vec<ProviderEvent> {
    let mut decoder = StreamDecoder::new(from);
    // What it took is told as well, by the dialect that only does so on demand.
    let name = Text::from_static("stream_options");
    let usage = Extra { name, value: Text::from_static(r#"{"include_usage":true}"#) };
    let ask = Ask { stream: true, fields: vec![usage], ..Ask::of(to, Vec::new()) };
    let mut encoder = StreamEncoder::new(to, stamp(), &ask);
    let mut all = Vec::new();
    let mut tell = |at: Moment, frames: &mut Vec<Frame>| {
        let mut out = Vec::new();
        for frame in frames.drain(..).filter(|frame| *frame != Frame::Closed(Ending::Broken)) {
            encoder.handle_frame(&frame, &mut out);
        }
        let event = |Outgoing { name, data }| ProviderEvent {
            at,
            name: name.map(Text::from_static),
            data: data.into(),
        };
        all.extend(out.into_iter().map(event));
    };
    let mut frames = Vec::new();
    for event in events {
        let sse = SseEvent { name: event.name.clone(), data: event.data.clone() };
        decoder.handle_event(&sse, &mut frames);
        tell(event.at, &mut frames);
    }
    if is_over {
        decoder.finish(&mut frames);
        tell(Moment::default(), &mut frames);
    }
    all
}

/// Returns a stamp for an answer that nobody but ourselves will see.
fn stamp() -> Stamp {
    Stamp { id: Text::from_static("replayed"), created_at: 0, model: None, input_tokens: None }
}

/// Says whether an event is an answer that came whole, by the marks that each dialect gives one.
fn is_whole(event: &ProviderEvent) -> bool {
    let Ok(document) = Document::parse(event.data.as_str()) else { return false };
    let root = document.root();
    let is = |name: &str, value: &str| root.field(name).is_some_and(|field| field.is_str(value));
    event.name.is_none()
        && (is("object", "chat.completion") || is("type", "message") || is("object", "response"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: Option<&str>, data: &str) -> ProviderEvent {
        ProviderEvent { at: Default::default(), name: name.map(Text::from), data: data.into() }
    }

    #[tokio::test]
    async fn each_answer_comes_back_as_what_it_was() {
        let reel = Reel::default();
        let whole = r#"{"object":"chat.completion"}"#;
        let dialect = Dialect::Chat;
        let take = |events: &[ProviderEvent]| Take {
            dialect,
            status: None,
            failure: None,
            events: events.to_vec(),
            cancel: None,
        };
        reel.add("a", Take { status: Some(429), ..take(&[event(Some(REFUSED), "slow down")]) });
        reel.add("a", take(&[event(None, whole)]));
        reel.add("a", take(&[event(Some("x"), "1"), event(None, "[DONE]")]));
        let failure = Some(Text::from("the backend cannot be reached: no answer within the time limit"));
        reel.add("b", Take { failure, ..take(&[]) });
        reel.turn_to("a");
        let refused = reel.play(dialect).unwrap();
        assert_eq!((refused.status, &*refused.whole(100).await.unwrap()), (429, b"slow down".as_slice()));
        let answered = reel.play(dialect).unwrap();
        assert!(!answered.is_stream() && *answered.whole(100).await.unwrap() == *whole.as_bytes());
        let streamed = reel.play(dialect).unwrap();
        assert!(streamed.is_stream());
        assert_eq!(&*streamed.whole(100).await.unwrap(), b"event: x\ndata: 1\n\ndata: [DONE]\n\n".as_slice());
        assert!(matches!(reel.play(dialect), Err(EgressError::Connect(_))), "the record is over");
        reel.turn_to("b");
        assert!(matches!(reel.play(dialect), Err(EgressError::Silent)));
    }
}
