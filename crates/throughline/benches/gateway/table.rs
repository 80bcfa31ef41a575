//! What was measured, as lines to read.

use crate::cases::Section;
use crate::load::Measured;
use crate::process::Target;
use std::cell::RefCell;

thread_local! {
    /// What the targets before cost in this section: name, CPU, and the latencies of the first.
    static BEFORE: RefCell<Vec<(&'static str, f64, f64, f64)>> = const { RefCell::new(Vec::new()) };
}

/// Prints the head of a section.
pub fn head(section: &Section) {
    println!("\n{}", section.name);
    println!(
        "  {:<12}{:>9}{:>14}{:>9}{:>9}{:>11}{:>11}{:>8}",
        "", "req/s", "CPU s/1,000", "÷plain", "÷durable", "added p50", "added p99", "RSS MB"
    );
    BEFORE.with_borrow_mut(Vec::clear);
}

/// Prints what one target did.
pub fn row(section: &Section, target: &Target, measured: &Measured) {
    let (p50, p99) = (quantile(&measured.latencies, 0.5), quantile(&measured.latencies, 0.99));
    let cpu = measured.cpu_per_thousand;
    BEFORE.with_borrow_mut(|before| {
        before.push((target.name, cpu, p50, p99));
        let (_, _, direct_p50, direct_p99) = before[0];
        println!(
            "  {:<12}{:>9.0}{:>14.3}{:>9}{:>9}{:>8.2} ms{:>8.2} ms{:>8.0}{}",
            target.name,
            measured.requests_per_second,
            cpu,
            ratio(before, "plain", cpu),
            ratio(before, "durable", cpu),
            p50 - direct_p50,
            p99 - direct_p99,
            measured.resident_mb,
            streamed(section, measured)
        );
    });
}

/// Prints what the gateway was to cost.
pub fn end(section: &Section) {
    let Some((aim, than)) = section.aim else { return };
    BEFORE.with_borrow(|before| {
        let cost = before.last().map_or(0.0, |(_, cpu, ..)| *cpu);
        let verdict = match before.iter().find(|(name, ..)| *name == than) {
            Some((_, yardstick, ..)) if cost <= aim * yardstick => "reached",
            _ => "missed",
        };
        println!("  aim: at most {aim}× {than}, {verdict}");
    });
}

fn ratio(before: &[(&str, f64, f64, f64)], name: &str, cpu: f64) -> String {
    let yardstick = before.iter().find(|(of, ..)| *of == name);
    yardstick
        .filter(|(_, cost, ..)| *cost > 0.0)
        .map_or_else(String::new, |(_, cost, ..)| format!("{:.2}×", cpu / cost))
}

fn streamed(section: &Section, measured: &Measured) -> String {
    if measured.first_deltas.is_empty() {
        return String::new();
    }
    let first = quantile(&measured.first_deltas, 0.5);
    let lag = match section.answer {
        "paced" => format!(
            ", lag of a delta p50 {:.2} ms, p99 {:.2} ms",
            quantile(&measured.lags, 0.5),
            quantile(&measured.lags, 0.99)
        ),
        _ => String::new(),
    };
    format!("  first delta {first:.2} ms{lag}")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place among a few thousand times"
)]
fn quantile(sorted: &[f64], at: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * at).round() as usize;
    sorted.get(place).copied().unwrap_or_default()
}
