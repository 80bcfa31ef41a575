//! Attempts, driven by scripted backends. No clock: the pauses are added up.

use super::*;
use crate::capability::Evidence;
use proptest::prelude::*;

const NATIVE: Form = Form { native: true, state: false, keep: true, repairs: Repairs::NONE };
const TEXT: Form = Form { native: false, ..NATIVE };
const STATE: Form = Form { state: true, ..NATIVE };

fn leg(form: Form) -> Leg {
    Leg { form, may_embed: true, is_in_doubt: true, is_state_in_doubt: true, must_have_state: true }
}

fn status(status: u16) -> Failed {
    Failed::Status { status, retry_after: None, rejection: None }
}

fn rejects(rejection: Rejection) -> Failed {
    Failed::Status { status: 400, retry_after: None, rejection: Some(rejection) }
}

/// What came of a whole exchange.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    sent: Vec<(usize, Form)>,
    pauses: Vec<Duration>,
    end: Result<(usize, Vec<Lesson>), String>,
}

/// Drives the machine against a backend that answers attempt by attempt; `Ok` is an answer.
fn driven(
    legs: Vec<Leg>,
    has_tool_history: bool,
    mut backend: impl FnMut(u32, usize, Form) -> Result<(), (Failed, String)>,
) -> Story {
    let mut attempts = Attempts::new(legs, has_tool_history, RetryPolicy::default(), 7);
    let (mut sent, mut pauses) = (Vec::new(), Vec::new());
    loop {
        match attempts.next_step().expect("it is told what came of each step") {
            Step::Send { leg, form, after, attempt } => {
                assert_eq!(attempt as usize, sent.len());
                assert!(attempts.next_step().is_none(), "one attempt at a time");
                sent.push((leg, form));
                pauses.push(after);
                match backend(attempt, leg, form) {
                    Ok(()) => attempts.handle_answer(),
                    Err((failed, error)) => attempts.handle_failure(failed, error),
                }
            }
            Step::Answer { leg, lessons } => return Story { sent, pauses, end: Ok((leg, lessons)) },
            Step::Fail(error) => return Story { sent, pauses, end: Err(error) },
        }
    }
}

/// A backend that goes through a script, each error named after its number.
fn scripted(script: Vec<Option<Failed>>) -> impl FnMut(u32, usize, Form) -> Result<(), (Failed, String)> {
    move |attempt, _, _| match script.get(attempt as usize).copied().flatten() {
        Some(failed) => Err((failed, format!("error {attempt}"))),
        None => Ok(()),
    }
}

fn no_native(leg: usize) -> Lesson {
    let words = "it rejected tool items";
    Lesson { leg, ability: Ability::NativeToolHistory, verdict: Verdict::No, words }
}

/// Returns what was learned, without the words.
fn learned(story: &Story) -> Vec<(Ability, Verdict)> {
    let (_, lessons) = story.end.as_ref().unwrap();
    lessons.iter().map(|lesson| (lesson.ability, lesson.verdict)).collect()
}

#[test]
fn a_first_answer_is_passed_on_and_teaches_that_native_works() {
    let story = driven(vec![leg(NATIVE)], true, scripted(vec![None]));
    assert_eq!(story.sent, [(0, NATIVE)]);
    assert_eq!(learned(&story), [(Ability::NativeToolHistory, Verdict::Yes)]);
    let known = Leg { is_in_doubt: false, ..leg(NATIVE) };
    assert_eq!(driven(vec![known], true, scripted(vec![None])).end, Ok((0, vec![])));
    assert_eq!(driven(vec![leg(NATIVE)], false, scripted(vec![None])).end, Ok((0, vec![])));
}

#[test]
fn rejected_tool_items_are_sent_again_as_text_at_once_and_that_is_remembered() {
    let script = vec![Some(rejects(Rejection::NativeTools)), None];
    let story = driven(vec![leg(NATIVE)], true, scripted(script));
    assert_eq!(story.sent, [(0, NATIVE), (0, TEXT)]);
    assert_eq!(story.pauses, [Duration::ZERO; 2]);
    assert_eq!(story.end, Ok((0, vec![no_native(0)])));
}

