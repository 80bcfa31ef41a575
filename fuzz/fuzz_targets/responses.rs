//! Any request body in the responses dialect, sent on to every kind of backend.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use throughline_core::Dialect;
use throughline_fuzz::{mutate, requests};

fuzz_target!(|data: &[u8]| requests::check(Dialect::Responses, data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});
