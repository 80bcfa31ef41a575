//! How long a plan takes for a conversation of 3,000 pairs: from nothing, and for its next request.
//!
//! The next request finds its sizes counted and its decisions taken, so it must take next to nothing of what
//! the first plan took. Run it with `just bench`.

#![expect(clippy::disallowed_types, reason = "a bench reads the clock")]
#![expect(clippy::print_stdout, reason = "a bench is read on the terminal")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use throughline_core::plan::{Budget, Decisions, Measured, Plan, Planner, Tokens, ToolRules};
use throughline_core::{Call, Entry, Input, Kind, Outcome, Part, Report, Return, Role};

const PAIRS: usize = 3_000;
const ROUNDS: usize = 9;
/// The most that the next request may take of the first, in hundredths.
const AIM_PERCENT: f64 = 5.0;

fn main() {
    let entries = history(PAIRS + 1);
    let sizes: Vec<Tokens> = entries.iter().map(size_of).collect();
    let (first, next) = (entries.len() - 2, entries.len());
    let nothing = Decisions::default();
    let decided = planned(&entries[..first], &sizes[..first], &nothing).decisions;
    let next_plan = planned(&entries[..next], &sizes[..next], &decided);
    assert!(!next_plan.is_step, "the next request takes a step of its own, which is another matter");
    let (mut from_nothing, mut carried, mut applied) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        from_nothing.push(timed(|| drop(black_box(planned(&entries[..first], &sizes[..first], &nothing)))));
        carried.push(timed(|| drop(black_box(planned(&entries[..next], &sizes[..next], &decided)))));
        applied.push(timed(|| drop(black_box(next_plan.apply(&entries[..next], &mut Report::default())))));
    }
    let (from_nothing, carried, applied) = (median(from_nothing), median(carried), median(applied));
    println!("\n{PAIRS} pairs; medians of {ROUNDS} rounds; aim {AIM_PERCENT} %\n");
    println!("plan from nothing        {:>9.1} ms", from_nothing.as_secs_f64() * 1e3);
    for (name, time) in
        [("plan of the next request", carried), ("the same, and carried out", carried + applied)]
    {
        let percent = time.as_secs_f64() / from_nothing.as_secs_f64() * 100.0;
        let verdict = if percent <= AIM_PERCENT { "ok" } else { "MISSED" };
        println!("{name:<25}{:>9.1} ms {percent:>7.2} % {verdict}", time.as_secs_f64() * 1e3);
    }
}

fn planned(entries: &[Entry], sizes: &[Tokens], before: &Decisions) -> Plan {
    let budget = Budget { prompt: Some(Tokens(150_000)), tool_history: None, ..Budget::default() };
    let planner = Planner { budget: &budget, rules: &ToolRules::default(), count: &count, recall: true };
    planner.plan(Measured { entries, sizes, besides: Tokens(0) }, before).expect("the budget is large enough")
}

/// Stands for a tokenizer, which takes longer: the ratio is an upper bound.
fn count(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}

fn size_of(entry: &Entry) -> Tokens {
    let text = match &entry.kind {
        Kind::Called(call) => call.input.text().len(),
        Kind::Returned(returned) => {
            returned.parts.iter().filter_map(Part::as_text).map(|text| text.len()).sum()
        }
        _ => 100,
    };
    Tokens(text as u64 / 4 + 9)
}

fn history(pairs: usize) -> Vec<Entry> {
    let mut entries = vec![Entry::said(Role::User, "Mend what is broken.")];
    for at in 0..pairs {
        let id = format!("call_{at}");
        let (name, arguments) = match at % 4 {
            0 => ("Read", format!(r#"{{"file_path":"src/module_{}/part_{at}.rs"}}"#, at % 50)),
            1 => ("Bash", format!(r#"{{"command":"cargo test -p crate_{at}"}}"#)),
            2 => ("Grep", format!(r#"{{"pattern":"symbol_{at}"}}"#)),
            _ => (
                "Edit",
                format!(
                    r#"{{"file_path":"src/part_{at}.rs","old_string":"{}"}}"#,
                    "let a_b = c;\\n".repeat(30)
                ),
            ),
        };
        let lines = 10 + at * 7 % 60;
        let text: String = (0..lines)
            .map(|line| format!("{line}: let value_{at}_{line} = compute_{line}(input, {at});\n"))
            .collect();
        entries.push(Entry::new(Kind::Called(Call {
            id: id.as_str().into(),
            item_id: None,
            name: name.into(),
            namespace: None,
            input: Input::Arguments(arguments.into()),
        })));
        entries.push(Entry::new(Kind::Returned(Return {
            call_id: Some(id.into()),
            item_id: None,
            name: None,
            parts: vec![Part::text(text)],
            outcome: Outcome::Ok,
            freeform: false,
        })));
    }
    entries
}

fn timed(work: impl Fn()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
