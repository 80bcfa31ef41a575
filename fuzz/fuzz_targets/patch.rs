//! Any text as a patch: reading it ends, and what it does not change stays.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_tools::patch::{FilePatch, apply, parse};

fuzz_target!(|input: (&str, &str)| {
    let (patch, file) = input;
    let Ok(patch) = parse(patch) else { return };
    assert!(!patch.files.is_empty(), "a patch does something");
    for part in patch.files {
        let FilePatch::Update { hunks, .. } = part else { continue };
        assert_eq!(apply(file.as_bytes(), &[]).expect("nothing to fit"), file.as_bytes());
        // Whether it fits is chance; it must end, and not by a panic.
        let _ = apply(file.as_bytes(), &hunks);
    }
});
