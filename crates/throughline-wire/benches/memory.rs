//! How much memory a translation takes beyond the body it is given, at its peak.
//!
//! A bench of its own, since counting every allocation takes time. Run it with `just bench`.

#![expect(clippy::print_stdout, reason = "a bench is read on the terminal")]

mod sample;

use peak_alloc::PeakAlloc;
use std::sync::Arc;
use throughline_core::{Dialect, Rules, Target, prepare};
use throughline_wire::{decode_request, encode_request};

/// The most bytes in use, the translated request included, as a multiple of the body.
const AIM: f64 = 3.0;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() {
    println!("peak of the heap beyond the body, as a multiple of the body (aim: {AIM:.1})\n");
    println!("{:<24} {:>8} {:>8}  aim", "way", "KB", "ratio");
    for from in Dialect::ALL {
        let body = sample::request(from);
        let parsed = peak_of(|| drop(serde_json::from_str::<serde_json::Value>(&body)));
        line(&format!("{from}, as a Value"), parsed, &body, None);
        let shared: Arc<str> = body.as_str().into();
        for to in Dialect::ALL {
            line(&format!("{from} -> {to}"), peak_of(|| translate(from, to, &shared)), &body, Some(AIM));
        }
    }
}

fn translate(from: Dialect, to: Dialect, body: &Arc<str>) {
    let ask = decode_request(from, Arc::clone(body)).expect("the sample is well-formed");
    let rules = Rules::of_dialect(to);
    let (prompt, mut report) = prepare(&ask, &Target::new(&rules));
    drop(encode_request(&prompt, &mut report));
}

fn peak_of(work: impl FnOnce()) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    work();
    HEAP.peak_usage() - before
}

fn line(way: &str, bytes: usize, body: &str, aim: Option<f64>) {
    let ratio = bytes as f64 / body.len() as f64;
    let verdict = aim.map_or("-", |aim| if ratio <= aim { "ok" } else { "MISSED" });
    println!("{way:<24} {:>8} {ratio:>8.2}  {verdict}", bytes / 1024);
}
