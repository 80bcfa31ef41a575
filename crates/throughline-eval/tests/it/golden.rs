//! The baselines beside the reference: every figure that it counted over two small runs of our own.
//!
//! The reference is a script in Python, which is not part of this repository; `bakery.expected.jsonl` is what it
//! counted over `bakery.jsonl` at budgets of 500 and 1500 tokens.

use serde_json::Value;
use throughline_eval::run::{Options, run};
use throughline_eval::table;

const RUNS: &str = include_str!("bakery.jsonl");
const EXPECTED: &str = include_str!("bakery.expected.jsonl");

fn counted() -> Value {
    let options = Options { budgets: vec![500, 1500], rolling: true, handover: true, ..Options::default() };
    let lines: Vec<&str> = RUNS.lines().collect();
    table::json(&run(&lines, &options, &|_| ()).expect("the runs can be read"))
}

#[test]
fn baselines_count_what_the_reference_counts() {
    let ours = counted();
    assert_eq!(EXPECTED.lines().count(), 62);
    for line in EXPECTED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (part, policy) = (row["part"].as_str().unwrap(), row["policy"].as_str().unwrap());
        for (name, expected) in row["counted"].as_object().unwrap() {
            let found = ours[part][policy][name].as_f64().unwrap_or_default();
            let expected = expected.as_f64().unwrap();
            assert!((found - expected).abs() < 1e-5, "{part} {policy} {name}: {found}, not {expected}");
        }
    }
}

#[test]
fn throughline_keeps_to_the_budget_and_hands_over_what_can_be_had_back() {
    let ours = counted();
    for (budget, policy) in [(500, "throughline @500"), (1500, "throughline @1500")] {
        let handed = &ours["handover"][policy];
        let count = |name: &str| handed[name].as_u64().unwrap();
        assert!(count("tok_tool") <= budget * count("sw"), "{policy}: {handed}");
        assert!(count("ok_recall_hard") >= count("ok_hard"), "{policy}: {handed}");
        assert!(count("okc_hard") > 0, "{policy}: {handed}");
    }
}

#[test]
fn a_line_that_is_no_run_is_named() {
    let options = Options { budgets: vec![], rolling: true, handover: false, ..Options::default() };
    let error = run(&[RUNS.lines().next().unwrap(), "{}"], &options, &|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "line 2: no messages");
}
