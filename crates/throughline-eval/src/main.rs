//! `just eval-compaction FILES…`: the table of `docs/compaction.md`, for recorded runs of your own.

use clap::Parser;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use throughline_eval::atoms::Facts;
use throughline_eval::policy::Scope;
use throughline_eval::run::{LineError, Options, Outcome, run};
use throughline_eval::table::{self, Overview};

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
    /// Take ordinary words for facts instead of identifiers
    #[arg(long)]
    words: bool,
    /// Take the budgets for those of the whole prompt, where every step is measured
    #[arg(long)]
    prompt: bool,
    /// Print the table of docs/compaction.md instead of everything
    #[arg(long)]
    overview: bool,
    /// Take all files for one set of runs of this name
    #[arg(long)]
    together: Option<String>,
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
    if args.overview {
        return print_overview(args);
    }
    let facts = if args.words { Facts::Words } else { Facts::Identifiers };
    let scope = if args.prompt { Scope::Prompt } else { Scope::Tools };
    let options = Options {
        budgets: args.budgets.clone(),
        scope,
        facts,
        with_words: args.text,
        rolling: args.mode != "handover",
        handover: args.mode != "rolling",
    };
    let mut outcomes: Vec<(String, Outcome)> = Vec::new();
    for path in &args.files {
        let (name, outcome) = measured(path, args, &options)?;
        if args.together.is_none() {
            print(&table::markdown(&name, &outcome, args.text))?;
        }
        match (&args.together, outcomes.last_mut()) {
            (Some(_), Some((_, sum))) => sum.add(&outcome),
            (together, _) => outcomes.push((together.clone().unwrap_or(name), outcome)),
        }
    }
    if args.together.is_some() {
        outcomes.iter().try_for_each(|(name, sum)| print(&table::markdown(name, sum, args.text)))?;
    }
    let Some(path) = &args.json else { return Ok(()) };
    let all = outcomes.iter().map(|(name, outcome)| (name.clone(), table::json(outcome)));
    write(path, &serde_json::Value::Object(all.collect()))
}

/// Prints the table of docs/compaction.md.
fn print_overview(args: &Args) -> Result<(), EvalError> {
    let identifiers = Options {
        budgets: args.budgets.clone(),
        scope: Scope::Prompt,
        facts: Facts::Identifiers,
        with_words: false,
        rolling: true,
        handover: true,
    };
    let words = Options { facts: Facts::Words, with_words: true, rolling: false, ..identifiers.clone() };
    let mut all: Vec<Overview> = Vec::new();
    for path in &args.files {
        let (name, of_identifiers) = measured(path, args, &identifiers)?;
        let (_, of_words) = measured(path, args, &words)?;
        match (&args.together, all.last_mut()) {
            (Some(_), Some(sum)) => {
                sum.identifiers.add(&of_identifiers);
                sum.words.add(&of_words);
            }
            (together, _) => {
                let name = together.clone().unwrap_or(name);
                all.push(Overview { name, identifiers: of_identifiers, words: of_words });
            }
        }
    }
    print(&table::overview(&all, &args.budgets))
}

/// Measures the runs of a file; they are named like it.
fn measured(path: &Path, args: &Args, options: &Options) -> Result<(String, Outcome), EvalError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| EvalError::File { path: path.to_owned(), source })?;
    let lines = text.split('\n').filter(|line| !line.is_empty()).skip(args.from).step_by(args.stride.max(1));
    let lines: Vec<&str> = lines.take(args.limit.unwrap_or(usize::MAX)).collect();
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let outcome = run(&lines, options, &|done| progress(&name, done, lines.len()));
    outcome.map(|outcome| (name, outcome)).map_err(|source| EvalError::Line { path: path.to_owned(), source })
}

fn print(table: &str) -> Result<(), EvalError> {
    let at = |source| EvalError::File { path: PathBuf::from("standard output"), source };
    io::stdout().write_all(table.as_bytes()).map_err(at)
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
