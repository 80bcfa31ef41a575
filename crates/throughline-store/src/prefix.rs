//! The longest known beginning of a resent history, in few lookups.
//!
//! Whoever knows an entry knows all that came before it, so the known chains stand in front of the unknown
//! ones. A client that resends three hundred entries adds one or two: the search goes from the end, in
//! growing steps, and halves what is left. It takes one lookup where all is known, and never more than twice
//! the logarithm.

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
}
