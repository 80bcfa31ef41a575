//! `throughline run` and `throughline chat`: the tool loop, for people and for programs.
//!
//! The model's words go to standard output as they come, what the tools do to standard error, so that
//! `throughline run … > answer.txt` holds the answer. With `--json` every frame goes to standard output, one a line.

mod console;
mod face;
mod frames;
mod instructions;
mod session;
mod typed;

use crate::args::{Args, ChatArgs, RunArgs};
use crate::exit::CommandError;
use crate::{output, signals};
pub use face::about;
pub use session::{CONFINED_SHELL, shell};

use console::Console;
use face::Face;
use frames::Frames;
use session::{Session, Summary};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use throughline_core::{Conclusion, Ending, Text};
use throughline_gateway::turn::{Finished, Watch};
use typed::Typed;

/// Runs one turn.
pub fn run(asked: &RunArgs, args: &Args) -> Result<(), CommandError> {
    let prompt = prompt(asked.prompt.as_deref())?;
    let console = Arc::new(Console::new(!args.no_pager));
    on_runtime(async {
        let session = Session::open(&asked.talk, args, Arc::clone(&console)).await?;
        let ended = turn(&session, &console, &prompt, &asked.talk.image, args).await;
        session.close().await;
        verdict(&ended?)
    })
}

/// Has a conversation in the terminal.
pub fn chat(asked: &ChatArgs, args: &Args) -> Result<(), CommandError> {
    let console = Arc::new(Console::new(!args.no_pager));
    on_runtime(async {
        let session = Session::open(&asked.talk, args, Arc::clone(&console)).await?;
        let talked = talk(&session, &console, &asked.talk.image, args).await;
        session.close().await;
        talked
    })
}

async fn talk(
    session: &Session,
    console: &Console,
    images: &[PathBuf],
    args: &Args,
) -> Result<(), CommandError> {
    if !args.quiet && std::io::stdin().is_terminal() {
        output::remark(
            "Say what you want. /exit ends it, /help says what else there is, Ctrl-C stops a turn.",
        );
    }
    let mut images = images;
    while let Some(line) = console.line("> ").await {
        match typed::read(&line) {
            Typed::Nothing => {}
            Typed::Exit => break,
            Typed::Help => output::remark(typed::HELP),
            Typed::Unknown(word) => {
                output::remark(&format!("{word} means nothing here; /help lists what does"));
            }
            Typed::Prompt(prompt) => {
                let finished = turn(session, console, prompt, images, args).await?;
                images = &[];
                if let Err(error) = verdict(&finished) {
                    output::report_error(&error);
                }
            }
        }
    }
    Ok(())
}

/// Runs a turn, and says what it took.
async fn turn(
    session: &Session,
    console: &Console,
    prompt: &str,
    images: &[PathBuf],
    args: &Args,
) -> Result<Finished, CommandError> {
    let task = session.task(prompt, images).await?;
    let cancel = signals::Cancelling::new();
    let mut watch: Box<dyn Watch> = match args.json {
        true => Box::new(Frames::new()),
        false => Box::new(Face::new(args.quiet, console)),
    };
    if args.json {
        output::print(&frames::begun(&task, session))?;
    }
    let finished = session.drive(&task, &mut *watch, cancel.token()).await;
    drop(watch);
    let finished = finished?;
    let cost = finished.usage.cost(session.config());
    let summary = Summary::new(&task, &finished, cost);
    if args.json {
        output::print(&frames::finished(&summary))?;
    } else if !args.quiet {
        output::remark(&face::summed_up(&summary));
    }
    Ok(finished)
}

/// Returns how a turn ended as the command's own end.
fn verdict(finished: &Finished) -> Result<(), CommandError> {
    let no = |text: &str| Err(CommandError::no(text.to_owned()));
    match &finished.conclusion {
        Conclusion::Answer(Ending::Failed(failure)) => {
            let is_store = failure.code.as_deref() == Some("throughline_store_failed");
            let message = failure.message.to_string();
            Err(if is_store { CommandError::store(message) } else { CommandError::backend(message) })
        }
        Conclusion::Answer(Ending::Broken) => {
            Err(CommandError::backend("the backend's answer broke off, again and again".to_owned()))
        }
        Conclusion::Answer(Ending::Cancelled) => no("called off"),
        Conclusion::Limited => no("all tool calls that it may make are used up; see --max-tool-calls"),
        conclusion if conclusion.word() == "completed" => Ok(()),
        conclusion => Err(CommandError::no(format!("the answer is {}", conclusion.word()))),
    }
}

/// Returns what the user typed, or what comes in by standard input.
fn prompt(typed: Option<&str>) -> Result<Text, CommandError> {
    let text = match typed {
        Some(text) if text != "-" => text.to_owned(),
        typed => {
            if typed.is_none() && std::io::stdin().is_terminal() {
                return Err(CommandError::bad_input("say what is to be done: throughline run \"…\""));
            }
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|source| CommandError::file("standard input", source))?;
            text
        }
    };
    match text.trim() {
        "" => Err(CommandError::bad_input("there is nothing to be done: the prompt is empty")),
        text => Ok(Text::from(text)),
    }
}

fn on_runtime<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let done = runtime.block_on(work);
    // Somebody may still be asked for a line that nobody waits for.
    runtime.shutdown_background();
    done
}
