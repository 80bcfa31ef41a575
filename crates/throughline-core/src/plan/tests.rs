//! The laws of planning, on histories that nobody chose.

use super::testing::{call, settled, thought, user};
use super::*;
use crate::{Kind, Ledger, Outcome, Role, joined_text};
use proptest::prelude::*;

const COUNT: fn(&str) -> u64 = |text| text.len() as u64 / 4 + 1;

/// What the model does in one go, and what comes back.
#[derive(Clone, Debug)]
struct Go {
    thinks: bool,
    speaks: bool,
    calls: Vec<(usize, usize, usize, bool)>,
    user_after: bool,
}

fn go() -> impl Strategy<Value = Go> {
    let one = (0..6usize, 0..4usize, 0..60usize, prop::bool::weighted(0.1));
    (any::<bool>(), any::<bool>(), prop::collection::vec(one, 1..4), prop::bool::weighted(0.15))
        .prop_map(|(thinks, speaks, calls, user_after)| Go { thinks, speaks, calls, user_after })
}

fn history(goes: &[Go]) -> Vec<Entry> {
    let mut entries =
        vec![Entry::said(Role::System, "You are careful."), user("Mend src/file_0.rs, please.")];
    for (at, go) in goes.iter().enumerate() {
        if go.thinks {
            entries.push(thought(&format!("what now, {at}?")));
        }
        if go.speaks {
            entries.push(Entry::said(Role::Assistant, format!("Next is step_{at}.")));
        }
        for (nth, (tool, key, lines, _)) in go.calls.iter().enumerate() {
            entries.push(made_call(&format!("c{at}_{nth}"), *tool, *key, *lines));
        }
        for (nth, (_, key, lines, fails)) in go.calls.iter().enumerate() {
            let text: String = (0..*lines)
                .map(|line| format!("{at}:{line} let value_{key}_{line} = name{at}(x, y);\n"))
                .collect();
            let outcome = if *fails { Outcome::Error } else { Outcome::Ok };
            entries.push(settled(&format!("c{at}_{nth}"), &text, outcome));
        }
        if go.user_after {
            entries.push(user(&format!("And then do thing_{at}.")));
        }
    }
    entries
}

