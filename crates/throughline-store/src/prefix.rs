//! The longest known beginning of a resent history, in few lookups.
//!
//! Whoever knows an entry knows all that came before it, so the known chains stand in front of the unknown
//! ones. A client that resends three hundred entries adds one or two: the search goes from the end, in
//! growing steps, and halves what is left. It takes one lookup where all is known, and never more than twice
//! the logarithm. Where each lookup is a journey to a server, many are made at once ([`Range`]): one journey is
//! enough where little is new, and three are for any history that fits in a request.

use crate::Chain;

/// Returns the last of `chains` that `look_up` finds, with how many entries that makes.
///
/// Before the first word of a conversation there is nothing to be known; that does not make what follows
/// unknown.
pub(crate) fn longest_known_chain<T, E>(
    chains: &[Chain],
    look_up: impl FnMut(Chain) -> Result<Option<T>, E>,
) -> Result<Option<(usize, T)>, E> {
    let silent = chains.iter().take_while(|chain| **chain == Chain::ROOT).count();
    let found = longest_known(&chains[silent..], look_up)?;
    Ok(found.map(|(known, found)| (silent + known, found)))
}

/// Returns the last of `items` that `look_up` finds, with how many items that makes.
fn longest_known<I: Copy, T, E>(
    items: &[I],
    mut look_up: impl FnMut(I) -> Result<Option<T>, E>,
) -> Result<Option<(usize, T)>, E> {
    let mut unknown = items.len();
    let mut step = 1;
    let mut found = None;
    while found.is_none() && unknown > 0 {
        let at = unknown.saturating_sub(step);
        match look_up(items[at])? {
            Some(known) => found = Some((at + 1, known)),
            None => unknown = at,
        }
        step *= 2;
    }
    let Some(mut best) = found else { return Ok(None) };
    while best.0 < unknown {
        let at = best.0 + (unknown - best.0) / 2;
        match look_up(items[at])? {
            Some(known) => best = (at + 1, known),
            None => unknown = at,
        }
    }
    Ok(Some(best))
}

/// How many of some items are known: at least and at most. Narrowed by looking up several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    known: usize,
    unknown: usize,
    is_first: bool,
}

/// So many are looked up at once.
const AT_ONCE: usize = 64;

/// So many of the last ones are looked up without gaps.
const LAST: usize = 16;

impl Range {
    /// Returns the range of `count` items of which nothing is known yet.
    pub const fn of(count: usize) -> Self {
        Self { known: 0, unknown: count, is_first: true }
    }

    /// Returns the items to look up now, the last first; none if nothing is left to find out.
    pub fn probes(&self) -> Vec<usize> {
        let (from, left) = (self.known, self.unknown - self.known);
        if left <= AT_ONCE {
            return (from..self.unknown).rev().collect();
        }
        if !self.is_first {
            return (1..=AT_ONCE).rev().map(|part| from + left * part / (AT_ONCE + 1)).collect();
        }
        let mut probes: Vec<usize> = (self.unknown - LAST..self.unknown).rev().collect();
        let steps = std::iter::successors(Some(LAST * 2), |step| Some(step * 2));
        probes.extend(steps.take_while(|step| *step < left).map(|step| self.unknown - step));
        probes.push(from);
        probes
    }

    /// Takes note of which of the `probes` was the first that is known.
    pub fn narrow(&mut self, probes: &[usize], found: Option<usize>) {
        let first_known = found.unwrap_or(probes.len());
        if let Some(at) = probes.get(first_known) {
            self.known = at + 1;
        }
        if let Some(before) = first_known.checked_sub(1) {
            self.unknown = probes[before];
        }
        self.is_first = false;
    }

    /// Returns how many are known, at least.
    pub const fn known(&self) -> usize {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(known: usize, of: usize) -> (Option<usize>, usize) {
        let items: Vec<usize> = (0..of).collect();
        let mut lookups = 0;
        let look_up = |item: usize| {
            lookups += 1;
            Ok::<_, Infallible>((item < known).then_some(item))
        };
        let found = longest_known(&items, look_up).unwrap();
        (found.map(|(count, _)| count), lookups)
    }

    #[test]
    fn every_length_is_found() {
        for of in 0..40 {
            for known in 0..=of {
                assert_eq!(found(known, of).0, (known > 0).then_some(known), "{known} of {of}");
            }
        }
    }

    #[test]
    fn what_is_known_whole_takes_one_lookup_and_a_new_end_a_few() {
        assert_eq!(found(3_000, 3_000), (Some(3_000), 1));
        assert!(found(2_998, 3_000).1 <= 4);
        assert!(found(1, 3_000).1 <= 24);
    }

    /// Returns how many are found to be known, and in how many journeys.
    fn found_at_once(known: usize, of: usize) -> (usize, usize) {
        let mut range = Range::of(of);
        let mut journeys = 0;
        loop {
            let probes = range.probes();
            if probes.is_empty() {
                return (range.known(), journeys);
            }
            assert!(probes.is_sorted_by(|a, b| a > b) && probes.len() <= AT_ONCE + LAST, "{probes:?}");
            journeys += 1;
            range.narrow(&probes, probes.iter().position(|at| *at < known));
        }
    }

    #[test]
    fn every_length_is_found_by_looking_up_several_at_once() {
        for of in [0, 1, 2, 15, 16, 17, 63, 64, 65, 66, 100, 300, 5_000] {
            for known in (0..=of).filter(|known| of < 400 || known % 97 == 0 || of - known < 99) {
                assert_eq!(found_at_once(known, of).0, known, "{known} of {of}");
            }
        }
    }

    #[test]
    fn a_new_end_takes_one_journey_and_anything_a_few() {
        assert_eq!(found_at_once(2_997, 3_000).1, 1);
        assert_eq!(found_at_once(0, 40).1, 1);
        for known in 0..10_000 {
            assert!(found_at_once(known, 10_000).1 <= 4, "{known}");
        }
    }
}
