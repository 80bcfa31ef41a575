//! The connections that are open: how many, from where, and since when each does nothing.
//!
//! When there is no room for another, the one that has waited longest without a request under way makes room, and
//! one that never had a request admitted goes first: whoever only holds connections open shuts nobody out.

use crate::memory::{NoRoom, Reservation};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// An address other than this machine's may hold this part of all connections.
const SHARE_OF_AN_ADDRESS: usize = 2;

/// How often what is read is there until somebody takes it up: as it was read, and as the message that it becomes.
const COPIES_WHILE_READ: usize = 2;

/// The connections that are open.
#[derive(Debug, Default)]
pub struct Connections {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Arc<Connection>>,
}

/// A connection that counts as open as long as this is held.
#[derive(Debug)]
pub struct OpenConnection {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

/// What is known about one connection.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    address: IpAddr,
    activity: Mutex<Activity>,
    /// The memory for what was read and is not taken up yet, where nobody else accounts for it.
    meter: Mutex<Option<Reservation>>,
    evicted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Activity {
    /// How many requests are under way, up to the end of their answers.
    requests: usize,
    was_admitted: bool,
    /// When the last request ended, or the connection was opened.
    idle_since: Instant,
    /// When the first byte of a request came whose head is not complete.
    head_since: Option<Instant>,
    /// Since when the client takes nothing of what is written.
    stalled_since: Option<Instant>,
}

/// A request that is under way on a connection as long as this is held.
#[derive(Debug)]
pub struct RequestUnderWay(Arc<Connection>);

/// How long a client may take for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// To send the head of a request, from its first byte on.
    pub head: Duration,
    /// To begin another request.
    pub idle: Duration,
    /// To take anything of what is written.
    pub write: Duration,
}

/// What a client took too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// The head of a request.
    Head,
    /// Another request.
    Idle,
    /// Reading what is written.
    Write,
}

/// All connections are busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Connections {
    /// Counts a connection in, and closes another one where that is needed to stay below `limit`.
    ///
    /// # Errors
    /// When there are as many as there may be, and all of them are at work.
    pub fn open(self: &Arc<Self>, address: IpAddr, limit: usize) -> Result<OpenConnection, Full> {
        let address = address.to_canonical();
        let now = Instant::now();
        let mut table = self.table();
        let of_address = if address.is_loopback() { limit } else { (limit / SHARE_OF_AN_ADDRESS).max(1) };
        let held = table.open.values().filter(|open| open.address == address).count();
        if held >= of_address {
            table.evict(|open| open.address == address)?;
        } else if table.open.len() >= limit {
            table.evict(|_| true)?;
        }
        table.next += 1;
        let id = table.next;
        let activity = Activity {
            requests: 0,
            was_admitted: false,
            idle_since: now,
            head_since: None,
            stalled_since: None,
        };
        let (activity, meter, evicted) = (Mutex::new(activity), Mutex::default(), Notify::new());
        let connection = Arc::new(Connection { id, address, activity, meter, evicted });
        table.open.insert(id, Arc::clone(&connection));
        drop(table);
        Ok(OpenConnection { connections: Arc::clone(self), connection })
    }

    /// Returns how many connections are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.table().open.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the connection that is missed least among those that `may_go`.
    fn evict(&mut self, may_go: impl Fn(&Connection) -> bool) -> Result<(), Full> {
        let idle = self.open.values().filter(|open| may_go(open)).filter_map(|open| {
            let activity = *open.activity();
            (activity.requests == 0).then_some((activity.was_admitted, activity.idle_since, open.id))
        });
        let (.., id) = idle.min().ok_or(Full)?;
        if let Some(evicted) = self.open.remove(&id) {
            evicted.evicted.notify_one();
        }
        Ok(())
    }
}

impl OpenConnection {
    /// Returns what is known about it.
    #[must_use]
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Waits until it has to make room for another.
    pub async fn evicted(&self) {
        self.connection.evicted.notified().await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.connection.id);
    }
}

