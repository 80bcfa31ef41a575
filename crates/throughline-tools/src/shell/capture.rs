//! Output while it is produced: the beginning and the end are kept, and the rest is counted.

use std::collections::VecDeque;

/// What was kept of a stream of bytes.
#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    total: u64,
}

impl Capture {
    /// Returns a capture that keeps at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        let tail_max = bytes_max / 4;
        Self { head: Vec::new(), tail: VecDeque::new(), head_max: bytes_max - tail_max, tail_max, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.head_max - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Returns the bytes that were kept, and how many there were.
    pub(super) fn take(&mut self) -> (Vec<u8>, u64) {
        let mut bytes = std::mem::take(&mut self.head);
        bytes.extend(std::mem::take(&mut self.tail));
        (bytes, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ends_are_kept(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..20), max in 4_usize..100) {
            let mut capture = Capture::new(max);
            for chunk in &chunks {
                capture.push(chunk);
            }
            let all = chunks.concat();
            let (kept, total) = capture.take();
            prop_assert_eq!(total, all.len() as u64);
            if all.len() <= max {
                prop_assert_eq!(kept, all);
            } else {
                let head = max - max / 4;
                prop_assert_eq!(&kept[..head], &all[..head]);
                prop_assert_eq!(&kept[head..], &all[all.len() - max / 4..]);
            }
        }
    }
}
