//! The tool loop: its scenes one by one, and the laws that hold in any of them.

use super::*;
use crate::{Input, Kind, Role};
use proptest::prelude::*;

const LIMITS: TurnLimits = TurnLimits { max_tool_calls: 100, retries: 2 };

fn call(id: &str) -> Call {
    let input = Input::Arguments("{}".into());
    Call {
        id: id.into(),
        item_id: Some(format!("fc_{id}").into()),
        name: "read".into(),
        namespace: None,
        input,
    }
}

fn called(ids: &[&str]) -> Vec<Entry> {
    ids.iter().map(|id| Entry::new(Kind::Called(call(id)))).collect()
}

fn stopped() -> Ending {
    Ending::Stopped(Stop::ToolCalls)
}

fn done(text: &str) -> (Outcome, Vec<Part>) {
    (Outcome::Ok, vec![Part::text(text)])
}

fn ids(settled: &[Settled]) -> Vec<&str> {
    settled.iter().map(|settled| settled.call.id.as_str()).collect()
}

/// Asks, and gives that answer.
fn answer(turn: &mut Turn, ids: &[&str], ending: &Ending) {
    assert!(matches!(turn.next_step(), Some(TurnStep::Ask { .. })));
    turn.handle_answer(&called(ids), ending);
}

/// Runs the next call, which must be that one.
fn run(turn: &mut Turn, id: &str) {
    assert_eq!(turn.next_step(), Some(TurnStep::Run(call(id))));
    assert_eq!(turn.next_step(), None, "nothing happens while a call is run");
    let (outcome, parts) = done(id);
    turn.handle_return(outcome, parts);
}

fn finished(turn: &mut Turn) -> (Vec<Settled>, &'static str) {
    let kept = match turn.next_step() {
        Some(TurnStep::Keep(kept)) => kept,
        Some(TurnStep::Finish(conclusion)) => return (Vec::new(), conclusion.word()),
        step => panic!("{step:?}"),
    };
    let Some(TurnStep::Finish(conclusion)) = turn.next_step() else { panic!("not finished") };
    assert_eq!(turn.next_step(), None);
    (kept, conclusion.word())
}

#[test]
fn calls_run_in_order_and_their_results_go_back_together() {
    let mut turn = Turn::new(LIMITS, []);
    answer(&mut turn, &["a", "b"], &stopped());
    run(&mut turn, "a");
    run(&mut turn, "b");
    let Some(TurnStep::Ask { results, again, offers_tools }) = turn.next_step() else { panic!("no ask") };
    assert_eq!((ids(&results), again, offers_tools), (vec!["a", "b"], false, true));
    turn.handle_answer(&[Entry::said(Role::Assistant, "done")], &Ending::Stopped(Stop::EndTurn));
    assert_eq!(finished(&mut turn), (Vec::new(), "completed"));
}

#[test]
fn a_call_that_is_announced_twice_runs_once() {
    let mut turn = Turn::new(LIMITS, []);
    let mut entries = called(&["a", "a"]);
    // The same item under another call id is the same call as well.
    let same_item = Call { id: "other".into(), ..call("a") };
    entries.push(Entry::new(Kind::Called(same_item)));
    assert!(turn.next_step().is_some());
    turn.handle_answer(&entries, &stopped());
    run(&mut turn, "a");
    assert!(matches!(turn.next_step(), Some(TurnStep::Ask { results, .. }) if results.len() == 1));
}

#[test]
fn an_id_that_a_later_answer_uses_again_is_another_call() {
    let mut turn = Turn::new(LIMITS, []);
    answer(&mut turn, &["a"], &stopped());
    run(&mut turn, "a");
    answer(&mut turn, &["a"], &stopped());
    run(&mut turn, "a");
    assert_eq!(turn.runs(), 2);
}

#[test]
fn two_calls_under_one_id_both_run() {
    let other = Call { name: "write".into(), ..call("a") };
    let mut turn = Turn::new(LIMITS, []);
    assert!(matches!(turn.next_step(), Some(TurnStep::Ask { .. })));
    let entries = [call("a"), other.clone(), call("a")].map(|call| Entry::new(Kind::Called(call)));
    turn.handle_answer(&entries, &stopped());
    run(&mut turn, "a");
    assert_eq!(turn.next_step(), Some(TurnStep::Run(other)));
}

#[test]
fn the_cap_in_the_middle_of_a_batch_closes_the_rest_and_lets_the_model_sum_up() {
    let mut turn = Turn::new(TurnLimits { max_tool_calls: 1, ..LIMITS }, []);
    answer(&mut turn, &["a", "b", "c"], &stopped());
    run(&mut turn, "a");
    let Some(TurnStep::Ask { results, offers_tools, .. }) = turn.next_step() else { panic!("no ask") };
    assert_eq!(ids(&results), ["a", "b", "c"]);
    assert_eq!(results[1].settlement, Settlement::Closed(Closing::Limit));
    assert!(!offers_tools);
    turn.handle_answer(&called(&["d"]), &stopped());
    let (kept, word) = finished(&mut turn);
    assert_eq!((ids(&kept), word), (vec!["d"], "limited"));
}

#[test]
fn a_cancel_in_the_middle_of_a_tool_closes_the_rest() {
    let mut turn = Turn::new(LIMITS, []);
    answer(&mut turn, &["a", "b"], &stopped());
    assert!(matches!(turn.next_step(), Some(TurnStep::Run(_))));
    turn.handle_cancel();
    assert_eq!(turn.next_step(), None, "the tool still has to say what became of it");
    turn.handle_return(Outcome::Interrupted, vec![Part::text("stopped")]);
    let (kept, word) = finished(&mut turn);
    assert_eq!((ids(&kept), word), (vec!["a", "b"], "cancelled"));
    assert_eq!(kept[1].settlement, Settlement::Closed(Closing::Cancelled));
}

