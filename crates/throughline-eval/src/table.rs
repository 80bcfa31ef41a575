//! The tables, as Markdown in the reference's form, and everything that was counted as JSON.

use crate::handover::Handed;
use crate::policy::float;
use crate::rolling::{DISTANCE_MAX, Rolled, Share};
use crate::run::Outcome;
use serde_json::{Map, Value, json};

/// Returns the tables of a file.
#[must_use]
pub fn markdown(name: &str, outcome: &Outcome, with_words: bool) -> String {
    let needed = if with_words { "args+text" } else { "args" };
    let mut out =
        format!("\n## {name} ({} trajectories, tokens=o200k_base, needed={needed})\n", outcome.runs);
    if let Some((_, base)) = outcome.rolling.first() {
        out += &facts(base);
        out += "\n| policy | tool tok % | NFR % | far % | hard % | hard&far % | step-ok % | cache % | cost % | recall % | µs/plan |\n";
        out += "|---|---|---|---|---|---|---|---|---|---|---|\n";
        outcome.rolling.iter().for_each(|(name, rolled)| out += &rolled_row(name, rolled, base));
    }
    if let Some((_, base)) = outcome.handover.first() {
        let (times, mean) = (base.times, float(base.tool_tokens) / float(base.times.max(1)));
        let (all, hard) = (base.all.of, base.hard.of);
        out += &format!(
            "\nHandover: {times} switches, {all} needed facts (hard {hard}), mean full tool history {mean:.0} tok\n"
        );
        out += "\n| policy | mean tool tok | tok % | HFR % | HFR hard % | HFR-ctx % | HFR-ctx hard % | recall hard % | µs/plan |\n";
        out += "|---|---|---|---|---|---|---|---|---|\n";
        outcome.handover.iter().for_each(|(name, handed)| out += &handed_row(name, handed, base));
    }
    out
}

/// The policies that Throughline is compared with in the overview.
const OTHERS: [&str; 6] = [
    "drop-oldest",
    "fair head+tail",
    "mask-oldest",
    "clear_tool_uses k=3",
    "ladder+digest",
    "dedup+skim+args",
];

/// What was counted over some runs, with identifiers and with ordinary words as facts.
#[derive(Debug, Default)]
pub struct Overview {
    /// The name of the runs.
    pub name: String,
    /// With identifiers.
    pub identifiers: Outcome,
    /// With words.
    pub words: Outcome,
}

/// Returns the table of `docs/compaction.md`. In each column Throughline's figure, and the best of the others behind it.
#[must_use]
pub fn overview(all: &[Overview], budgets: &[u64]) -> String {
    let mut out = String::from(
        "| runs | budget | identifiers | words | needed | far | prefix | cost | recall | refused |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for of in all {
        for (at, budget) in budgets.iter().enumerate() {
            let label = if at == 0 { of.label() } else { String::new() };
            let cells = of.cells(*budget);
            out += &format!("| {label} | {budget} | {} |\n", cells.join(" | "));
        }
    }
    out
}

impl Overview {
    fn label(&self) -> String {
        let facts = self.identifiers.handover.first().map_or(0, |(_, handed)| handed.hard.of);
        let words = self.words.handover.first().map_or(0, |(_, handed)| handed.hard.of);
        format!("{} ({} runs, {facts} identifiers, {words} words)", self.name, self.identifiers.runs)
    }

    fn cells(&self, budget: u64) -> Vec<String> {
        let name = |policy: &str| format!("{policy} @{budget}");
        let handed = |outcome: &Outcome| {
            let kept = |policy: &str| ratio(handed_of(outcome, &name(policy)).hard_in_context);
            beside_best(kept("throughline"), OTHERS.iter().map(|policy| kept(policy)), f64::max)
        };
        let rolled = |policy: &str| rolled_of(&self.identifiers, &name(policy));
        let ours = rolled("throughline");
        let kept = |share: fn(&Rolled) -> Share| {
            let others = OTHERS.iter().map(|policy| ratio(share(&rolled(policy))));
            beside_best(ratio(share(&ours)), others, f64::max)
        };
        let all = rolled_of(&self.identifiers, "keep-all").cost();
        let cost = |policy: &str| 100.0 * rolled(policy).cost() / all;
        vec![
            handed(&self.identifiers),
            handed(&self.words),
            kept(|rolled| rolled.hard),
            kept(|rolled| rolled.hard_far),
            percent(ours.prefix, ours.followed),
            beside_best(cost("throughline"), OTHERS.iter().map(|policy| cost(policy)), f64::min),
            recall_price(&ours.recalls),
            ours.refused.to_string(),
        ]
    }
}

/// Returns a share in hundredths.
fn ratio(share: Share) -> f64 {
    100.0 * float(share.ok) / float(share.of.max(1))
}

fn beside_best(ours: f64, others: impl Iterator<Item = f64>, better: fn(f64, f64) -> f64) -> String {
    let best = others.reduce(better).unwrap_or_default();
    format!("{ours:.1} ({best:.1})")
}

/// Returns what half of the recalls took at most, and how many brought the fact that was looked for.
fn recall_price(recalls: &[(u64, bool)]) -> String {
    let mut tokens: Vec<u64> = recalls.iter().map(|(tokens, _)| *tokens).collect();
    tokens.sort_unstable();
    let Some(median) = tokens.get(tokens.len() / 2) else { return "-".to_owned() };
    let brought = recalls.iter().filter(|(_, brought)| *brought).count();
    format!("{median} ({} %)", 100 * brought / recalls.len().max(1))
}

