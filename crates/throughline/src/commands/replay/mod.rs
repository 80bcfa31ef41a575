//! `throughline replay`: a recorded run, driven again offline, and compared byte by byte.
//!
//! Exit code 0: identical. 1: something differs, and the first of it is shown. 2: it could not be replayed.
//! Under other settings nothing counts but what would be sent, and to whom.

mod bodies;

use super::history;
use crate::args::{Args, ReplayArgs};
use crate::exit::CommandError;
use crate::output::{self, Ink, counted};
use std::path::Path;
use std::process::{Command, ExitStatus};
use throughline_gateway::config::{Config, Flags, Process, load_to_look};
use throughline_gateway::turn::replay::{self, Difference, ReplayError, Replayed, Tape};
use throughline_store::History;

/// Replays a run, or all runs of a conversation.
pub fn run(asked: &ReplayArgs, args: &Args) -> Result<(), CommandError> {
    if let Some(binary) = asked.against.as_deref().filter(|path| is_program(path)) {
        return with_binary(binary, asked, args);
    }
    let against = asked.against.as_deref().map(config_at).transpose()?;
    let config = history::configured(args)?;
    let history = history::open_to_read(&config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let replayed = runtime.block_on(replay_all(&*history, &asked.run, against.as_ref()))?;
    let ink = Ink::of_stdout();
    let text: String = match args.json {
        true => output::json_lines(&replayed, |writer, (tape, replayed)| {
            replay::write_replayed(writer, tape, replayed, true);
        }),
        false => {
            let manner = Manner { is_other: against.is_some(), full: asked.full };
            replayed.iter().map(|(tape, replayed)| shown(tape, replayed, manner, &ink)).collect()
        }
    };
    output::print(&text)?;
    let words = match against {
        Some(_) => "under these settings something else would be sent",
        None => "the run differs from its record",
    };
    match replayed.iter().map(|(_, replayed)| replayed.differences.len()).sum::<usize>() {
        0 => Ok(()),
        1 => Err(CommandError::no(words.to_owned())),
        count => Err(CommandError::no(format!("{words}, in {count} places"))),
    }
}

/// How much is shown.
#[derive(Clone, Copy)]
struct Manner {
    /// Whether it was driven under other settings, so that all that became of a request is of interest.
    is_other: bool,
    /// Whether nothing is left out.
    full: bool,
}

async fn replay_all(
    history: &dyn History,
    typed: &str,
    against: Option<&Config>,
) -> Result<Vec<(Tape, Replayed)>, CommandError> {
    let tapes = match replay::find(history, typed).await {
        Err(ReplayError::NoSuchTurn(_)) if !typed.starts_with("run_") => {
            let id = history::find(history, typed)
                .await
                .map_err(|error| CommandError::bad_input(error.to_string()))?;
            replay::find(history, id.as_str()).await
        }
        found => found,
    };
    let mut all = Vec::new();
    for tape in tapes.map_err(|error| impossible(&error))? {
        let replayed =
            replay::replay(history, &tape, against.cloned()).await.map_err(|error| impossible(&error))?;
        all.push((tape, replayed));
    }
    Ok(all)
}

fn impossible(error: &ReplayError) -> CommandError {
    CommandError::bad_input(error.to_string())
}

fn config_at(path: &Path) -> Result<Config, CommandError> {
    if let Err(source) = std::fs::metadata(path) {
        let words = "it is to be a configuration, or another version of this program";
        return Err(CommandError::bad_input(format!("--against {}: {source}; {words}", path.display())));
    }
    let flags = Flags { config: Some(path.to_owned()), ..Flags::default() };
    load_to_look(&Process, &flags).map_err(|errors| super::config::bad_config(&errors))
}

/// Says whether a file is a program, rather than a configuration.
fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        path.extension().is_none_or(|extension| extension != "toml")
            && std::fs::metadata(path)
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    path.extension().is_some_and(|extension| extension == "exe")
}

/// Has another version of this program replay the run; its end is ours.
fn with_binary(binary: &Path, asked: &ReplayArgs, args: &Args) -> Result<(), CommandError> {
    let mut command = Command::new(binary);
    command.args(["replay", &asked.run]);
    for (name, path) in [("--config", &args.config), ("--data", &args.data)] {
        if let Some(path) = path {
            command.arg(name).arg(path);
        }
    }
    for (name, is_wanted) in [("--json", args.json), ("--full", asked.full)] {
        if is_wanted {
            command.arg(name);
        }
    }
    let ended = command.status();
    let ended = ended.map_err(|source| CommandError::file(binary.display(), source))?;
    match ended.code() {
        Some(0) => Ok(()),
        Some(1) => Err(CommandError::no(format!("{} differs from the record", binary.display()))),
        _ => Err(CommandError::bad_input(format!(
            "{} could not replay it: {}",
            binary.display(),
            end_of(ended)
        ))),
    }
}

fn end_of(status: ExitStatus) -> String {
    status.code().map_or_else(|| "it was killed".to_owned(), |code| format!("exit code {code}"))
}

fn shown(tape: &Tape, replayed: &Replayed, manner: Manner, ink: &Ink) -> String {
    let Replayed { requests, events, calls, is_finished, differences } = replayed;
    let counts = [
        counted(*requests as u64, "request", "requests"),
        counted(*events as u64, "provider event", "provider events"),
        counted(*calls as u64, "tool call", "tool calls"),
    ];
    let counts = counts.join(", ");
    let unfinished = if *is_finished { "" } else { "; the run was cut off, and is replayed up to there" };
    let Some(first) = differences.first() else {
        return format!("{}: {} ({counts}){unfinished}\n", tape.turn, ink.good("identical"));
    };
    let is_told = |one: &&Difference| manner.full || manner.is_other && one.request == first.request;
    let count = differences.iter().take_while(is_told).count().max(1);
    let told: String = differences[..count].iter().map(|one| diff(one, manner.full, ink)).collect();
    let more = match differences.len() - count {
        0 => String::new(),
        1 => "and 1 more difference; --full shows it\n".to_owned(),
        more => format!("and {more} more differences; --full shows them\n"),
    };
    format!("{}: {} ({counts}){unfinished}\n{told}{more}", tape.turn, ink.bad("differs"))
}

fn diff(difference: &Difference, full: bool, ink: &Ink) -> String {
    let request = difference.request.map(|number| format!("request {number}: ")).unwrap_or_default();
    let path = if difference.path.is_empty() { String::new() } else { format!(" at {}", difference.path) };
    let block = |sign: char, text: &str| -> String {
        ink.tame(text).lines().map(|line| format!("{sign} {line}\n")).collect()
    };
    let sides = match &difference.bodies {
        Some(both) => bodies::compared(both, full, ink),
        None => {
            let (recorded, replayed) = (block('-', &difference.recorded), block('+', &difference.replayed));
            format!("{}{}", ink.bad(&recorded), ink.good(&replayed))
        }
    };
    format!("{request}{} {}{path}\n{sides}", difference.place.words(), difference.place.verb())
}
