//! Anything normalises: whatever the history, each built-in target accepts what it is sent, and the text of
//! every result is in it.

use super::entries::{histories, judged_in, token};
use super::{cases, decode, encode};
use proptest::prelude::*;
use proptest::sample::select;
use throughline_core::{Ask, Dialect, EmbedForm, Entry, Kind, Rules, Strategy, Target};
use throughline_testkit::validate::{Provider, Violation, validate};

pub(super) const STRATEGIES: [Strategy; 3] =
    [Strategy::Native, Strategy::TextEmbed(EmbedForm::Plain), Strategy::TextEmbed(EmbedForm::Comments)];

/// Requests that a history is put into: without tools, with some, and with reasoning asked for.
const FRAMES: [(Dialect, &str); 8] = [
    (Dialect::Chat, r#"{"model":"m","messages":[]}"#),
    (
        Dialect::Chat,
        r#"{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"read"}},
            {"type":"custom","custom":{"name":"free"}}],"tool_choice":"required","reasoning_effort":"high"}"#,
    ),
    (Dialect::Messages, r#"{"model":"m","max_tokens":4096,"messages":[]}"#),
    (
        Dialect::Messages,
        r#"{"model":"m","max_tokens":4096,"messages":[],"thinking":{"type":"enabled","budget_tokens":1024},
            "tools":[{"name":"read","input_schema":{"type":"object"}}]}"#,
    ),
    (
        Dialect::Messages,
        r#"{"model":"m","max_tokens":4096,"messages":[],"tool_choice":{"type":"tool","name":"mcp.tool/x"},
            "tools":[{"name":"mcp.tool/x","input_schema":{"type":"object"}}]}"#,
    ),
    (Dialect::Responses, r#"{"model":"m","input":[]}"#),
    (
        Dialect::Responses,
        r#"{"model":"m","input":[],"reasoning":{"effort":"high"},"parallel_tool_calls":false,
            "tools":[{"type":"function","name":"read","parameters":null},{"type":"custom","name":"free"},
            {"type":"namespace","name":"space","tools":[{"type":"function","name":"read"}]}]}"#,
    ),
    (
        Dialect::Responses,
        r#"{"model":"m","input":[],"tools":[{"type":"web_search"}],"tool_choice":"required"}"#,
    ),
];

/// A request frame, by its number.
pub(super) fn frames() -> impl proptest::strategy::Strategy<Value = usize> {
    0..FRAMES.len()
}

/// Puts a history into a request; only a Responses request can refer to items that it does not hold.
pub(super) fn framed(frame: usize, mut entries: Vec<Entry>) -> Ask {
    let (dialect, body) = FRAMES[frame];
    entries.retain(|entry| dialect == Dialect::Responses || !matches!(entry.kind, Kind::Reference { .. }));
    Ask { entries, ..decode(dialect, body) }
}

pub(super) fn provider(rules: &Rules) -> Provider {
    Provider::from_name(&rules.name).unwrap_or_else(|| panic!("no provider for {}", rules.name))
}

pub(super) fn violations(rules: &Rules, body: &str) -> Vec<Violation> {
    let value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    validate(provider(rules), &value)
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn every_target_accepts_what_it_is_sent(
        entries in histories(),
        frame in frames(),
        strategy in select(STRATEGIES.to_vec()),
    ) {
        for rules in Rules::built_in() {
            let ask = framed(frame, judged_in(&entries, rules.dialect));
            let body = encode(&ask, &Target { strategy, ..Target::new(&rules) });
            let violations = violations(&rules, &body);
            prop_assert!(violations.is_empty(), "{}: {:#?}\nin {}", rules.name, violations, body);
        }
    }

    #[test]
    fn no_result_is_lost(
        entries in histories(),
        frame in frames(),
        strategy in select(STRATEGIES.to_vec()),
    ) {
        let ask = framed(frame, entries);
        let told = format!("{:?}", ask.entries);
        let tokens: Vec<String> =
            (0..ask.entries.len()).map(token).filter(|token| told.contains(token.as_str())).collect();
        for rules in Rules::built_in() {
            let body = encode(&ask, &Target { strategy, ..Target::new(&rules) });
            for token in &tokens {
                prop_assert!(body.contains(token.as_str()), "{}: {} is not in {}", rules.name, token, body);
            }
        }
    }
}
