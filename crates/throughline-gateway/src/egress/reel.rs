//! Answers of backends as the record has them, played back instead of asking anybody (R30).

use super::{Answered, Body, EgressError};
use crate::exchange::REFUSED;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use throughline_core::Text;
use throughline_store::ProviderEvent;
use throughline_wire::json::Document;
use throughline_wire::sse::write_event;
use tokio_util::sync::CancellationToken;

/// The answers of a turn, by exchange, each to be had once.
#[derive(Debug, Default)]
pub struct Reel(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    takes: BTreeMap<Text, VecDeque<Take>>,
    current: Text,
}

/// What came of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Take {
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

    /// Returns the next answer of the exchange under way.
    pub(super) fn play(&self) -> Result<Answered, EgressError> {
        let mut state = self.state();
        let current = state.current.clone();
        let take = state.takes.get_mut(&current).and_then(VecDeque::pop_front);
        take.ok_or_else(|| EgressError::Connect("the record has no further answer".to_owned()))?.answered()
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
        Ok(Answered { status, headers, body: Body::Recorded(Playing { chunks, cancel: self.cancel }) })
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
        let take = |events: &[ProviderEvent]| Take { events: events.to_vec(), ..Take::default() };
        reel.add("a", Take { status: Some(429), ..take(&[event(Some(REFUSED), "slow down")]) });
        reel.add("a", take(&[event(None, whole)]));
        reel.add("a", take(&[event(Some("x"), "1"), event(None, "[DONE]")]));
        let failure = Some(Text::from("the backend cannot be reached: no answer within the time limit"));
        reel.add("b", Take { failure, ..Take::default() });
        reel.turn_to("a");
        let refused = reel.play().unwrap();
        assert_eq!((refused.status, &*refused.whole().await.unwrap()), (429, b"slow down".as_slice()));
        let answered = reel.play().unwrap();
        assert!(!answered.is_stream() && *answered.whole().await.unwrap() == *whole.as_bytes());
        let streamed = reel.play().unwrap();
        assert!(streamed.is_stream());
        assert_eq!(&*streamed.whole().await.unwrap(), b"event: x\ndata: 1\n\ndata: [DONE]\n\n".as_slice());
        assert!(matches!(reel.play(), Err(EgressError::Connect(_))), "the record is over");
        reel.turn_to("b");
        assert!(matches!(reel.play(), Err(EgressError::Silent)));
    }
}
