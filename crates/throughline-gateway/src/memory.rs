//! The memory that all requests under way may take together.
//!
//! A request takes room as it arrives and unpacks, not by what it announces, and gives it back when its exchange
//! is over. Large requests share three quarters of the budget: while somebody fills those, everybody else is served.

use std::sync::{Arc, Mutex, PoisonError};

/// Requests up to this share of the budget may use all of it.
const SMALL_SHARE: usize = 32;

/// How many bytes an exchange takes for each byte of its request: as it came, as it is sent on, as it is recorded, and
/// what it takes to get from one to the next.
const COPIES: usize = 12;

/// How many bytes a JSON value takes, in the index and in what is decoded from it.
const VALUE_BYTES: usize = 512;

/// The memory that all requests under way may take together.
#[derive(Debug)]
pub struct MemoryBudget {
    usage: Mutex<Usage>,
}

#[derive(Clone, Copy, Debug)]
struct Usage {
    limit: usize,
    used: usize,
}

/// What one request has taken of a budget; given back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// Others have it for the moment.
    Busy,
    /// The request needs more than a single one may take.
    TooLarge {
        /// What a single request may take.
        limit: usize,
    },
}

/// Returns the memory that the exchange of a request takes, for its bytes and the JSON values in it.
#[must_use]
pub const fn exchange_bytes(body: usize, values: usize) -> usize {
    body.saturating_mul(COPIES).saturating_add(values.saturating_mul(VALUE_BYTES))
}

impl MemoryBudget {
    /// Returns a budget of so many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { usage: Mutex::new(Usage { limit, used: 0 }) }
    }

    /// Changes the limit; what is taken stays taken.
    pub fn set_limit(&self, limit: usize) {
        self.usage().limit = limit;
    }

    /// Returns how much is taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.usage().used
    }

    /// Opens a reservation that has nothing yet.
    #[must_use]
    pub fn reserve(self: &Arc<Self>) -> Reservation {
        Reservation { budget: Arc::clone(self), bytes: 0 }
    }

    fn usage(&self) -> std::sync::MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    /// Says whether a request that has `held` may have `bytes` in all.
    fn check(self, held: usize, bytes: usize) -> Result<(), NoRoom> {
        let large = self.limit - self.limit / 4;
        if bytes > large {
            return Err(NoRoom::TooLarge { limit: large });
        }
        let limit = if bytes <= self.limit / SMALL_SHARE { self.limit } else { large };
        if self.used - held + bytes > limit { Err(NoRoom::Busy) } else { Ok(()) }
    }
}

impl Reservation {
    /// Returns what it has taken.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes what is missing for `bytes` in all; gives back what is more than that.
    ///
    /// # Errors
    /// When there is no room; what was taken before stays taken.
    pub fn resize(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let mut usage = self.budget.usage();
        if bytes > self.bytes {
            usage.check(self.bytes, bytes)?;
        }
        usage.used = usage.used - self.bytes + bytes;
        drop(usage);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.usage().used -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_requests_leave_room_for_small_ones() {
        let budget = Arc::new(MemoryBudget::new(3200));
        let (mut first, mut second) = (budget.reserve(), budget.reserve());
        assert_eq!(first.resize(2000), Ok(()));
        assert_eq!(second.resize(401), Err(NoRoom::Busy));
        assert_eq!(second.resize(400), Ok(()));
        let mut small = budget.reserve();
        assert_eq!(small.resize(100), Ok(()), "a quarter is kept for small ones");
        assert_eq!(small.resize(101), Err(NoRoom::Busy), "and one that grows is small no more");
        drop(first);
        assert_eq!(small.resize(101), Ok(()));
        drop((second, small));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_never_fits_is_told_apart_from_what_does_not_fit_now() {
        let budget = Arc::new(MemoryBudget::new(400));
        let mut alone = budget.reserve();
        assert_eq!(alone.resize(301), Err(NoRoom::TooLarge { limit: 300 }));
        assert_eq!(alone.resize(300), Ok(()));
        assert_eq!(alone.resize(20), Ok(()), "what is not needed any more is given back");
        assert_eq!(budget.used(), 20);
    }

    #[test]
    fn a_smaller_limit_holds_for_whoever_comes_next() {
        let budget = Arc::new(MemoryBudget::new(400));
        let mut before = budget.reserve();
        assert_eq!(before.resize(300), Ok(()));
        budget.set_limit(200);
        assert_eq!(budget.reserve().resize(6), Err(NoRoom::Busy));
        drop(before);
        assert_eq!(budget.reserve().resize(150), Ok(()));
    }
}
