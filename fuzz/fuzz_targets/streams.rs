//! Any bytes as the stream of any dialect, passed on in every dialect.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use throughline_core::Dialect;
use throughline_fuzz::{mutate, streams};

fuzz_target!(|data: &[u8]| {
    for from in Dialect::ALL {
        let frames = streams::read(from, data, data.len().max(1));
        streams::check_frames(&frames);
        assert_eq!(
            streams::assembled(from, &streams::read(from, data, 5)),
            streams::assembled(from, &frames)
        );
        for to in Dialect::ALL {
            streams::check_written(to, &frames);
        }
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate_events(data, size, max_size, seed)
});
