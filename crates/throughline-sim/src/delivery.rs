//! How an answer leaves: at once, slowly, cut off, or never to its end.
//!
//! Each event is written by itself: a client sees the boundaries that a provider's events have.

use crate::recorder::Recorder;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How an answer is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// How long to wait before each event.
    pub(crate) delay: Option<Duration>,
    /// After how many events the connection breaks.
    pub(crate) cut_off: Option<usize>,
    /// After how many events nothing more comes, though the connection stays.
    pub(crate) hang: Option<usize>,
}

/// Notes that an answer was handed over whole.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) number: u64,
}

/// The answer was cut off on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the script cuts the answer off here")]
struct CutOff;

struct Sending {
    events: VecDeque<Bytes>,
    sent: usize,
    manner: Manner,
    receipt: Receipt,
}

impl Receipt {
    pub(crate) fn complete(&self) {
        self.recorder.completed(self.number);
    }
}

/// Returns a body that hands over the events one by one.
pub(crate) fn body(events: Vec<String>, manner: Manner, receipt: Receipt) -> Body {
    let events = events.into_iter().map(Bytes::from).collect();
    let sending = Sending { events, sent: 0, manner, receipt };
    Body::from_stream(stream::unfold(sending, Sending::next))
}

/// Returns a body that hands over a whole text.
pub(crate) fn whole(text: String, manner: Manner, receipt: Receipt) -> Body {
    if manner == Manner::default() {
        receipt.complete();
        return Body::from(text);
    }
    // In two halves, so that there is a middle to be cut off in.
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let (head, tail) = text.split_at(middle);
    body(vec![head.to_owned(), tail.to_owned()], manner, receipt)
}

impl Sending {
    async fn next(mut self) -> Option<(Result<Bytes, CutOff>, Self)> {
        if self.manner.hang.is_some_and(|after| self.sent >= after) {
            std::future::pending::<()>().await;
        }
        if self.manner.cut_off.is_some_and(|after| self.sent >= after) {
            // What was sent before must have left, or the client would never see it.
            tokio::task::yield_now().await;
            return Some((Err(CutOff), self));
        }
        match self.manner.delay {
            Some(delay) => tokio::time::sleep(delay).await,
            // Lets what was sent before leave on its own.
            None if self.sent > 0 => tokio::task::yield_now().await,
            None => {}
        }
        self.sent += 1;
        match self.events.pop_front() {
            Some(event) => Some((Ok(event), self)),
            None => {
                self.receipt.complete();
                None
            }
        }
    }
}
