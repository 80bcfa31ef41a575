//! Counts of tokens, and who counts them.
//!
//! The core has no tokenizer: sizes of entries are handed in, and whoever plans hands in a [`Count`] for the
//! texts that come into being on the way.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens(pub u64);

/// Counts the tokens of a text.
pub trait Count {
    /// Returns how many tokens `text` has.
    fn count(&self, text: &str) -> Tokens;

    /// Returns what an entry takes beside its text: ids, names, the marks around it.
    fn around_entry(&self) -> Tokens {
        Tokens(8)
    }
}

impl<F: Fn(&str) -> u64> Count for F {
    fn count(&self, text: &str) -> Tokens {
        Tokens(self(text))
    }
}

impl Tokens {
    /// Returns what is left when `other` is taken away; nothing, if that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns that many hundredths of it.
    #[must_use]
    pub const fn percent(self, percent: u64) -> Self {
        Self(self.0.saturating_mul(percent) / 100)
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(tokens: I) -> Self {
        tokens.fold(Self(0), Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
