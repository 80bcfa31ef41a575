//! `throughline demo`: the whole story in a minute, offline, with every claim checked.
//!
//! Two simulated backends of different dialects, of which one rejects tool items; an agent with real tools in a
//! scratch project; compaction, two switches, a recall, a replay. What happens is what the commands of this
//! program do: the demo types them, shows them, and holds what they claim against what the backends recorded
//! and against the files.

mod checks;
mod project;
mod story;

use super::open::open_browser;
use crate::args::{Args, DemoArgs};
use crate::exit::CommandError;
use crate::output::{self, Ink};
use crate::private;
use crate::signals;
use checks::Checks;
use project::Project;
use std::process::{Child, Command, Stdio};
use story::Story;
use tempfile::TempDir;
use throughline_sim::{Script, Sim, SimOptions};

/// What the story is played with. The folder is gone with it.
struct Stage {
    folder: TempDir,
    alpha: Sim,
    beta: Sim,
    gateway: Gateway,
}

/// The gateway, for whoever wants to look on in a browser.
struct Gateway {
    child: Child,
    url: String,
}

/// Tells the story.
pub fn run(asked: DemoArgs, args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    runtime.block_on(async {
        let stage = Stage::set().await?;
        let stopped = signals::stop();
        let told = tokio::select! {
            told = tell(&stage, asked, args) => told,
            () = stopped => match asked.once {
                true => Err(CommandError::no("stopped before the story was told")),
                false => Ok(()),
            },
        };
        stage.strike().await;
        told
    })
}

async fn tell(stage: &Stage, asked: DemoArgs, args: &Args) -> Result<(), CommandError> {
    let ink = Ink::of_stdout();
    let mut story = Story { stage, ink, checks: Checks::default(), quiet: args.quiet };
    output::print(&format!("{} {}\n", ink.bold("The inspector:"), stage.gateway.url))?;
    if !asked.once && !asked.no_browser {
        open_browser(&stage.gateway.url);
    }
    story.tell().await?;
    let failed = story.checks.failed();
    let counted = format!("{} of {} claims held.\n", story.checks.held(), story.checks.made());
    output::print(&if failed == 0 { ink.good(&counted) } else { ink.bad(&counted) })?;
    if !asked.once {
        let url = &stage.gateway.url;
        output::print(&format!("Look around at {url}; Ctrl-C ends it and removes everything.\n"))?;
        signals::stop().await;
    }
    match failed {
        0 => Ok(()),
        _ => Err(CommandError::no(format!("{failed} claims did not hold"))),
    }
}

impl Stage {
    async fn set() -> Result<Self, CommandError> {
        let temporary = std::env::temp_dir();
        let scratch =
            private::temporary_folder("throughline-demo-").map_err(|source| at(&temporary, source))?;
        let folder = scratch.path();
        Project::write(&folder.join("bakery")).map_err(|source| at(folder, source))?;
        let alpha = SimOptions { script: Some(script(story::ALPHA)?), ..SimOptions::default() };
        let beta = SimOptions { reject_native: true, seed: "beta".to_owned(), ..SimOptions::default() };
        let alpha = Sim::start(alpha).await.map_err(|source| at(folder, source))?;
        let beta = Sim::start(beta).await.map_err(|source| at(folder, source))?;
        let config = story::config(&alpha.base_url(), &beta.base_url());
        let path = folder.join("throughline.toml");
        private::write(&path, config).map_err(|source| at(&path, source))?;
        let gateway = Gateway::start(folder)?;
        Ok(Self { folder: scratch, alpha, beta, gateway })
    }

    /// Returns this program, told where the story's configuration and record are.
    fn command(&self, words: &[&str]) -> Result<Command, CommandError> {
        throughline(self.folder.path(), words)
    }

    async fn strike(self) {
        drop(self.gateway);
        self.alpha.stop().await;
        self.beta.stop().await;
        // Whoever keeps something open in there keeps it; nothing is at stake.
        drop(self.folder);
    }
}

impl Gateway {
    fn start(folder: &std::path::Path) -> Result<Self, CommandError> {
        let mut command = throughline(folder, &["serve", "--listen", "127.0.0.1:0"])?;
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|source| at(folder, source))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = std::io::BufReader::new(stdout);
            std::io::BufRead::read_line(&mut stdout, &mut line).map_err(|source| at(folder, source))?;
        }
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.map(|url| url.trim_end_matches(',').to_owned());
        let mut gateway = Self { child, url: String::new() };
        gateway.url = url.ok_or_else(|| CommandError::bad_input("the gateway did not start"))?;
        Ok(gateway)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns this program with those words, in the story's surroundings and no others.
fn throughline(folder: &std::path::Path, words: &[&str]) -> Result<Command, CommandError> {
    let program = std::env::current_exe().map_err(|source| CommandError::file("this program", source))?;
    let mut command = Command::new(program);
    command.args(words).current_dir(folder);
    command.arg("--config").arg(folder.join("throughline.toml")).arg("--data").arg(folder.join("data"));
    Ok(command)
}

fn script(text: &str) -> Result<Script, CommandError> {
    Script::parse(text).map_err(|error| CommandError::bad_input(format!("the demo's script: {error}")))
}

fn at(path: &std::path::Path, source: std::io::Error) -> CommandError {
    CommandError::file(path.display(), source)
}
