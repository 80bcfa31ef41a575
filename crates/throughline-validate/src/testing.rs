//! How the validators' own tests speak: one rule, a body that breaks it, and the body put right.

use super::{Provider, validate};
use serde_json::Value;

/// Returns `base` with the members of `patch` put in; a null member takes one out.
pub(super) fn patched(mut base: Value, patch: Value) -> Value {
    let (Value::Object(members), Value::Object(changes)) = (&mut base, patch) else {
        panic!("both the base and the patch are objects");
    };
    for (key, value) in changes {
        if value.is_null() {
            members.shift_remove(&key);
        } else {
            members.insert(key, value);
        }
    }
    base
}

/// Asserts that `bad` breaks `rule` and nothing else, and that `good` breaks nothing.
#[track_caller]
pub(super) fn assert_rule(provider: Provider, rule: &str, bad: &Value, good: &Value) {
    let found = validate(provider, bad);
    assert!(!found.is_empty(), "{rule} was not noticed in {bad}");
    assert!(found.iter().all(|violation| violation.rule == rule), "not only {rule}: {found:#?}");
    assert_clean(provider, good);
}

/// Asserts that `good` breaks nothing.
#[track_caller]
pub(super) fn assert_clean(provider: Provider, good: &Value) {
    let found = validate(provider, good);
    assert!(found.is_empty(), "{found:#?} in {good}");
}