#[test]
fn what_was_cut_short_is_not_run() {
    for (ending, word) in [
        (Ending::Stopped(Stop::MaxTokens), "incomplete"),
        (Ending::Stopped(Stop::Filtered), "incomplete"),
        (Ending::Cancelled, "cancelled"),
        (Ending::Failed(Failure::new(FailureKind::InvalidRequest, "no")), "failed"),
    ] {
        let mut turn = Turn::new(LIMITS, []);
        answer(&mut turn, &["a"], &ending);
        let (kept, said) = finished(&mut turn);
        assert_eq!((ids(&kept), said), (vec!["a"], word), "{ending:?}");
        assert!(kept[0].outcome() == Outcome::Interrupted && turn.runs() == 0);
    }
}

#[test]
fn a_broken_answer_is_asked_for_again_with_the_same_results_and_then_ends_as_broken() {
    let mut turn = Turn::new(LIMITS, []);
    answer(&mut turn, &["a"], &stopped());
    run(&mut turn, "a");
    for again in [false, true, true] {
        let step = turn.next_step();
        let Some(TurnStep::Ask { results, again: is_again, .. }) = step else { panic!("{step:?}") };
        assert_eq!((ids(&results), is_again), (vec!["a"], again));
        turn.handle_answer(&called(&["b"]), &Ending::Broken);
    }
    let (kept, word) = finished(&mut turn);
    assert_eq!((ids(&kept), word), (vec!["b"], "broken"));
    assert_eq!(turn.runs(), 1, "no tool runs a second time");
}

#[test]
fn a_call_that_was_left_open_is_unknown_and_does_not_run_again() {
    let mut turn = Turn::new(LIMITS, [call("lost")]);
    let Some(TurnStep::Ask { results, .. }) = turn.next_step() else { panic!("no ask") };
    assert_eq!(results[0].outcome(), Outcome::Unknown);
    turn.handle_failure(Failure::new(FailureKind::Backend, "away"));
    assert_eq!(finished(&mut turn), (Vec::new(), "failed"));
}

#[test]
fn what_the_gateway_answers_itself_is_nobody_elses_to_run() {
    let own = Call { namespace: Some(Entry::OWN_TOOLS.into()), ..call("a") };
    let mut turn = Turn::new(LIMITS, []);
    assert!(turn.next_step().is_some());
    turn.handle_answer(&[Entry::new(Kind::Called(own))], &stopped());
    assert_eq!(finished(&mut turn), (Vec::new(), "completed"));
}

/// What happens next in a random turn.
#[derive(Clone, Debug)]
enum Fact {
    Answer(Vec<u8>, u8),
    Fail,
    Cancel,
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        6 => (prop::collection::vec(0_u8..6, 0..5), 0_u8..6).prop_map(|(calls, end)| Fact::Answer(calls, end)),
        1 => Just(Fact::Fail),
        1 => Just(Fact::Cancel),
    ]
}

fn ending(number: u8) -> Ending {
    match number {
        0..=2 => stopped(),
        3 => Ending::Stopped(Stop::MaxTokens),
        4 => Ending::Broken,
        _ => Ending::Cancelled,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Every call of an answer that stands has one result, in its order, and no turn runs more than it may.
    #[test]
    fn each_call_is_settled_once_and_in_order(facts in prop::collection::vec(fact(), 1..12), cap in 0_u32..6) {
        let mut turn = Turn::new(TurnLimits { max_tool_calls: cap, retries: 1 }, []);
        let mut facts = facts.into_iter();
        let mut awaited: Vec<String> = Vec::new();
        let (mut runs, mut is_over) = (0, false);
        while let Some(step) = turn.next_step() {
            prop_assert!(!is_over, "nothing follows the end");
            match step {
                TurnStep::Ask { results, again, .. } => {
                    if !again {
                        prop_assert_eq!(ids(&results), awaited.iter().map(String::as_str).collect::<Vec<_>>());
                    }
                    let before = std::mem::take(&mut awaited);
                    match facts.next() {
                        Some(Fact::Answer(calls, end)) => {
                            let names: Vec<String> = calls.iter().map(u8::to_string).collect();
                            let names: Vec<&str> = names.iter().map(String::as_str).collect();
                            turn.handle_answer(&called(&names), &ending(end));
                            let mut once: Vec<String> = Vec::new();
                            for name in names {
                                if !once.iter().any(|known| known == name) {
                                    once.push(name.to_owned());
                                }
                            }
                            let repeats = matches!(turn.phase, Phase::Due { again: true });
                            awaited = if repeats { before } else { once };
                        }
                        Some(Fact::Cancel) => {
                            turn.handle_cancel();
                            turn.handle_answer(&[], &Ending::Cancelled);
                        }
                        Some(Fact::Fail) | None => {
                            turn.handle_failure(Failure::new(FailureKind::Backend, "away"));
                        }
                    }
                }
                TurnStep::Run(call) => {
                    runs += 1;
                    prop_assert!(awaited.contains(&call.id.to_string()));
                    turn.handle_return(Outcome::Ok, Vec::new());
                }
                TurnStep::Keep(kept) => {
                    prop_assert_eq!(ids(&kept), awaited.iter().map(String::as_str).collect::<Vec<_>>());
                }
                TurnStep::Finish(_) => is_over = true,
            }
        }
        prop_assert!(is_over && runs <= cap && runs == turn.runs());
    }
}
