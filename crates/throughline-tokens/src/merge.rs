//! Byte pair encoding: how many tokens a piece becomes.
//!
//! The neighbours whose union ranks first are merged, the leftmost of equals first, until no union is a token.
//! Short pieces are scanned for the best pair; long ones keep their pairs in a heap, since scanning would take
//! time with the square of the length. What is longer than any text that people or programs write without a space is
//! merged in parts, so that memory is bounded and time grows with the length alone; each seam may cost a few tokens.

use crate::vocabulary::Ranks;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Up to this length scanning is faster than a heap.
const SCANNED_MAX: usize = 96;

/// Pieces up to this length are merged whole, and counted exactly.
const WHOLE_MAX: usize = 16 * 1024;

/// Longer ones are merged in parts of this length.
const PART: usize = 4 * 1024;

/// Returns how many tokens a piece becomes.
pub(crate) fn count(ranks: &Ranks, piece: &[u8]) -> usize {
    if piece.len() <= WHOLE_MAX {
        return count_whole(ranks, piece);
    }
    let (mut total, mut last) = (0, (&piece[..0], 0));
    for part in piece.chunks(PART) {
        // What is this long is mostly one thing over and over.
        if part != last.0 {
            last = (part, count_whole(ranks, part));
        }
        total += last.1;
    }
    total
}

fn count_whole(ranks: &Ranks, piece: &[u8]) -> usize {
    if piece.len() < 2 || ranks.rank(piece).is_some() {
        return usize::from(!piece.is_empty());
    }
    if piece.len() <= SCANNED_MAX { scanned(ranks, piece) } else { heaped(ranks, piece) }
}

fn scanned(ranks: &Ranks, piece: &[u8]) -> usize {
    // Where each part begins, and the rank of its union with the next; the last entry is the end.
    let mut parts: [(usize, u32); SCANNED_MAX + 1] = [(0, u32::MAX); SCANNED_MAX + 1];
    let mut len = piece.len() + 1;
    let rank = |from: usize, to: usize| ranks.rank(&piece[from..to]).unwrap_or(u32::MAX);
    for (at, part) in parts[..len].iter_mut().enumerate() {
        *part = (at, if at + 2 <= piece.len() { rank(at, at + 2) } else { u32::MAX });
    }
    loop {
        let Some((at, &(_, best))) = parts[..len].iter().enumerate().min_by_key(|(_, part)| part.1) else {
            return len - 1;
        };
        if best == u32::MAX {
            return len - 1;
        }
        parts.copy_within(at + 2..len, at + 1);
        len -= 1;
        let union = |at: usize| if at + 2 < len { rank(parts[at].0, parts[at + 2].0) } else { u32::MAX };
        let (here, before) = (union(at), at.checked_sub(1).map(union));
        parts[at].1 = here;
        if let Some(before) = before {
            parts[at - 1].1 = before;
        }
    }
}

fn heaped(ranks: &Ranks, piece: &[u8]) -> usize {
    let end = piece.len();
    // The part that begins at each byte: where the next one begins, and where the one before it does.
    let mut next: Vec<usize> = (1..=end).collect();
    let mut before: Vec<Option<usize>> = (0..end).map(|at| at.checked_sub(1)).collect();
    let mut is_part = vec![true; end];
    let mut pairs = BinaryHeap::new();
    let pair = |next: &[usize], at: usize| {
        let second = next[at];
        let to = *next.get(second)?;
        ranks.rank(&piece[at..to]).map(|rank| Reverse((rank, at, to)))
    };
    pairs.extend((0..end).filter_map(|at| pair(&next, at)));
    let mut count = end;
    while let Some(Reverse((_, at, to))) = pairs.pop() {
        // A pair is stale if one of its parts has been merged since.
        if !is_part[at] || next.get(next[at]) != Some(&to) {
            continue;
        }
        is_part[next[at]] = false;
        next[at] = to;
        if let Some(after) = before.get_mut(to) {
            *after = Some(at);
        }
        count -= 1;
        pairs.extend(pair(&next, at));
        pairs.extend(before[at].and_then(|at| pair(&next, at)));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use proptest::prelude::*;

    #[test]
    fn a_long_piece_is_merged_in_parts_and_a_seam_costs_a_few_tokens() {
        let ranks = Vocabulary::O200k.ranks();
        let piece = b"abcdefghij".repeat(WHOLE_MAX / 5);
        let (in_parts, whole) = (count(ranks, &piece), heaped(ranks, &piece));
        assert!(in_parts.abs_diff(whole) <= 4 * piece.len() / PART, "{in_parts} {whole}");
        let longest = &piece[..WHOLE_MAX];
        assert_eq!(count(ranks, longest), heaped(ranks, longest));
    }

    proptest! {
        #[test]
        fn both_ways_of_merging_agree(piece in "[a-c ]{2,96}|[!-~]{2,96}|\\PC{1,24}") {
            prop_assume!(piece.len() <= SCANNED_MAX && piece.len() >= 2);
            for vocabulary in Vocabulary::ALL {
                let ranks = vocabulary.ranks();
                prop_assert_eq!(scanned(ranks, piece.as_bytes()), heaped(ranks, piece.as_bytes()));
            }
        }
    }
}