#[test]
fn when_text_fails_too_the_first_error_is_returned_and_nothing_is_learned() {
    for second in [status(400), status(422), rejects(Rejection::NativeTools), status(401), status(500)] {
        let script = vec![Some(rejects(Rejection::NativeTools)), Some(second)];
        let story = driven(vec![leg(NATIVE)], true, scripted(script));
        assert_eq!(story.sent.len(), 2, "{second:?}");
        assert_eq!(story.end, Err("error 0".into()), "{second:?}");
    }
}

#[test]
fn text_may_still_be_retried_when_the_backend_stumbles() {
    let script = vec![Some(rejects(Rejection::NativeTools)), Some(status(503)), None];
    let story = driven(vec![leg(NATIVE)], true, scripted(script));
    assert_eq!(story.sent, [(0, NATIVE), (0, TEXT), (0, TEXT)]);
    assert_eq!(story.end, Ok((0, vec![no_native(0)])));
}

#[test]
fn there_is_no_text_instead_where_the_configuration_or_the_request_leaves_no_room() {
    let always = Leg { may_embed: false, ..leg(NATIVE) };
    let script = || scripted(vec![Some(rejects(Rejection::NativeTools))]);
    for (leg, has_tool_history) in [(always, true), (leg(NATIVE), false), (leg(TEXT), true)] {
        let story = driven(vec![leg], has_tool_history, script());
        assert_eq!((story.sent.len(), story.end), (1, Err("error 0".into())));
    }
}

#[test]
fn any_other_400_is_returned_as_it_is() {
    for code in [400, 409, 413, 422] {
        let story = driven(vec![leg(NATIVE), leg(NATIVE)], true, scripted(vec![Some(status(code))]));
        assert_eq!((story.sent.len(), story.end), (1, Err("error 0".into())), "{code}");
    }
}

#[test]
fn state_that_is_gone_means_the_full_history_at_once_and_a_verdict_only_if_it_should_be_there() {
    let no_state = (Ability::ServerState, Verdict::No);
    let known = Leg { is_in_doubt: false, ..leg(STATE) };
    let old = Leg { must_have_state: false, ..known };
    for (leg, rejection, lesson) in [
        (known, Rejection::StateGone, Some(no_state)),
        (old, Rejection::StateGone, None),
        (old, Rejection::StateUnsupported, Some(no_state)),
    ] {
        let story = driven(vec![leg], true, scripted(vec![Some(rejects(rejection)), None]));
        assert_eq!(story.sent, [(0, STATE), (0, NATIVE)]);
        assert_eq!(story.pauses, [Duration::ZERO; 2]);
        assert_eq!(learned(&story), Vec::from_iter(lesson), "{leg:?} {rejection:?}");
    }
}

#[test]
fn state_that_was_used_teaches_that_it_is_kept() {
    let known = Leg { is_in_doubt: false, ..leg(STATE) };
    let story = driven(vec![known], true, scripted(vec![None]));
    assert_eq!(learned(&story), [(Ability::ServerState, Verdict::Yes)]);
    let sure = Leg { is_state_in_doubt: false, ..known };
    assert_eq!(learned(&driven(vec![sure], true, scripted(vec![None]))), []);
    let full = Leg { form: NATIVE, ..known };
    assert_eq!(learned(&driven(vec![full], true, scripted(vec![None]))), []);
}

#[test]
fn whoever_must_not_store_is_asked_again_without_and_from_then_on() {
    let known = Leg { is_in_doubt: false, ..leg(STATE) };
    let story = driven(vec![known], true, scripted(vec![Some(rejects(Rejection::StoreRefused)), None]));
    let plain = Form { keep: false, ..NATIVE };
    assert_eq!(story.sent, [(0, STATE), (0, plain)]);
    let (_, lessons) = story.end.unwrap();
    let [Lesson { ability, verdict, words, .. }] = lessons.as_slice() else { panic!("{lessons:?}") };
    let learned = crate::capability::Learned::new(*ability, *verdict, Evidence::Tried, (*words).into(), 0);
    let next = Leg::new(&Decision::Set(Verdict::Yes), &Decision::Learned(learned), Some(Duration::ZERO));
    assert_eq!(next.form, plain);
}

