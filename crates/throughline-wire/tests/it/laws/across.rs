//! Through another dialect and back: every tool pair keeps its name, its exact arguments, its result and
//! whether that was an error, in order.
//!
//! Two equivalences are ours and documented: no arguments may come back as an empty object, and several
//! texts of a result as one. The way leads through every built-in rule set, not only through the dialects'
//! own, since those of some backends change more: ids of nine characters, results of one string.

use super::draft::body;
use super::pairs::pairs;
use super::plan::{Plan, Scope, plans};
use super::{cases, translate};
use proptest::prelude::*;
use proptest::sample::select;
use throughline_core::{Dialect, Rules};

fn check(dialect: Dialect, plan: &Plan, through: &str) -> Result<(), TestCaseError> {
    let through = Rules::from_name(through).expect("built in");
    // A target that takes no files is told that there was one; there is no way back from that.
    let plan = if through.files { plan.clone() } else { plan.without_files() };
    let before = body(dialect, &plan, false);
    let between = translate(dialect, &before, &through);
    let after = translate(through.dialect, &between, &Rules::of_dialect(dialect));
    prop_assert_eq!(
        pairs(dialect, &before),
        pairs(dialect, &after),
        "\nfrom {}\nthrough {}\nto {}",
        before,
        between,
        after
    );
    Ok(())
}

/// The name of any built-in rule set of another dialect.
fn rules_beside(dialect: Dialect) -> impl Strategy<Value = String> {
    let others = Rules::built_in().into_iter().filter(|rules| rules.dialect != dialect);
    select(others.map(|rules| rules.name.to_string()).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn pairs_of_a_chat_request_survive(
        plan in plans(Scope { any_input: true, media_in_results: false, blank: false }),
        through in rules_beside(Dialect::Chat),
    ) {
        check(Dialect::Chat, &plan, &through)?;
    }

    #[test]
    fn pairs_of_a_messages_request_survive(
        plan in plans(Scope { any_input: false, media_in_results: true, blank: false }),
        through in rules_beside(Dialect::Messages),
    ) {
        check(Dialect::Messages, &plan, &through)?;
    }

    #[test]
    fn pairs_of_a_responses_request_survive(
        plan in plans(Scope { any_input: true, media_in_results: true, blank: false }),
        through in rules_beside(Dialect::Responses),
    ) {
        check(Dialect::Responses, &plan, &through)?;
    }
}
