//! Requests, translated to each dialect.

use super::{check, inputs, name};
use crate::pretty::pretty;
use std::fmt::Write as _;
use throughline_core::{Dialect, Report, Rules, Target, prepare};
use throughline_testkit::validate::{Provider, validate};
use throughline_wire::{decode_request, encode_request, path};

const fn provider(dialect: Dialect) -> Provider {
    match dialect {
        Dialect::Chat => Provider::OpenAiChat,
        Dialect::Messages => Provider::Anthropic,
        Dialect::Responses => Provider::OpenAiResponses,
    }
}

fn shown_request(body: &str, from: Dialect, to: Dialect) -> String {
    let ask = decode_request(from, body).unwrap_or_else(|error| panic!("{error}"));
    let rules = Rules::of_dialect(to);
    let (prompt, mut report) = prepare(&ask, &Target::new(&rules));
    let body = encode_request(&prompt, &mut report);
    let mut shown = pretty(&body);
    shown.push_str("\n\n");
    shown.push_str(&shown_report(&report, from));
    for violation in validate(provider(to), &serde_json::from_str(&body).unwrap()) {
        let _ = writeln!(shown, "REJECTED {}: {} ({})", violation.place, violation.message, violation.rule);
    }
    shown
}

fn shown_report(report: &Report, dialect: Dialect) -> String {
    let mut shown = format!("{report}\n");
    for change in &report.changes {
        let _ =
            writeln!(shown, "{} {}: {}", change.action.name(), path(dialect, &change.subject), change.reason);
    }
    shown
}

fn check_requests(from: Dialect) {
    for input in inputs("requests", from) {
        let body = std::fs::read_to_string(&input).unwrap();
        for to in Dialect::ALL {
            check(&input, &format!("{}.{to}", name(&input)), &shown_request(&body, from, to));
        }
    }
}

#[test]
fn chat_requests() {
    check_requests(Dialect::Chat);
}

#[test]
fn messages_requests() {
    check_requests(Dialect::Messages);
}

#[test]
fn responses_requests() {
    check_requests(Dialect::Responses);
}
