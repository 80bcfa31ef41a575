//! How much of an answer is taken from a backend, and how long one may go on without getting anywhere.

use std::time::Duration;
use tokio::time::Instant;

/// The most bytes of the body of a refusal that are read; what stands behind them is left unread.
pub const REFUSAL_BYTES_MAX: usize = 256 << 10;

/// How long the body of a refusal may take to arrive; what came by then is read.
pub const REFUSAL_TIME_MAX: Duration = Duration::from_secs(30);

/// The most bytes of a listing of models.
pub const LISTING_BYTES_MAX: usize = 8 << 20;

/// How many times more bytes a stream may have than what is held of it at once: an event is mostly packaging.
const STREAM_FACTOR: usize = 8;

/// The most events of one stream.
pub const EVENTS_MAX: usize = 2_000_000;

/// The most events of one stream before it says anything.
pub const EVENTS_BEFORE_MAX: usize = 10_000;

/// The bounds of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerBounds {
    /// The most bytes that are held of it: of a whole answer, of one event, of all that a stream says.
    pub bytes: usize,
    /// How long it may go on without a complete event that says something.
    pub progress: Duration,
}

impl AnswerBounds {
    /// No bounds, for answers that the record has already.
    pub const NONE: Self = Self { bytes: usize::MAX, progress: Duration::MAX };

    /// Returns the most bytes that a stream may have in all.
    #[must_use]
    pub const fn stream_bytes(&self) -> usize {
        self.bytes.saturating_mul(STREAM_FACTOR)
    }

    /// Returns when an answer must have got further that did so last at `since`; never, if that is too far away.
    pub(super) fn deadline(&self, since: Instant) -> Option<Instant> {
        since.checked_add(self.progress)
    }
}
