//! How much is taken from a server: of one message, between two calls, and of its list of tools.
//!
//! A server that says more is not listened to any further. The call under way is told so, and the next one starts the
//! server again.

use super::connection::MCP_MESSAGE_BYTES_MAX;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes that a server may write between the beginnings of two calls, whatever they are.
const BYTES_PER_CALL_MAX: usize = 64 << 20;

/// What a server did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// A message without end.
    Message,
    /// Too much of anything.
    Flood,
}

/// How much a server has written, as its connection and whoever calls it see it.
#[derive(Debug, Default)]
pub(super) struct Meter {
    since_call: AtomicUsize,
    excess: AtomicU8,
}

impl Meter {
    /// Notes that a call begins.
    pub(super) fn begin_call(&self) {
        self.since_call.store(0, Ordering::Relaxed);
        self.excess.store(0, Ordering::Relaxed);
    }

    /// Returns why the server is not listened to any more.
    pub(super) fn excess(&self) -> Option<Excess> {
        match self.excess.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Excess::Message),
            _ => Some(Excess::Flood),
        }
    }

    /// Notes what the server did wrong, and returns it as an error of reading.
    pub(super) fn fail(&self, excess: Excess) -> io::Error {
        let number = match excess {
            Excess::Message => 1,
            Excess::Flood => 2,
        };
        self.excess.store(number, Ordering::Relaxed);
        io::Error::new(io::ErrorKind::FileTooLarge, excess.to_string())
    }
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message => write!(f, "it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes"),
            Self::Flood => write!(f, "it wrote more than {BYTES_PER_CALL_MAX} bytes"),
        }
    }
}

/// What a server writes, a message on each line, up to the first excess.
pub(super) struct BoundedLines<R> {
    output: R,
    meter: Arc<Meter>,
    line: usize,
}

impl<R> BoundedLines<R> {
    pub(super) const fn new(output: R, meter: Arc<Meter>) -> Self {
        Self { output, meter, line: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.output).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled {
            let read = &buffer.filled()[before..];
            let end = memchr::memrchr(b'\n', read);
            // What is longer than a message may be is longer than one read brings.
            let first = memchr::memchr(b'\n', read).unwrap_or(read.len());
            let is_too_long = self.line + first > MCP_MESSAGE_BYTES_MAX;
            self.line = end.map_or(self.line + read.len(), |end| read.len() - end - 1);
            let so_far = self.meter.since_call.fetch_add(read.len(), Ordering::Relaxed) + read.len();
            if is_too_long {
                return Poll::Ready(Err(self.meter.fail(Excess::Message)));
            }
            if so_far > BYTES_PER_CALL_MAX {
                return Poll::Ready(Err(self.meter.fail(Excess::Flood)));
            }
        }
        polled
    }
}
