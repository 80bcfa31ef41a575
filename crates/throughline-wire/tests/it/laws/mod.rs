//! Laws of the translations: what must hold for any request and any stream.
//!
//! Bodies are written as text from random plans, entries and frames are drawn as they are, and every law is
//! tried on a thousand cases or more. The judges are independent of what they judge: an extractor of tool
//! pairs over plain JSON, the validators of the providers' rules, and checkers of event streams.

mod across;
mod answers;
mod anything;
mod broken;
mod draft;
mod embed;
mod entries;
mod events;
mod pairs;
mod plan;
mod provenance;
mod replies;
mod same_dialect;
mod stable;
mod streams;
mod texts;

use proptest::prelude::ProptestConfig;
use throughline_core::{Ask, Dialect, Rules, Target, prepare};
use throughline_wire::{decode_request, encode_request};

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

fn decode(dialect: Dialect, body: &str) -> Ask {
    decode_request(dialect, body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn encode(ask: &Ask, target: &Target<'_>) -> String {
    let (prompt, mut report) = prepare(ask, target);
    encode_request(&prompt, &mut report)
}

/// Translates a body for a backend with those rules, its history shown as it is.
fn translate(dialect: Dialect, body: &str, rules: &Rules) -> String {
    encode(&decode(dialect, body), &Target::new(rules))
}