#[test]
fn state_and_tool_items_can_be_rejected_one_after_the_other() {
    let script = vec![Some(rejects(Rejection::StateGone)), Some(rejects(Rejection::NativeTools)), None];
    let story = driven(vec![leg(STATE)], true, scripted(script));
    assert_eq!(story.sent.last(), Some(&(0, TEXT)));
    let both = [(Ability::ServerState, Verdict::No), (Ability::NativeToolHistory, Verdict::No)];
    assert_eq!(learned(&story), both);
}

#[test]
fn pauses_grow_and_are_spread_by_chance() {
    let script = vec![Some(Failed::Connect), Some(status(529)), None];
    let story = driven(vec![leg(NATIVE)], false, scripted(script));
    assert_eq!(story.pauses[0], Duration::ZERO);
    let within = |pause: Duration, millis: u64| {
        pause <= Duration::from_millis(millis) && pause >= Duration::from_millis(millis * 3 / 4 - 1)
    };
    assert!(within(story.pauses[1], 500) && within(story.pauses[2], 1000), "{:?}", story.pauses);
}

#[test]
fn retry_after_is_honoured_up_to_a_limit() {
    let busy = |seconds| Failed::Status {
        status: 429,
        retry_after: Some(Duration::from_secs(seconds)),
        rejection: None,
    };
    let story = driven(vec![leg(NATIVE)], false, scripted(vec![Some(busy(15)), None]));
    assert_eq!(story.pauses[1], Duration::from_secs(15));
    let story = driven(vec![leg(NATIVE), leg(NATIVE)], false, scripted(vec![Some(busy(60)), None]));
    assert_eq!((story.sent, story.pauses[1]), (vec![(0, NATIVE), (1, NATIVE)], Duration::ZERO));
    let story = driven(vec![leg(NATIVE)], false, scripted(vec![Some(busy(60))]));
    assert_eq!(story.end, Err("error 0".into()));
}

#[test]
fn after_the_retries_the_next_destination_is_tried_in_its_own_form() {
    let script = vec![Some(status(503)), Some(status(502)), Some(status(429)), None];
    let story = driven(vec![leg(NATIVE), leg(TEXT)], true, scripted(script));
    assert_eq!(story.sent, [(0, NATIVE), (0, NATIVE), (0, NATIVE), (1, TEXT)]);
    assert_eq!(story.end, Ok((1, vec![])));
}

#[test]
fn what_is_the_backends_fault_but_not_worth_a_retry_goes_to_the_next_at_once() {
    for failed in [Failed::TimedOut, status(401), status(403), status(404), status(500), status(504)] {
        let story = driven(vec![leg(NATIVE), leg(NATIVE)], false, scripted(vec![Some(failed), None]));
        assert_eq!(story.sent, [(0, NATIVE), (1, NATIVE)], "{failed:?}");
        let story = driven(vec![leg(NATIVE)], false, scripted(vec![Some(failed)]));
        assert_eq!((story.sent.len(), story.end), (1, Err("error 0".into())));
    }
}

#[test]
fn when_nobody_answers_the_client_is_told_what_the_first_one_said() {
    let backend = |attempt: u32, leg: usize, _: Form| match leg {
        0 => Err((Failed::TimedOut, format!("first {attempt}"))),
        1 => Err((status(401), "second".to_owned())),
        _ => Err((status(400), "third".to_owned())),
    };
    let story = driven(vec![leg(NATIVE); 3], true, backend);
    assert_eq!((story.sent.len(), story.end), (3, Err("first 0".into())));
}

#[test]
fn each_destination_may_reject_tool_items_and_only_what_worked_is_learned() {
    let backend = |_: u32, leg: usize, form: Form| match (leg, form.native) {
        (_, true) => Err((rejects(Rejection::NativeTools), "rejected".to_owned())),
        (0, false) => Err((Failed::TimedOut, "slow".to_owned())),
        _ => Ok(()),
    };
    let story = driven(vec![leg(NATIVE), leg(NATIVE)], true, backend);
    assert_eq!(story.sent, [(0, NATIVE), (0, TEXT), (1, NATIVE), (1, TEXT)]);
    assert_eq!(story.end, Ok((1, vec![no_native(1)])));
}

