//! The soak: `just soak` runs it for some minutes, with every fault, and prints what came of it.
//!
//! Needs a PostgreSQL that it may stop and start (tests/postgres/run of the store), and says where that has its disk.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it prints, and ends when it cannot go on")]

#[path = "../tests/it/soak/mod.rs"]
mod soak;
#[path = "../tests/it/talk.rs"]
mod talk;

use soak::{Fault, Plan, own_schema};
use std::path::PathBuf;
use std::time::Duration;

fn main() {
    let Ok(server) = std::env::var("THROUGHLINE_TEST_POSTGRES") else {
        println!("skipped: THROUGHLINE_TEST_POSTGRES is not set; `just soak` sets it");
        return;
    };
    let minutes = std::env::args().skip(1).find_map(|argument| argument.parse::<u64>().ok()).unwrap_or(3);
    let disk = std::env::var_os("SOAK_DISK").map(PathBuf::from);
    // Without a disk of its own, there is none to fill.
    let faults = Fault::ALL[..Fault::ALL.len() - usize::from(disk.is_none())].to_vec();
    let report = soak::soak(&Plan {
        agents: 12,
        count: usize::MAX,
        time: Duration::from_secs(60 * minutes),
        answers: usize::MAX,
        pause: Duration::from_secs(2),
        calm: Duration::from_secs(4),
        every: Duration::from_secs(5),
        faults,
        folder: std::env::temp_dir().join(format!("throughline-soak-{}", std::process::id())),
        url: own_schema(&server, "soak"),
        disk,
    });
    let verdict = &report.verdict;
    println!(
        "answers seen completed: {}; requests that failed and were sent again: {}",
        report.completed, report.refused
    );
    println!("faults injected: {:?}; clocks of the replicas 20 s apart", report.injected);
    println!("longest silence after a fault: {:.1} s", report.silence.as_secs_f64());
    println!("in the history: {} exchanges, {} entries", verdict.exchanges, verdict.entries);
    println!(
        "lost: {}; duplicated: {}; orphaned: {}; damaged: {}",
        verdict.lost.len(),
        verdict.duplicated.len(),
        verdict.orphaned,
        verdict.wrong
    );
    if let Some((one, three)) = report.throughput {
        println!("throughput: {one:.0} answers/s of one replica, {three:.0} of three ({:.2})", three / one);
    }
    for what in verdict.lost.iter().chain(&verdict.duplicated).take(20) {
        println!("  {what}");
    }
    if !verdict.is_clean() {
        std::process::exit(1);
    }
}
