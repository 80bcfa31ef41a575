//! Text-embed parses as no tool call: what it writes has no pair, no call and no result in any dialect, and
//! the assistant is never shown saying what it called.

use super::anything::{framed, frames};
use super::draft::body;
use super::entries::histories;
use super::plan::{Scope, plans};
use super::{cases, decode, encode};
use proptest::prelude::*;
use proptest::sample::select;
use throughline_core::{
    Ask, Dialect, EmbedForm, Entry, Input, Kind, Ledger, Role, Rules, Strategy as Shown, Target, joined_text,
};

fn forms() -> impl Strategy<Value = EmbedForm> {
    select(vec![EmbedForm::Plain, EmbedForm::Comments])
}

/// Sends the request as text and reads it again as the target would.
fn embedded(ask: &Ask, form: EmbedForm, rules: &Rules) -> (String, Ask) {
    let sent = encode(ask, &Target { strategy: Shown::TextEmbed(form), ..Target::new(rules) });
    let again = decode(rules.dialect, &sent);
    (sent, again)
}

fn check_no_calls(sent: &str, again: &Ask) -> Result<(), TestCaseError> {
    let ledger = Ledger::of(&again.entries);
    prop_assert!(ledger.pairs().is_empty() && ledger.mismatches().is_empty(), "{}", sent);
    let is_tool = |entry: &Entry| matches!(entry.kind, Kind::Called(_) | Kind::Returned(_));
    prop_assert!(!again.entries.iter().any(is_tool), "{}", sent);
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn whatever_the_history_no_call_is_read_again(
        entries in histories(),
        frame in frames(),
        form in forms(),
    ) {
        let ask = framed(frame, entries);
        for rules in Rules::built_in() {
            let (sent, again) = embedded(&ask, form, &rules);
            check_no_calls(&sent, &again)?;
        }
    }

    #[test]
    fn the_assistant_never_says_what_it_called(
        plan in plans(Scope { any_input: true, media_in_results: true, blank: false }),
        dialect in select(Dialect::ALL.to_vec()),
        form in forms(),
    ) {
        let ask = decode(dialect, &body(dialect, &plan, false));
        for rules in Rules::built_in() {
            let (sent, again) = embedded(&ask, form, &rules);
            check_no_calls(&sent, &again)?;
            let said = again.entries.iter().filter_map(Entry::as_said);
            for said in said.filter(|said| said.role == Role::Assistant) {
                let text = joined_text(&said.parts);
                for call in ask.entries.iter().filter_map(Entry::as_call) {
                    let given = call.input.text();
                    prop_assert!(!text.contains(call.id.as_str()), "{} in {}", call.id, sent);
                    let is_telling = matches!(call.input, Input::Arguments(_)) && given.starts_with("{\"");
                    prop_assert!(!(is_telling && text.contains(given.as_str())), "{}", sent);
                }
            }
        }
    }
}
