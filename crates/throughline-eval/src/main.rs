//! `just eval-compaction FILES…`: the tables of `docs/compaction.md`, for recorded runs of your own.

use clap::Parser;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use throughline_eval::run::{LineError, Options, run};
use throughline_eval::table;

/// Measures how much of what is needed later survives compaction.
#[derive(Debug, Parser)]
struct Args {
    /// Files of recorded runs, one on each line: `{"messages": [Chat Completions messages]}`
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Budgets for calls and results, in tokens
    #[arg(long, value_delimiter = ',', default_value = "2000,4000,8000,16000")]
    budgets: Vec<u64>,
    /// Count facts in the model's words as needed, too
    #[arg(long)]
    text: bool,
    /// What to measure: both, rolling, handover
    #[arg(long, default_value = "both", value_parser = ["both", "rolling", "handover"])]
    mode: String,
    /// Take every so manieth run only
    #[arg(long, default_value_t = 1)]
    stride: usize,
    /// Begin with this run, counted from 0
    #[arg(long, default_value_t = 0)]
    from: usize,
    /// Take at most so many runs of each file
    #[arg(long)]
    limit: Option<usize>,
    /// Write everything that was counted to a file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
enum EvalError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Line { path: PathBuf, source: LineError },
}

fn main() -> ExitCode {
    match evaluate(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn evaluate(args: &Args) -> Result<(), EvalError> {
    let options = Options {
        budgets: args.budgets.clone(),
        with_words: args.text,
        rolling: args.mode != "handover",
        handover: args.mode != "rolling",
    };
    let mut all = serde_json::Map::new();
    for path in &args.files {
        let at = |source| EvalError::File { path: path.clone(), source };
        let text = std::fs::read_to_string(path).map_err(at)?;
        let lines =
            text.split('\n').filter(|line| !line.is_empty()).skip(args.from).step_by(args.stride.max(1));
        let lines: Vec<&str> = lines.take(args.limit.unwrap_or(usize::MAX)).collect();
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let outcome = run(&lines, &options, &|done| progress(&name, done, lines.len()));
        let outcome = outcome.map_err(|source| EvalError::Line { path: path.clone(), source })?;
        let table = table::markdown(&name, &outcome, args.text);
        io::stdout().write_all(table.as_bytes()).map_err(at)?;
        all.insert(name, table::json(&outcome));
    }
    match &args.json {
        Some(path) => write(path, &serde_json::Value::Object(all)),
        None => Ok(()),
    }
}

fn write(path: &Path, value: &serde_json::Value) -> Result<(), EvalError> {
    std::fs::write(path, value.to_string())
        .map_err(|source| EvalError::File { path: path.to_owned(), source })
}

/// Shows how far it is, where somebody may be watching.
fn progress(name: &str, done: usize, all: usize) {
    const WIDTH: usize = 30;
    let mut stderr = io::stderr();
    if !stderr.is_terminal() {
        return;
    }
    let filled = WIDTH * done / all.max(1);
    let bar = format!("{}{}", "#".repeat(filled), " ".repeat(WIDTH - filled));
    let end = if done == all { "\r\x1b[K" } else { "" };
    let _ = write!(stderr, "\r{name} [{bar}] {done} of {all}{end}");
}
