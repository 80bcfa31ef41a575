//! Broken bodies normalise too: messages and items of a legal request dropped, doubled, moved and cut, read
//! by the decoder of its dialect and sent to each built-in target.

use super::anything::{STRATEGIES, violations};
use super::draft::{Draft, draft};
use super::plan::{Plan, Scope, plans};
use super::texts::Json;
use super::{cases, decode, encode};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use throughline_core::{Dialect, Rules, Target};

/// What is done to a list of messages or items, or to the blocks or calls of one.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    Drop(Index),
    Double(Index, Index),
    Move(Index, Index),
    /// Drops a block or a call of a message.
    DropInside(Index, Index),
    /// Doubles one.
    DoubleInside(Index, Index),
    /// Everything from here on is missing.
    Cut(Index),
}

pub(super) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let pair = || (any::<Index>(), any::<Index>());
    let damage = prop_oneof![
        3 => any::<Index>().prop_map(Damage::Drop),
        2 => pair().prop_map(|(from, to)| Damage::Double(from, to)),
        3 => pair().prop_map(|(from, to)| Damage::Move(from, to)),
        3 => pair().prop_map(|(message, at)| Damage::DropInside(message, at)),
        2 => pair().prop_map(|(message, at)| Damage::DoubleInside(message, at)),
        1 => any::<Index>().prop_map(Damage::Cut),
    ];
    prop::collection::vec(damage, 0..5)
}

fn break_list(list: &mut Vec<Json>, damage: &Damage) {
    // A bare string instead of a list has nothing to break.
    if list.is_empty() || matches!(list[0], Json::Text(_)) {
        return;
    }
    let at = |index: &Index| index.index(list.len());
    match damage {
        Damage::Drop(from) => drop(list.remove(at(from))),
        Damage::Double(from, to) => list.insert(at(to), list[at(from)].clone()),
        Damage::Move(from, to) => {
            let (from, to) = (at(from), at(to));
            let moved = list.remove(from);
            list.insert(to, moved);
        }
        Damage::Cut(from) => list.truncate(at(from)),
        Damage::DropInside(message, inside) => {
            let message = at(message);
            if let Some(list) = inner(&mut list[message]).filter(|list| list.len() > 1) {
                list.remove(inside.index(list.len()));
            }
        }
        Damage::DoubleInside(message, inside) => {
            let message = at(message);
            if let Some(list) = inner(&mut list[message]).filter(|list| !list.is_empty()) {
                list.push(list[inside.index(list.len())].clone());
            }
        }
    }
}

/// Returns the blocks or the calls of a message.
fn inner(message: &mut Json) -> Option<&mut Vec<Json>> {
    let Json::Object(fields) = message else { return None };
    fields.iter_mut().find_map(|(name, value)| match value {
        Json::List(list) if name == "tool_calls" || name == "content" => Some(list),
        _ => None,
    })
}

pub(super) fn broken(dialect: Dialect, plan: &Plan, damages: &[Damage], wild: bool) -> String {
    let mut dice = plan.dice();
    let mut draft: Draft = draft(dialect, plan, wild, &mut dice);
    damages.iter().for_each(|damage| break_list(&mut draft.list, damage));
    draft.print(&mut dice)
}

fn judge(rules: &Rules, before: &str, after: &str) -> Result<(), TestCaseError> {
    let violations = violations(rules, after);
    prop_assert!(violations.is_empty(), "{}: {violations:#?}\nfrom {before}\nto {after}", rules.name);
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn every_target_accepts_what_becomes_of_a_broken_request(
        plan in plans(Scope { any_input: true, media_in_results: true, blank: false }),
        damages in damages(),
        dialect in select(Dialect::ALL.to_vec()),
        strategy in select(STRATEGIES.to_vec()),
    ) {
        let before = broken(dialect, &plan, &damages, false);
        let ask = decode(dialect, &before);
        for rules in Rules::built_in() {
            let after = encode(&ask, &Target { strategy, ..Target::new(&rules) });
            judge(&rules, &before, &after)?;
        }
    }

    #[test]
    fn what_only_one_dialect_knows_troubles_no_other(
        plan in plans(Scope { any_input: true, media_in_results: true, blank: true }),
        damages in damages(),
        dialect in select(Dialect::ALL.to_vec()),
        strategy in select(STRATEGIES.to_vec()),
    ) {
        let before = broken(dialect, &plan, &damages, true);
        let ask = decode(dialect, &before);
        for rules in Rules::built_in().iter().filter(|rules| rules.dialect != dialect) {
            let after = encode(&ask, &Target { strategy, ..Target::new(rules) });
            judge(rules, &before, &after)?;
        }
    }
}
