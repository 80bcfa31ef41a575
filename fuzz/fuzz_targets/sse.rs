//! Any bytes as a stream of events: the same events however they are cut, and the same when written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_wire::sse::{SseDecoder, SseEvent, write_event};

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let whole = read(data, data.len().max(1));
    // Sizes that fall inside a line end, a field name and a character.
    for size in [1, 2, 3, 7] {
        assert_eq!(read(data, size), whole, "in pieces of {size}");
    }
    let mut written = String::new();
    for event in &whole {
        write_event(&mut written, event.name.as_deref(), &event.data);
    }
    assert_eq!(read(written.as_bytes(), written.len().max(1)), whole, "written again: {written:?}");
});

fn read(data: &[u8], size: usize) -> Vec<SseEvent> {
    let mut decoder = SseDecoder::new(LIMIT);
    let mut events = Vec::new();
    for piece in data.chunks(size) {
        decoder.feed(piece).expect("below the limit");
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    events.extend(std::iter::from_fn(|| decoder.finish()));
    events
}