impl Connection {
    /// Notes that a request has begun: its head is complete.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> RequestUnderWay {
        let mut activity = self.activity();
        activity.requests += 1;
        activity.head_since = None;
        drop(activity);
        RequestUnderWay(Arc::clone(self))
    }

    /// Notes that a request was let in.
    pub fn admit(&self) {
        self.activity().was_admitted = true;
    }

    /// Has memory reserved from now on for whatever is read, until it is released: the parts of a WebSocket
    /// message are put together out of sight.
    pub fn meter(&self, reservation: Reservation) {
        *self.meter_of() = Some(reservation);
    }

    /// Gives memory back that was reserved for what was read.
    pub fn release(&self, bytes: usize) {
        if let Some(reservation) = &mut *self.meter_of() {
            let rest = reservation.bytes().saturating_sub(bytes * COPIES_WHILE_READ);
            // To give something back needs no room.
            let _ = reservation.resize(rest);
        }
    }

    fn reserve_read(&self, bytes: usize) -> Result<(), NoRoom> {
        match &mut *self.meter_of() {
            Some(reservation) => reservation.resize(reservation.bytes() + bytes * COPIES_WHILE_READ),
            None => Ok(()),
        }
    }

    fn meter_of(&self) -> MutexGuard<'_, Option<Reservation>> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what the client takes too long for, if it does.
    #[must_use]
    pub fn overdue(&self, now: Instant, patience: &Patience) -> Option<Overdue> {
        let activity = *self.activity();
        let is_over = |since: Instant, limit: Duration| now.saturating_duration_since(since) > limit;
        if activity.stalled_since.is_some_and(|since| is_over(since, patience.write)) {
            return Some(Overdue::Write);
        }
        if activity.requests > 0 {
            return None;
        }
        match activity.head_since {
            Some(since) => is_over(since, patience.head).then_some(Overdue::Head),
            None => is_over(activity.idle_since, patience.idle).then_some(Overdue::Idle),
        }
    }

    fn read_some(&self) {
        let mut activity = self.activity();
        if activity.requests == 0 && activity.head_since.is_none() {
            activity.head_since = Some(Instant::now());
        }
    }

    fn wrote(&self, has_progressed: bool) {
        let mut activity = self.activity();
        activity.stalled_since = match has_progressed {
            true => None,
            false => activity.stalled_since.or_else(|| Some(Instant::now())),
        };
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.requests -= 1;
        activity.idle_since = Instant::now();
    }
}

/// A socket that notes when something was read, and when nothing can be written.
#[derive(Debug)]
pub struct ObservedIo<S> {
    socket: S,
    connection: Arc<Connection>,
}

impl<S> ObservedIo<S> {
    /// Has a socket tell a connection what it does.
    pub const fn new(socket: S, connection: Arc<Connection>) -> Self {
        Self { socket, connection }
    }

    fn note<T>(&self, written: &Poll<io::Result<T>>) {
        self.connection.wrote(written.is_ready());
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        let read_now = buffer.filled().len() - before;
        if read_now > 0 {
            self.connection.read_some();
            if self.connection.reserve_read(read_now).is_err() {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    "no memory for this message",
                )));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, pieces);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ABROAD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(15),
        idle: Duration::from_secs(120),
        write: Duration::from_secs(60),
    };

    fn is_evicted(open: &OpenConnection) -> bool {
        !open.connections.table().open.contains_key(&open.connection.id)
    }

    #[test]
    fn the_one_that_never_had_a_request_admitted_makes_room() {
        let connections = Arc::new(Connections::default());
        let [admitted, silent, third] = [(); 3].map(|()| connections.open(HOME, 3).unwrap());
        admitted.connection().admit();
        third.connection().admit();
        let fourth = connections.open(HOME, 3).unwrap();
        assert!(is_evicted(&silent));
        drop(silent);
        assert_eq!(connections.count(), 3, "one that is gone already is not counted out again");
        let busy = [admitted.connection().begin(), third.connection().begin()];
        let fifth = connections.open(HOME, 3).unwrap();
        assert!(is_evicted(&fourth) && !is_evicted(&admitted) && !is_evicted(&fifth));
        let sixth = fifth.connection().begin();
        assert_eq!(connections.open(HOME, 3).map(drop), Err(Full), "what is at work is not cut off");
        drop((busy, sixth));
        let _seventh = connections.open(HOME, 3).unwrap();
        assert!(is_evicted(&fifth), "it was never admitted, so that it goes before the two that were");
    }

    #[test]
    fn one_address_abroad_does_not_take_everything() {
        let connections = Arc::new(Connections::default());
        let held = [(); 2].map(|()| connections.open(ABROAD, 4).unwrap());
        let _third = connections.open(ABROAD, 4).unwrap();
        assert!(is_evicted(&held[0]) && !is_evicted(&held[1]));
        let _home = [(); 2].map(|()| connections.open(HOME, 4).unwrap());
        assert_eq!(connections.count(), 4);
        assert!(!is_evicted(&held[1]));
    }

    #[tokio::test]
    async fn what_a_client_takes_too_long_for_is_known() {
        let connections = Arc::new(Connections::default());
        let open = connections.open(HOME, 1).unwrap();
        let connection = open.connection();
        let (mut near, far) = tokio::io::duplex(4);
        let mut far = ObservedIo::new(far, Arc::clone(connection));
        let overdue = |after| connection.overdue(Instant::now() + Duration::from_secs(after), &PATIENCE);
        assert_eq!((overdue(100), overdue(121)), (None, Some(Overdue::Idle)));
        near.write_all(b"GE").await.unwrap();
        far.read_exact(&mut [0; 2]).await.unwrap();
        assert_eq!((overdue(14), overdue(16)), (None, Some(Overdue::Head)));
        let request = connection.begin();
        assert_eq!(overdue(1000), None, "a request that is under way has limits of its own");
        far.write_all(b"full").await.unwrap();
        assert_eq!(overdue(1000), None);
        assert!(far.write(b"more").now_or_never().is_none());
        assert_eq!((overdue(59), overdue(61)), (None, Some(Overdue::Write)));
        near.read_exact(&mut [0; 4]).await.unwrap();
        far.write_all(b"more").await.unwrap();
        assert_eq!(overdue(1000), None);
        drop(request);
        assert_eq!((overdue(100), overdue(121)), (None, Some(Overdue::Idle)));
    }
}