fn made_call(id: &str, tool: usize, key: usize, lines: usize) -> Entry {
    let file = format!("src/file_{key}.rs");
    let body: String = (0..lines).map(|line| format!("old \\\"line_{line}\\\" \\u00e9\\n")).collect();
    match tool {
        0 => call(id, "Read", &format!(r#"{{"file_path":"{file}"}}"#)),
        1 => call(id, "Edit", &format!(r#"{{"file_path":"{file}","old_string":"{body}","n":1}}"#)),
        2 => call(id, "Bash", &format!(r#"{{"command":"cargo test {key}"}}"#)),
        3 => call(id, "Bash", &format!(r#"{{"command":"rm -r target/{key}"}}"#)),
        4 => call(id, "Grep", &format!(r#"{{"pattern":"value_{key}"}}"#)),
        _ => call(id, "book", "not json at all"),
    }
}

fn size_of(entry: &Entry) -> Tokens {
    let text = match &entry.kind {
        Kind::Said(said) => joined_text(&said.parts).to_string(),
        Kind::Thought(thought) => thought.content.concat(),
        Kind::Called(call) => format!("{} {}", call.name, call.input.text()),
        Kind::Returned(returned) => joined_text(&returned.parts).to_string(),
        Kind::Summarised(summary) => summary.text.to_string(),
        _ => String::new(),
    };
    Tokens(COUNT(&text) + 8)
}

fn sizes(entries: &[Entry]) -> Vec<Tokens> {
    entries.iter().map(size_of).collect()
}

fn planned(entries: &[Entry], budget: &Budget, before: &Decisions) -> Result<Plan, PlanError> {
    let planner = Planner { budget, rules: &ToolRules::default(), count: &COUNT, recall: true };
    planner.plan(Measured { entries, sizes: &sizes(entries), besides: Tokens(10) }, before)
}

fn shown(plan: &Plan, entries: &[Entry]) -> Vec<Entry> {
    plan.apply(entries, &mut Report::default())
}

fn budget(prompt: Option<u64>, tools: Option<u64>) -> Budget {
    Budget {
        prompt: prompt.map(Tokens),
        tool_history: tools.map(Tokens),
        recent_calls_to_keep: Some(3),
        ..Budget::default()
    }
}

fn budgets() -> impl Strategy<Value = Budget> {
    let policy = prop::sample::select(vec![Policy::Default, Policy::Default, Policy::Mask]);
    (prop::option::of(100..4_000u64), prop::option::of(200..4_000u64), policy)
        .prop_map(|(prompt, tools, policy)| Budget { policy, ..budget(prompt, tools) })
}

/// The threshold is smaller than what is told of the rounds that are left out, so that every request passes it again;
/// at the second, the results that the model had not seen were cut, and another goal is left.
#[test]
fn a_summary_that_tells_of_all_is_not_told_in_other_words() {
    let go =
        |speaks, calls: &[_], user_after| Go { thinks: false, speaks, calls: calls.to_vec(), user_after };
    let entries = history(&[
        go(false, &[(2, 0, 6, true)], false),
        go(false, &[(1, 0, 6, true), (3, 0, 0, false), (2, 2, 0, false)], false),
        go(true, &[(5, 0, 6, true)], false),
        go(false, &[(0, 0, 0, false), (2, 1, 0, false)], true),
        go(true, &[(1, 0, 38, false), (2, 0, 56, false)], false),
    ]);
    let budget = budget(Some(456), Some(200));
    let plan = planned(&entries, &budget, &Decisions::default()).unwrap();
    assert!(plan.tool_history > Tokens(200), "over the threshold still: {}", plan.tool_history);
    let again = planned(&entries, &budget, &plan.decisions).unwrap();
    assert_eq!(again.decisions.span(), plan.decisions.span());
    assert!(!again.is_step, "the prompt's prefix is what it was");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_plan_fits_or_fails_clearly(goes in prop::collection::vec(go(), 0..14), budget in budgets()) {
        let entries = history(&goes);
        match planned(&entries, &budget, &Decisions::default()) {
            Ok(plan) => {
                let shown = shown(&plan, &entries);
                let real: Tokens = sizes(&shown).into_iter().sum();
                prop_assert_eq!(real + Tokens(10), plan.after);
                prop_assert!(budget.limit().is_none_or(|limit| plan.after <= limit));
                prop_assert!(plan.after <= plan.before);
            }
            Err(PlanError::DoesNotFit { least, limit, instructions, tools, message }) => {
                prop_assert!(least > limit && instructions + tools + message <= least);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn batches_stay_whole_and_arguments_valid(goes in prop::collection::vec(go(), 0..14), budget in budgets()) {
        let entries = history(&goes);
        let Ok(plan) = planned(&entries, &budget, &Decisions::default()) else { return Ok(()) };
        let shown = shown(&plan, &entries);
        let ledger = Ledger::of(&shown);
        prop_assert!(ledger.mismatches().is_empty());
        for (at, go) in goes.iter().enumerate() {
            let of = |entry: &&Entry| entry.as_call().is_some_and(|call| call.id.starts_with(&format!("c{at}_")));
            let count = shown.iter().filter(of).count();
            prop_assert!(count == 0 || count == go.calls.len(), "batch {} was split", at);
            let said = format!("what now, {at}?");
            let thinks = shown.iter().any(|entry| matches!(&entry.kind, Kind::Thought(thought) if thought.content[0] == said.as_str()));
            prop_assert_eq!(thinks, go.thinks && count > 0);
        }
        let last = goes.last().map_or(0, |go| go.calls.len());
        prop_assert!(shown.iter().filter(|entry| entry.as_call().is_some()).count() >= last, "the latest round stays");
        for call in shown.iter().filter_map(Entry::as_call).filter(|call| call.name != "book") {
            prop_assert!(arguments::leaves(call.input.text()).is_some(), "{}", call.input.text());
        }
        for entry in entries.iter().filter(|entry| entry.as_said().is_some_and(|said| said.role != Role::Assistant)) {
            prop_assert!(shown.contains(entry));
        }
    }

    #[test]
    fn what_was_planned_needs_no_plan(goes in prop::collection::vec(go(), 0..14), budget in budgets()) {
        let entries = history(&goes);
        let Ok(plan) = planned(&entries, &budget, &Decisions::default()) else { return Ok(()) };
        prop_assert_eq!(&planned(&entries, &budget, &Decisions::default()).unwrap(), &plan);
        let kept = Decisions::from_text(&plan.decisions.to_text()).unwrap();
        prop_assert_eq!(&kept, &plan.decisions);
        let again = planned(&entries, &budget, &kept).unwrap();
        prop_assert_eq!(shown(&again, &entries), shown(&plan, &entries));
        let next_fits = budget.tool_history.is_none_or(|most| plan.tool_history <= most);
        if next_fits {
            let shown = shown(&plan, &entries);
            let next = planned(&shown, &budget, &Decisions::default()).unwrap();
            prop_assert!(next.is_untouched());
        }
    }

    #[test]
    fn a_rewritten_past_splits_nothing(goes in prop::collection::vec(go(), 2..14), budget in budgets(), from in 0..40usize) {
        let entries = history(&goes);
        let Ok(plan) = planned(&entries, &budget, &Decisions::default()) else { return Ok(()) };
        let mut rewritten = entries;
        for entry in rewritten.iter_mut().skip(from) {
            if let Kind::Returned(returned) = &mut entry.kind {
                returned.parts = vec![crate::Part::text("something else")];
            }
        }
        let Ok(plan) = planned(&rewritten, &budget, &plan.decisions) else { return Ok(()) };
        let shown = shown(&plan, &rewritten);
        prop_assert!(Ledger::of(&shown).mismatches().is_empty());
        let real: Tokens = sizes(&shown).into_iter().sum();
        prop_assert_eq!(real + Tokens(10), plan.after);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn decisions_stick_between_steps(goes in prop::collection::vec(go(), 1..24), budget in budgets()) {
        let mut before = Decisions::default();
        let mut last: Vec<Entry> = Vec::new();
        for turns in 1..=goes.len() {
            let entries = history(&goes[..turns]);
            let Ok(plan) = planned(&entries, &budget, &before) else { return Ok(()) };
            let shown = shown(&plan, &entries);
            if !plan.is_step {
                prop_assert!(shown.starts_with(&last), "the prefix changed without a step");
            }
            (before, last) = (plan.decisions, shown);
        }
    }
}

#[test]
fn what_fits_is_not_touched() {
    let goes = vec![Go { thinks: true, speaks: true, calls: vec![(0, 0, 30, false)], user_after: false }; 5];
    let entries = history(&goes);
    let plan = planned(&entries, &budget(Some(100_000), None), &Decisions::default()).unwrap();
    assert!(plan.is_untouched() && !plan.is_step);
    assert_eq!(shown(&plan, &entries), entries);
}

#[test]
fn a_policy_of_nothing_is_an_error_instead_of_a_cut() {
    let goes =
        vec![Go { thinks: false, speaks: false, calls: vec![(4, 0, 50, false)], user_after: false }; 5];
    let entries = history(&goes);
    let off = Budget { policy: Policy::Off, ..budget(Some(500), None) };
    assert!(matches!(planned(&entries, &off, &Decisions::default()), Err(PlanError::Forbidden { .. })));
}

#[test]
fn a_long_run_keeps_its_prefix() {
    let goes: Vec<Go> = (0..200)
        .map(|at| Go {
            thinks: false,
            speaks: at % 3 == 0,
            calls: vec![(at % 5, at % 7, 5 + at % 40, at % 17 == 0)],
            user_after: at % 20 == 19,
        })
        .collect();
    let budget = budget(Some(20_000), None);
    let (mut before, mut last) = (Decisions::default(), Vec::new());
    let (mut stable, mut all, mut steps) = (0, 0, 0);
    for turns in 1..=goes.len() {
        let entries = history(&goes[..turns]);
        let plan = planned(&entries, &budget, &before).unwrap();
        let shown = shown(&plan, &entries);
        let same = shown.iter().zip(&last).take_while(|(a, b)| a == b).count();
        if turns > 1 {
            stable += sizes(&shown[..same]).into_iter().sum::<Tokens>().0;
            all += sizes(&last).into_iter().sum::<Tokens>().0;
        }
        steps += usize::from(plan.is_step);
        (before, last) = (plan.decisions, shown);
    }
    assert!(steps >= 3, "{steps} steps: the run is too short to show anything");
    assert!(stable * 100 >= all * 95, "{stable} of {all} tokens in {steps} steps");
}

/// A history of twelve searches with long results.
fn searches() -> Vec<Entry> {
    let goes: Vec<Go> = (0..12)
        .map(|at| Go { thinks: false, speaks: false, calls: vec![(4, at, 40, false)], user_after: false })
        .collect();
    [history(&goes), vec![Entry::said(Role::Assistant, "I see.")]].concat()
}

#[test]
fn the_threshold_of_tool_history_decides_when_something_is_done() {
    let entries = searches();
    let all: Tokens = Sums::of(&entries, &sizes(&entries), &Decisions::default()).tools;
    let at = |tools: u64| planned(&entries, &budget(None, Some(tools)), &Decisions::default()).unwrap();
    assert!(at(all.0).is_untouched());
    let plan = at(all.0 - 1);
    assert!(plan.is_step && plan.tool_history <= all.percent(75));
}

#[test]
fn what_the_model_has_not_seen_is_not_cut_for_the_threshold() {
    let mut entries = searches();
    entries.push(call("big", "Read", r#"{"file_path":"large.rs"}"#));
    entries.push(settled("big", &"let some_name = other_name(third_name);\n".repeat(400), Outcome::Ok));
    let last = entries.len() - 1;
    let threshold = budget(None, Some(2_000));
    let plan = planned(&entries, &threshold, &Decisions::default()).unwrap();
    assert!(plan.is_step && plan.decisions.about(last).is_none(), "{:?}", plan.decisions.about(last));
    let answered = [entries.clone(), vec![Entry::said(Role::Assistant, "I see.")]].concat();
    let plan = planned(&answered, &threshold, &plan.decisions).unwrap();
    assert!(matches!(plan.decisions.about(last).unwrap().decision, Decision::Excerpt(_)));
    let window = budget(Some(3_000), None);
    let plan = planned(&entries, &window, &Decisions::default()).unwrap();
    assert!(plan.decisions.about(last).is_some() && plan.after <= Tokens(3_000), "a window is a hard limit");
}

#[test]
fn the_reserve_is_kept_free() {
    let entries = searches();
    let all: Tokens = sizes(&entries).into_iter().sum::<Tokens>() + Tokens(10);
    let whole = budget(Some(all.0), None);
    assert!(planned(&entries, &whole, &Decisions::default()).unwrap().is_untouched());
    let reserved = Budget { reserve: Tokens(1), ..whole };
    assert!(planned(&entries, &reserved, &Decisions::default()).unwrap().is_step);
}

#[test]
fn the_target_says_how_far_a_step_goes() {
    let entries = searches();
    let tokens = |target_percent: u64| {
        let budget = Budget { target_percent, recent_calls_to_keep: None, ..budget(None, Some(4_000)) };
        planned(&entries, &budget, &Decisions::default()).unwrap().tool_history.0
    };
    assert!(tokens(30) <= 1_200 && tokens(80) > 2_400 && tokens(80) <= 3_200);
}

/// Returns how many of the latest three results of a history are shown whole, and how many not at all.
fn latest(entries: &[Entry], budget: &Budget) -> (usize, usize) {
    let plan = planned(entries, budget, &Decisions::default()).unwrap();
    let latest: Vec<usize> =
        (0..entries.len()).rev().filter(|at| entries[*at].as_return().is_some()).take(3).collect();
    let is_gone = |at: &&usize| {
        plan.decisions.about(**at).is_some_and(|taken| !matches!(taken.decision, Decision::Excerpt(_)))
    };
    (
        latest.iter().filter(|at| plan.decisions.about(**at).is_none()).count(),
        latest.iter().filter(is_gone).count(),
    )
}

#[test]
fn the_latest_calls_stay_whole_unless_they_alone_exceed_the_budget() {
    // The latest results hold nothing that an excerpt would keep.
    let mut entries = searches();
    for at in 0..3 {
        let id = format!("dull_{at}");
        entries.push(call(&id, "think", "{}"));
        entries.push(settled(&id, &"and so on and so forth, as before\n".repeat(50 + at), Outcome::Ok));
    }
    entries.push(Entry::said(Role::Assistant, "I see."));
    let size = size_of(&entries[entries.len() - 2]).0;
    let with = |recent: Option<usize>, tools: u64| {
        let budget = Budget { recent_calls_to_keep: recent, ..budget(None, Some(tools)) };
        latest(&entries, &budget)
    };
    assert_eq!(with(Some(3), size * 4), (3, 0), "they fit");
    assert_eq!(with(Some(1), size * 4).0, 1, "one is asked for");
    let (whole, gone) = with(Some(3), size * 2);
    assert_eq!(gone, 0, "they alone exceed it, and none is left out");
    assert!(whole < 3, "{whole}");
    assert!(with(None, size * 20).0 == 3, "without a number a few stay");
}

#[test]
fn no_room_stays_free_while_there_is_something_to_show() {
    // Prose, without a single identifier.
    let mut entries = vec![user("Sum up the letters.")];
    for at in 0..4 {
        let id = format!("letter_{at}");
        let words = ["meadow", "harvest", "lantern", "river"][at];
        let text =
            format!("The {words} was quiet in the evening, and nobody spoke about the journey home.\n")
                .repeat(200);
        entries.push(call(&id, "fetch_letter", "{}"));
        entries.push(settled(&id, &text, Outcome::Ok));
    }
    let budget = budget(Some(12_000), None);
    let planner = Planner { budget: &budget, rules: &ToolRules::default(), count: &COUNT, recall: true };
    let history = Measured { entries: &entries, sizes: &sizes(&entries), besides: Tokens(10) };
    let plan = planner.hand_over(history).unwrap();
    assert!(plan.after >= Tokens(10_800), "{} of 12000 tokens are used", plan.after);
}

#[test]
fn room_goes_to_pieces_of_results_before_calls_with_nothing_of_their_results() {
    let mut entries = vec![user("Please read all the files")];
    for file in 0..40 {
        let line =
            |line: usize| format!("fn handler_{file}_{line}() -> Value_{file} {{ compute({line}) }}\n");
        let (id, text) = (format!("call_{file}"), (0..16).map(line).collect::<String>());
        entries.push(call(&id, "read_file", &format!(r#"{{"path":"src/{file}.rs"}}"#)));
        entries.push(settled(&id, &text, Outcome::Ok));
    }
    // Code has fewer bytes a token than prose.
    let count = |text: &str| text.len() as u64 * 2 / 5 + 1;
    let size = |entry: &Entry| Tokens((size_of(entry).0 - 9) * 8 / 5 + 9);
    let sizes: Vec<Tokens> = entries.iter().map(size).collect();
    let budget = Budget { recent_calls_to_keep: None, ..budget(Some(7_000), None) };
    let planner = Planner { budget: &budget, rules: &ToolRules::default(), count: &count, recall: true };
    let history = Measured { entries: &entries, sizes: &sizes, besides: Tokens(10) };
    let plan = planner.plan(history, &Decisions::default()).unwrap();
    let count = |is: fn(&Decision) -> bool| {
        let results =
            plan.decisions.taken.iter().filter(|taken| entries[taken.entry as usize].as_return().is_some());
        results.filter(|taken| is(&taken.decision)).count()
    };
    let excerpts = count(|decision| matches!(decision, Decision::Excerpt(_)));
    let masks = count(|decision| matches!(decision, Decision::Masked));
    assert!(excerpts > 5 && masks < excerpts, "{excerpts} excerpts, {masks} masks");
    assert!(plan.after >= Tokens(2_300), "{} of 2450 tokens are used", plan.after);
}

#[test]
fn old_pasted_text_is_cut_before_a_request_is_refused() {
    let pasted =
        format!("Why?\n<bash-stdout>{}</bash-stdout>", "some line of output that was pasted\n".repeat(900));
    let entries = [user(&pasted), Entry::said(Role::Assistant, "It is late."), user("And now?")];
    let plan = planned(&entries, &budget(Some(3_000), None), &Decisions::default()).unwrap();
    let shown = shown(&plan, &entries);
    let text = joined_text(&shown[0].as_said().unwrap().parts);
    assert!(text.starts_with("Why?") && text.contains("chars of this message cut; recall "), "{text}");
    assert!(plan.after <= Tokens(3_000) && plan.after > Tokens(500), "{}", plan.after);
    assert_eq!(shown[2], entries[2], "the latest message stays");
    let handle = plan.decisions.about(0).unwrap().handle;
    assert_eq!(find(handle, &entries), Some(Found { call: None, result: Some(0) }));
}

#[test]
fn what_the_model_said_long_ago_leaves_before_a_request_is_refused() {
    let mut entries = vec![user("Tell me stories.")];
    for at in 0..40 {
        entries.push(Entry::said(Role::Assistant, format!("Story {at}: {}", "once upon a time ".repeat(40))));
        entries.push(user(&format!("Another one, number {at}.")));
    }
    let plan = planned(&entries, &budget(Some(2_000), None), &Decisions::default()).unwrap();
    assert!(plan.after <= Tokens(2_000), "{}", plan.after);
    assert!(shown(&plan, &entries).len() < entries.len());
}

#[test]
fn what_does_not_fit_is_named() {
    let entries = [Entry::said(Role::System, "x".repeat(4_000)), user(&"y".repeat(2_000))];
    let error = planned(&entries, &budget(Some(500), None), &Decisions::default()).unwrap_err().to_string();
    assert!(
        error.contains("the system prompt with 1009") && error.contains("user message with 509"),
        "{error}"
    );
}

#[test]
fn the_command_and_the_message_of_a_failure_stay() {
    let frames: String = (0..60)
        .map(|at| {
            format!(
                "  File \"/srv/app/module_{at}.py\", line {at}, in handler_{at}\n    call_{at}(value_{at})\n"
            )
        })
        .collect();
    let trace =
        format!("Traceback (most recent call last):\n{frames}ValueError: no seat is left on this flight\n");
    let script = "import os\\n".repeat(80);
    let mut entries = searches();
    entries.insert(
        2,
        call("f", "Bash", &format!(r#"{{"command":"python book.py --flight HAT170 <<EOF\n{script}EOF"}}"#)),
    );
    entries.insert(3, settled("f", &trace, Outcome::Error));
    let plan = planned(&entries, &budget(Some(2_600), None), &Decisions::default()).unwrap();
    let shown = shown(&plan, &entries);
    let command = shown.iter().filter_map(Entry::as_call).find(|call| call.id == "f").unwrap();
    assert!(
        command.input.text().contains("python book.py --flight HAT170 <<EOF"),
        "{}",
        command.input.text()
    );
    let result =
        shown.iter().filter_map(Entry::as_return).find(|it| it.call_id.as_deref() == Some("f")).unwrap();
    let text = joined_text(&result.parts);
    assert!(
        text.contains("ValueError: no seat is left on this flight") && text.len() < trace.len(),
        "{text}"
    );
}

#[test]
fn masks_only_is_a_policy_of_its_own() {
    let entries = searches();
    let masks = Budget { policy: Policy::Mask, ..budget(None, Some(4_000)) };
    let plan = planned(&entries, &masks, &Decisions::default()).unwrap();
    assert!(plan.decisions.taken().iter().all(|taken| taken.decision == Decision::Masked));
    assert_eq!(Policy::named("mask"), Some(Policy::Mask));
}

#[test]
fn a_marker_says_how_to_have_it_back_only_where_that_is_possible() {
    let entries = searches();
    let text = |recall: bool| {
        let budget = budget(None, Some(2_000));
        let planner = Planner { budget: &budget, rules: &ToolRules::default(), count: &COUNT, recall };
        let history = Measured { entries: &entries, sizes: &sizes(&entries), besides: Tokens(0) };
        let plan = planner.plan(history, &Decisions::default()).unwrap();
        let is_result = |taken: &&Taken| entries[taken.entry as usize].as_return().is_some();
        let is_excerpt = |taken: &&Taken| is_result(taken) && matches!(taken.decision, Decision::Excerpt(_));
        let taken = plan.decisions.taken().iter().find(is_excerpt).unwrap().clone();
        let at = taken.entry as usize;
        assert_eq!(find(taken.handle, &entries), Some(Found { call: Some(at - 1), result: Some(at) }));
        let shown = plan.apply(&entries, &mut Report::default());
        let id = entries[at].as_return().unwrap().call_id.clone();
        let returned = shown.iter().filter_map(Entry::as_return).find(|it| it.call_id == id).unwrap();
        (joined_text(&returned.parts), taken.handle)
    };
    let (with, handle) = text(true);
    assert!(with.contains("chars cut") && with.contains(&format!("recall {handle}")), "{with}");
    assert!(!text(false).0.contains("recall"));
}

#[test]
fn a_handover_fills_the_whole_budget() {
    let entries = searches();
    let budget = budget(None, Some(4_000));
    let planner = Planner { budget: &budget, rules: &ToolRules::default(), count: &COUNT, recall: true };
    let history = Measured { entries: &entries, sizes: &sizes(&entries), besides: Tokens(0) };
    let plan = planner.hand_over(history).unwrap();
    assert!((3_600..=4_000).contains(&plan.tool_history.0), "{}", plan.tool_history);
}

#[test]
fn the_words_of_a_model_take_the_place_of_the_digest() {
    let goes: Vec<Go> = (0..60)
        .map(|at| Go { thinks: false, speaks: false, calls: vec![(4, at, 9, false)], user_after: false })
        .collect();
    let entries = history(&goes);
    let budget = budget(None, Some(1_500));
    let mut plan = planned(&entries, &budget, &Decisions::default()).unwrap();
    let digest = plan.decisions.span().unwrap().text.clone();
    assert!(digest.starts_with("[Earlier in this session"), "{digest}");
    plan.decisions.retell("We searched a lot.", &COUNT);
    let again = planned(&entries, &budget, &plan.decisions).unwrap();
    let shown = shown(&again, &entries);
    assert_eq!(sizes(&shown).into_iter().sum::<Tokens>() + Tokens(10), again.after);
    let told = shown.iter().find_map(|entry| match &entry.kind {
        Kind::Summarised(told) => Some(told.text.clone()),
        _ => None,
    });
    // What the words stand for can still be had back.
    let heading = digest.lines().next().unwrap();
    assert_eq!(told.unwrap(), format!("We searched a lot.\n{heading}").as_str());
}

/// Returns the indexes of the entries that handles in a prompt lead to.
fn recallable(shown: &[Entry], entries: &[Entry]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for entry in shown {
        let text = match &entry.kind {
            Kind::Called(call) => call.input.text().clone(),
            Kind::Returned(returned) => joined_text(&returned.parts),
            Kind::Summarised(summary) => summary.text.clone(),
            _ => continue,
        };
        for behind in text.split("recall ").skip(1) {
            let named: String =
                behind.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
            let range = HandleRange::parse(&named).unwrap();
            found.extend(find_range(range, entries).into_iter().flat_map(|found| [found.call, found.result]));
        }
    }
    found.into_iter().flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_taken_out_can_be_had_back(goes in prop::collection::vec(go(), 1..20), budget in budgets()) {
        let mut before = Decisions::default();
        for turns in [goes.len() / 2, goes.len()] {
            let entries = history(&goes[..turns]);
            let Ok(plan) = planned(&entries, &budget, &before) else { return Ok(()) };
            let recallable = recallable(&shown(&plan, &entries), &entries);
            for taken in plan.decisions.taken() {
                let at = taken.entry as usize;
                let is_tool = entries[at].as_call().is_some() || entries[at].as_return().is_some();
                prop_assert!(!is_tool || recallable.contains(&at), "{:?}", taken);
            }
            before = plan.decisions;
        }
    }
}

#[test]
fn an_image_in_an_old_result_is_named_and_left_out() {
    let mut entries = searches();
    if let Kind::Returned(returned) = &mut entries[3].kind {
        let media = crate::Media::Url("https://example.org/a.png".into());
        let content = crate::Content::Image(crate::Image { media, detail: None });
        returned.parts.push(crate::Part { content, wire: None });
    }
    let masks = Budget { policy: Policy::Mask, ..budget(None, Some(4_000)) };
    let plan = planned(&entries, &masks, &Decisions::default()).unwrap();
    let shown = shown(&plan, &entries);
    let text = joined_text(&shown[3].as_return().unwrap().parts);
    assert!(text.contains("1 image cut"), "{text}");
    assert!(!shown[3].intact);
}
