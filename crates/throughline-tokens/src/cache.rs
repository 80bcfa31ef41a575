//! Counts that are known already, by a digest of the text.
//!
//! A history is sent again with each request, so that all but its end was counted before. Bounded: of two
//! generations the older one is forgotten when the younger is full, and what is asked for again moves to the
//! younger. A digest that two texts share would give one of them the other's count, no more.

use crate::Vocabulary;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};
use std::sync::{Mutex, PoisonError};

/// Shorter texts are counted faster than they are looked up.
const CACHED_BYTES_MIN: usize = 128;

/// How many texts a generation holds; about two megabytes for both.
const GENERATION_MAX: usize = 32_768;

type Key = (Vocabulary, u64, usize);
type Known = HashMap<Key, u64, BuildHasherDefault<DefaultHasher>>;

/// Counts that are known already.
#[derive(Debug, Default)]
pub struct Counts {
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: Known,
    old: Known,
}

impl Counts {
    /// Returns how many tokens a text takes, counting it only if it is not known.
    #[must_use]
    pub fn count(&self, vocabulary: Vocabulary, text: &str) -> u64 {
        if text.len() < CACHED_BYTES_MIN {
            return vocabulary.count(text);
        }
        let mut digest = DefaultHasher::new();
        digest.write(text.as_bytes());
        let key = (vocabulary, digest.finish(), text.len());
        if let Some(known) = self.locked(|generations| generations.find(&key)) {
            return known;
        }
        let count = vocabulary.count(text);
        self.locked(|generations| generations.insert(key, count));
        count
    }

    /// Returns how many texts are known.
    #[must_use]
    pub fn known(&self) -> usize {
        self.locked(|generations| generations.young.len() + generations.old.len())
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Generations) -> T) -> T {
        act(&mut self.generations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Generations {
    fn find(&mut self, key: &Key) -> Option<u64> {
        if let Some(known) = self.young.get(key) {
            return Some(*known);
        }
        let known = self.old.remove(key)?;
        self.insert(*key, known);
        Some(known)
    }

    fn insert(&mut self, key: Key, count: u64) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_after_it_was_counted() {
        let counts = Counts::default();
        let text = "fn main() { println!(); }\n".repeat(20);
        let first = counts.count(Vocabulary::O200k, &text);
        assert_eq!(first, Vocabulary::O200k.count(&text));
        assert_eq!(counts.known(), 1);
        assert_eq!(counts.count(Vocabulary::O200k, &text), first);
        assert_eq!(counts.known(), 1);
        assert_ne!(counts.count(Vocabulary::Cl100k, &text), 0);
        assert_eq!(counts.known(), 2, "each vocabulary has its own");
    }

    #[test]
    fn what_is_not_asked_for_is_forgotten_and_what_is_stays() {
        let mut generations = Generations::default();
        let key = |number: u64| (Vocabulary::O200k, number, 0);
        for number in 0..3 * GENERATION_MAX as u64 {
            assert_eq!(generations.find(&key(0)).is_some(), number > 0, "{number}");
            generations.insert(key(number), number);
        }
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION_MAX);
        assert_eq!(generations.find(&key(1)), None);
    }
}