fn handed_of(outcome: &Outcome, policy: &str) -> Handed {
    let found = outcome.handover.iter().find(|(name, _)| name == policy);
    found.map(|(_, handed)| handed.clone()).unwrap_or_default()
}

fn rolled_of(outcome: &Outcome, policy: &str) -> Rolled {
    let found = outcome.rolling.iter().find(|(name, _)| name == policy);
    found.map(|(_, rolled)| rolled.clone()).unwrap_or_default()
}

/// Returns everything that was counted, under the reference's names.
#[must_use]
pub fn json(outcome: &Outcome) -> Value {
    let rolling: Map<String, Value> =
        outcome.rolling.iter().map(|(name, rolled)| (name.clone(), rolled_json(rolled))).collect();
    let handover: Map<String, Value> =
        outcome.handover.iter().map(|(name, handed)| (name.clone(), handed_json(handed))).collect();
    json!({"rolling": rolling, "handover": handover})
}

fn facts(base: &Rolled) -> String {
    let mean = |tokens: u64| float(tokens) / float(base.steps.max(1));
    format!(
        "steps {}, steps with needed facts {}, needed facts {} (hard {}, far {}, hard&far {}); \
         result-distance quantiles {{{}}}; mean tool-history {:.0} tok/step of {:.0}\n",
        base.steps,
        base.whole_steps.of,
        base.all.of,
        base.hard.of,
        base.far.of,
        base.hard_far.of,
        quantiles(&base.distances),
        mean(base.tool_tokens),
        mean(base.tokens),
    )
}

fn quantiles(distances: &[u64]) -> String {
    let total: u64 = distances.iter().sum();
    let reached = |share: f64| {
        let mut sum = 0;
        (0..=DISTANCE_MAX).find(|at| {
            let here = distances.get(*at).copied().unwrap_or_default();
            sum += here;
            here > 0 && float(sum) >= share * float(total)
        })
    };
    let named =
        [0.5, 0.75, 0.9, 0.95].into_iter().filter_map(|share| Some(format!("{share}: {}", reached(share)?)));
    named.collect::<Vec<String>>().join(", ")
}

fn rolled_row(name: &str, rolled: &Rolled, base: &Rolled) -> String {
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        percent(rolled.tool_tokens, base.tool_tokens),
        share(rolled.all),
        share(rolled.far),
        share(rolled.hard),
        share(rolled.hard_far),
        share(rolled.whole_steps),
        percent(rolled.prefix, rolled.tokens),
        percent_of(rolled.cost(), base.cost()),
        share(rolled.recalled),
        rolled.nanos / 1000 / u128::from(rolled.steps.max(1)),
    )
}

fn handed_row(name: &str, handed: &Handed, base: &Handed) -> String {
    format!(
        "| {name} | {:.0} | {} | {} | {} | {} | {} | {} | {} |\n",
        float(handed.tool_tokens) / float(handed.times.max(1)),
        percent(handed.tool_tokens, base.tool_tokens),
        share(handed.all),
        share(handed.hard),
        share(handed.in_context),
        share(handed.hard_in_context),
        share(handed.hard_recalled),
        handed.nanos / 1000 / u128::from(handed.times.max(1)),
    )
}

fn share(share: Share) -> String {
    percent(share.ok, share.of)
}

fn percent(part: u64, whole: u64) -> String {
    percent_of(float(part), float(whole))
}

fn percent_of(part: f64, whole: f64) -> String {
    if whole == 0.0 { "-".to_owned() } else { format!("{:.1}", 100.0 * part / whole) }
}

fn rolled_json(rolled: &Rolled) -> Value {
    let mut counted = json!({
        "steps": rolled.steps, "tok_all": rolled.tokens, "tok_tool": rolled.tool_tokens, "hit": rolled.prefix,
        "followed": rolled.followed, "least_cost": rolled.least_cost(),
        "cost": rolled.cost(), "n": rolled.all.of, "ok": rolled.all.ok, "n_far": rolled.far.of,
        "ok_far": rolled.far.ok, "n_hard": rolled.hard.of, "ok_hard": rolled.hard.ok, "n_hf": rolled.hard_far.of,
        "ok_hf": rolled.hard_far.ok, "ok_recall": rolled.recalled.ok, "st": rolled.whole_steps.of,
        "st_ok": rolled.whole_steps.ok, "plan_us": u64::try_from(rolled.nanos / 1000).unwrap_or(u64::MAX),
    });
    for (distance, count) in rolled.distances.iter().enumerate().filter(|(_, count)| **count > 0) {
        counted[format!("dist_{distance}")] = json!(count);
    }
    counted
}

fn handed_json(handed: &Handed) -> Value {
    json!({
        "sw": handed.times, "tok_tool": handed.tool_tokens, "n": handed.all.of, "ok": handed.all.ok,
        "okc": handed.in_context.ok, "n_hard": handed.hard.of, "ok_hard": handed.hard.ok,
        "okc_hard": handed.hard_in_context.ok, "ok_recall_hard": handed.hard_recalled.ok,
        "plan_us": u64::try_from(handed.nanos / 1000).unwrap_or(u64::MAX),
    })
}