#[test]
fn once_an_answer_has_begun_nothing_is_repeated() {
    let mut attempts = Attempts::new(vec![leg(NATIVE)], true, RetryPolicy::default(), 0);
    assert!(matches!(attempts.next_step(), Some(Step::Send { .. })));
    attempts.handle_answer();
    attempts.handle_failure(rejects(Rejection::NativeTools), "too late");
    assert!(matches!(attempts.next_step(), Some(Step::Answer { .. })));
    attempts.handle_failure(Failed::Connect, "too late");
    assert_eq!(attempts.next_step(), None);
}

#[test]
fn a_decision_becomes_a_form() {
    let unknown = Decision::Unknown { expired: None };
    let (yes, no) = (Decision::Set(Verdict::Yes), Decision::Set(Verdict::No));
    let (now, old) = (Some(Duration::ZERO), Some(STATE_FRESH));
    assert_eq!(Leg::new(&unknown, &unknown, now), leg(STATE));
    assert_eq!(Leg::new(&unknown, &unknown, old), Leg { must_have_state: false, ..leg(STATE) });
    assert!(!Leg::new(&unknown, &yes, now).must_have_state, "the configuration is not overruled");
    assert_eq!(Leg::new(&yes, &no, now).form, NATIVE);
    assert!(!Leg::new(&yes, &no, now).may_embed);
    assert_eq!(Leg::new(&no, &yes, None).form, TEXT);
}

fn any_failure() -> impl Strategy<Value = Failed> {
    let rejection = proptest::option::of(prop_oneof![
        Just(Rejection::NativeTools),
        Just(Rejection::StateGone),
        Just(Rejection::StateUnsupported),
        Just(Rejection::Repairable(Repair::DropReasoning)),
        Just(Rejection::TooLong { window: 4096 }),
        Just(Rejection::StoreRefused)
    ]);
    let after = proptest::option::of((0u64..100).prop_map(Duration::from_secs));
    prop_oneof![
        Just(Failed::Connect),
        Just(Failed::TimedOut),
        (400u16..600, after, rejection).prop_map(|(status, retry_after, rejection)| Failed::Status {
            status,
            retry_after,
            rejection
        }),
    ]
}

proptest! {
    #[test]
    fn it_ends_whatever_happens(
        forms in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..4),
        has_tool_history: bool,
        script in proptest::collection::vec(proptest::option::weighted(0.9, any_failure()), 0..40),
    ) {
        let legs: Vec<Leg> = forms
            .iter()
            .map(|(native, state, may_embed)| Leg {
                form: Form { native: *native, state: *state, keep: true, repairs: Repairs::NONE },
                may_embed: *may_embed,
                ..leg(NATIVE)
            })
            .collect();
        let count = legs.len();
        let story = driven(legs, has_tool_history, scripted(script));
        // Three tries and three simpler forms for each, at most.
        prop_assert!(story.sent.len() <= count * 6);
        prop_assert!(story.sent.is_sorted_by_key(|(leg, _)| *leg));
        prop_assert!(story.pauses.iter().all(|pause| *pause <= Duration::from_secs(20)));
        if let Ok((leg, lessons)) = story.end {
            prop_assert!(lessons.iter().all(|lesson| lesson.leg == leg));
        }
    }
}

#[test]
fn what_a_refusal_names_is_repaired_once_and_the_first_error_is_returned_if_that_does_not_help() {
    let refusal = || Some(rejects(Rejection::Repairable(Repair::EndWithUser)));
    let mut attempts = Attempts::new(vec![leg(NATIVE)], true, RetryPolicy::default(), 1);
    let mut sent = Vec::new();
    let mut told = None;
    let mut errors = 0;
    while let Some(step) = attempts.next_step() {
        match step {
            Step::Send { form, .. } => {
                sent.push(form.repairs);
                errors += 1;
                attempts.handle_failure(refusal().unwrap(), format!("error {errors}"));
            }
            Step::Answer { .. } => panic!("nobody answers"),
            Step::Fail(error) => told = Some(error),
        }
    }
    assert_eq!(sent, [Repairs::NONE, Repairs::NONE.with(Repair::EndWithUser)]);
    assert_eq!(told.as_deref(), Some("error 1"));
}
