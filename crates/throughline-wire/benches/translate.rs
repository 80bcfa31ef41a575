//! How long requests take from dialect to dialect, against `serde_json` reading the same bytes into a
//! `Value` and printing it. Run it with `just bench`.

#![expect(clippy::disallowed_types, reason = "a bench reads the clock")]

mod rounds;
mod sample;

use rounds::{Rounds, parse_and_print};
use std::hint::black_box;
use throughline_core::{Ask, Dialect, Rules, Target, prepare};
use throughline_wire::{decode_request, encode_request};

/// The most that reading a request may take.
const DECODE_AIM: f64 = 1.0;

/// The most that reading it, preparing it and writing it may take.
const WHOLE_WAY_AIM: f64 = 2.0;

fn main() {
    let mut rounds = Rounds::default();
    for from in Dialect::ALL {
        let body = sample::request(from);
        let size = body.len() / 1024;
        let text = body.clone();
        rounds.yardstick(format!("{from}: serde_json, {size} KB"), move || parse_and_print(&text));
        let text = body.clone();
        rounds.case(format!("{from}: decode"), Some(DECODE_AIM), move || {
            black_box(decoded(from, black_box(&text)));
        });
        for to in Dialect::ALL {
            let (text, rules) = (body.clone(), Rules::of_dialect(to));
            rounds.case(format!("{from} -> {to}"), Some(WHOLE_WAY_AIM), move || {
                let ask = decoded(from, black_box(&text));
                let (prompt, mut report) = prepare(&ask, &Target::new(&rules));
                black_box(encode_request(&prompt, &mut report));
            });
        }
    }
    rounds.run();
}

fn decoded(dialect: Dialect, body: &str) -> Ask {
    decode_request(dialect, body).expect("the sample is well-formed")
}
