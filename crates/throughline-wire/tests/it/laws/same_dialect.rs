//! There and back in one dialect: a legal request that needs no repair leaves as the JSON that it came as.

use super::draft::body;
use super::plan::{Scope, plans};
use super::texts::difference;
use super::{cases, translate};
use proptest::prelude::*;
use serde_json::Value;
use throughline_core::{Dialect, Rules};
use throughline_wire::json::Document;

/// How many cache marks the provider takes; a request with more loses some of them, and nothing else.
const CACHE_MARKS_MAX: usize = 4;

const CACHE_MARK: &str = "cache_control";

fn check(dialect: Dialect, before: &str) -> Result<(), TestCaseError> {
    let after = translate(dialect, before, &Rules::of_dialect(dialect));
    same(before, &after)
}

fn same(before: &str, after: &str) -> Result<(), TestCaseError> {
    let [before, after] = [before, after].map(|text| Document::parse(text).expect("JSON"));
    if let Some(difference) = difference(before.root(), after.root()) {
        return Err(TestCaseError::fail(format!("{difference}\nin {}\nto {}", before.text(), after.text())));
    }
    Ok(())
}

/// Takes the cache marks out; returns how many there were.
fn take_marks(value: &mut Value) -> usize {
    match value {
        Value::Array(items) => items.iter_mut().map(take_marks).sum(),
        Value::Object(fields) => {
            let own = usize::from(fields.remove(CACHE_MARK).is_some());
            own + fields.values_mut().map(take_marks).sum::<usize>()
        }
        _ => 0,
    }
}

fn check_messages(before: &str) -> Result<(), TestCaseError> {
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let mut unmarked = value(before);
    if take_marks(&mut unmarked) <= CACHE_MARKS_MAX {
        return check(Dialect::Messages, before);
    }
    let after = translate(Dialect::Messages, before, &Rules::of_dialect(Dialect::Messages));
    let mut left = value(&after);
    let marks = take_marks(&mut left);
    // Keys are counted as they are written, before a body is looked at more closely.
    let is_noticed = after.matches(CACHE_MARK).count() > CACHE_MARKS_MAX;
    prop_assert!(marks <= CACHE_MARKS_MAX || !is_noticed, "{marks} cache marks in {after}");
    same(&unmarked.to_string(), &left.to_string())
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn a_chat_request_leaves_as_it_came(
        plan in plans(Scope { any_input: true, media_in_results: false, blank: true }),
    ) {
        check(Dialect::Chat, &body(Dialect::Chat, &plan, true))?;
    }

    #[test]
    fn a_messages_request_leaves_as_it_came(
        plan in plans(Scope { any_input: false, media_in_results: true, blank: false }),
    ) {
        check_messages(&body(Dialect::Messages, &plan, true))?;
    }

    #[test]
    fn a_responses_request_leaves_as_it_came(
        plan in plans(Scope { any_input: true, media_in_results: true, blank: true }),
    ) {
        check(Dialect::Responses, &body(Dialect::Responses, &plan, true))?;
    }
}

/// The plans of these laws are judged too: a draft without wild things is one that a provider takes.
mod drafts {
    use super::*;
    use throughline_testkit::validate::{Provider, validate};

    fn check(dialect: Dialect, provider: Provider, body: &str) -> Result<(), TestCaseError> {
        let value = serde_json::from_str(body).expect("JSON");
        let violations = validate(provider, &value);
        prop_assert!(violations.is_empty(), "{dialect}: {violations:?}\nin {body}");
        Ok(())
    }

    proptest! {
        #![proptest_config(cases(1_000))]

        #[test]
        fn are_legal(
            plan in plans(Scope { any_input: true, media_in_results: false, blank: false }),
        ) {
            check(Dialect::Chat, Provider::OpenAiChat, &body(Dialect::Chat, &plan, false))?;
            check(Dialect::Messages, Provider::Anthropic, &body(Dialect::Messages, &plan, false))?;
            check(Dialect::Responses, Provider::OpenAiResponses, &body(Dialect::Responses, &plan, false))?;
        }
    }
}
