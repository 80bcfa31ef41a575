//! Cases that are measured against one another in one run.
//!
//! Times of a machine mean little elsewhere, so what is printed is ratios of one run: each round runs every
//! case once, and the medians over the rounds are compared.

#![expect(clippy::print_stdout, reason = "a bench is read on the terminal")]

use serde_json::Value;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;

/// Cases, each of which names the one that it is compared with.
#[derive(Default)]
pub struct Rounds(Vec<Case>);

struct Case {
    name: String,
    yardstick: usize,
    aim: Option<f64>,
    work: Box<dyn Fn()>,
    times: Vec<Duration>,
}

impl Rounds {
    /// Adds what the cases after it are compared with.
    pub fn yardstick(&mut self, name: String, work: impl Fn() + 'static) {
        let yardstick = self.0.len();
        self.0.push(Case { name, yardstick, aim: None, work: Box::new(work), times: Vec::new() });
    }

    /// Adds a case, and the most that it may take as a multiple of the yardstick before it.
    pub fn case(&mut self, name: String, aim: Option<f64>, work: impl Fn() + 'static) {
        let yardstick = self.0.last().map_or(0, |case| case.yardstick);
        self.0.push(Case { name, yardstick, aim, work: Box::new(work), times: Vec::new() });
    }

    /// Measures all cases and prints them.
    pub fn run(mut self) {
        for round in 0..=ROUNDS {
            for case in &mut self.0 {
                let start = Instant::now();
                (case.work)();
                // The first round warms up.
                if round > 0 {
                    case.times.push(start.elapsed());
                }
            }
        }
        self.print();
    }

    fn print(mut self) {
        let medians: Vec<Duration> = self.0.iter_mut().map(|case| median(&mut case.times)).collect();
        println!("\n{ROUNDS} rounds; ratios against serde_json reading and printing the same bytes\n");
        println!("{:<40} {:>9} {:>7}   aim", "case", "us", "ratio");
        for (case, time) in self.0.iter().zip(&medians) {
            let ratio = time.as_secs_f64() / medians[case.yardstick].as_secs_f64();
            let verdict = match case.aim {
                Some(aim) if ratio <= aim => format!("{aim:.1} ok"),
                Some(aim) => format!("{aim:.1} MISSED"),
                None => "-".to_owned(),
            };
            println!("{:<40} {:>9.1} {ratio:>7.2}   {verdict}", case.name, time.as_secs_f64() * 1e6);
        }
    }
}

/// Does what every case is compared with.
pub fn parse_and_print(text: &str) {
    let value: Value = serde_json::from_str(black_box(text)).expect("the sample is JSON");
    black_box(value.to_string());
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
