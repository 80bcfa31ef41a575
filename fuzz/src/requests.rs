//! Laws of requests: whatever was read can be written for any backend, is JSON, can be read again, and has
//! no call without a result nor a result without its call.

use throughline_core::{Ask, Dialect, EmbedForm, Kind, Ledger, Rules, Strategy, Target, prepare};
use throughline_wire::json::Document;
use throughline_wire::{decode_document, decode_request, encode_request};

const STRATEGIES: [Strategy; 3] =
    [Strategy::Native, Strategy::TextEmbed(EmbedForm::Plain), Strategy::TextEmbed(EmbedForm::Comments)];

/// Reads a request and sends it everywhere.
pub fn check(dialect: Dialect, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(ask) = decode_request(dialect, text) else { return };
    for rules in Rules::built_in() {
        for strategy in STRATEGIES {
            send(&ask, &rules, strategy);
        }
    }
}

fn send(ask: &Ask, rules: &Rules, strategy: Strategy) {
    let target = Target { strategy, ..Target::new(rules) };
    let (prompt, mut report) = prepare(ask, &target);
    let body = encode_request(&prompt, &mut report);
    let document = Document::parse(body.as_str()).unwrap_or_else(|error| panic!("{error}: {body}"));
    let again = decode_document(rules.dialect, &document).unwrap_or_else(|error| panic!("{error}: {body}"));
    if !leans_on_the_backend(ask, rules) {
        let ledger = Ledger::of(&again.entries);
        assert!(ledger.mismatches().is_empty(), "{:?} to {} in {body}", ledger.mismatches(), rules.name);
    }
    if strategy != Strategy::Native {
        let has_tool_items = again.entries.iter().any(|entry| matches!(entry.kind, Kind::Called(_)));
        assert!(!has_tool_items, "a call although tool history is text: {body}");
    }
}

/// Says whether the other half of a pair may be with the backend.
fn leans_on_the_backend(ask: &Ask, rules: &Rules) -> bool {
    let refers = || ask.entries.iter().any(|entry| matches!(entry.kind, Kind::Reference { .. }));
    ask.dialect == rules.dialect && (ask.previous.is_some() || ask.conversation.is_some() || refers())
}
