//! What the turns of one command share: the gateway, the tools, the conversation.

use super::console::{Asking, Console};
use super::instructions::Instructions;
use crate::args::{Args, TalkArgs};
use crate::commands::{history, serve, switch};
use crate::exit::CommandError;
use crate::output;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throughline_core::{ConversationId, Text, Usage};
use throughline_gateway::config::{Config, Confine, Mcp, McpWay, Process, Tools, protected_paths};
use throughline_gateway::gateway::{Gateway, mint};
use throughline_gateway::routing::{Asked, Reason, route};
use throughline_gateway::turn::workbench::Workbench;
use throughline_gateway::turn::{
    self, Finished, Manner, Minted, Task, TurnError, Watch, image_item, replay, said_item,
};
use throughline_sim::Sim;
use throughline_store::History;
use throughline_tools::mcp::{ServerSettings, ServerTransport};
use throughline_tools::{
    Confinement, Context, Launcher, Limits, ProtectedPath, Shell, ShellSettings, Toolbox, Workdir,
};
use tokio_util::sync::CancellationToken;

/// The hidden command that runs commands confined.
pub const CONFINED_SHELL: &str = "confined-shell";

/// What the turns of one command share.
pub struct Session {
    gateway: Arc<Gateway>,
    config: Config,
    history: Arc<dyn History>,
    bench: Workbench,
    manner: Manner,
    conversation: ConversationId,
    simulated: Option<Sim>,
    /// The directory that the tools work in, from the root on.
    pub cwd: PathBuf,
}

/// What a turn came to, for people and programs.
#[derive(Debug)]
pub struct Summary {
    /// Its id.
    pub run: Text,
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// How it ended, in a word.
    pub conclusion: &'static str,
    /// How many calls were run.
    pub calls: u32,
    /// What all its answers took.
    pub usage: Usage,
    /// What that cost in US dollars, if the prices are known.
    pub cost: Option<f64>,
}

impl Session {
    /// Opens everything that turns need.
    pub async fn open(asked: &TalkArgs, args: &Args, console: Arc<Console>) -> Result<Self, CommandError> {
        let config = history::configured_with_keys(args)?;
        // Before anything is written: a turn that nobody can answer is not worth a record.
        asked.backend.as_deref().map(|typed| switch::chosen(&config, typed)).transpose()?;
        let cwd = asked.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let tools = Tools {
            approve: asked.approve.map_or(config.tools.approve, Into::into),
            network: asked.network || config.tools.network,
            ..config.tools.clone()
        };
        let instructions = Instructions::gather(&cwd);
        let toolbox = toolbox(&cwd, &tools, &config.mcp).await?.protecting(own_files(&config));
        tell_confinement(&toolbox, &tools, args);
        if !args.quiet && !args.json {
            instructions.remarks.iter().for_each(|remark| output::remark(&format!("warning: {remark}")));
        }
        let bench = Workbench::new(toolbox, tools.approve, Box::new(Asking(console)));
        let history = history::open(&config)?;
        let conversation = match &asked.continued {
            Some(typed) => {
                let id = history::find(&*history, typed).await?;
                bench.remember(replay::artifacts_of(&*history, &id).await?);
                id
            }
            None => ConversationId::new(format!("conv_{}", mint())),
        };
        let manner = Manner {
            backend: backend(asked, &config),
            model: asked.model.as_deref().map(Text::from),
            instructions: Some(instructions.text.into()),
            tools: bench.declare().iter().map(Manner::declared).collect(),
            max_tool_calls: asked.max_tool_calls.map_or(tools.max_calls, Into::into),
        };
        let simulated = serve::simulated(&config).await?;
        let base_url = simulated.as_ref().map(Sim::base_url);
        let gateway = Gateway::build(config.clone(), Arc::clone(&history), base_url).await;
        let gateway = Arc::new(gateway.map_err(|error| CommandError::bad_input(error.to_string()))?);
        let cwd = cwd.canonicalize().unwrap_or(cwd);
        Ok(Self { gateway, config, history, bench, manner, conversation, simulated, cwd })
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns what keeps commands in the working directory, or why nothing does.
    pub fn confinement(&self) -> &Confinement {
        self.bench.toolbox().shell().confinement()
    }

    /// Returns what a turn is given.
    pub async fn task(&self, prompt: &str, images: &[PathBuf]) -> Result<Task, CommandError> {
        let (behind, open) = turn::place(&*self.history, &self.conversation).await?;
        let mut parts = Vec::new();
        for path in images {
            parts.push(image(path).await?);
        }
        Ok(Task {
            id: turn::mint_id(),
            conversation: self.conversation.clone(),
            behind,
            open,
            opening: vec![said_item(prompt, &parts)],
            manner: self.manner.clone(),
            compose: self.config.compose.clone(),
            cancel_at: None,
        })
    }

    /// Drives a turn to its end.
    pub async fn drive(
        &self,
        task: &Task,
        watch: &mut dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Finished, CommandError> {
        let driven = turn::drive(&self.gateway, task, &self.bench, &mut Minted, watch, cancel).await;
        driven.map_err(|error| match error {
            TurnError::Store(_) => CommandError::store(error.to_string()),
            TurnError::Unkept(_) | TurnError::Unreadable(_) => CommandError::bad_input(error.to_string()),
        })
    }

    /// Ends what was started.
    pub async fn close(self) {
        if let Some(sim) = self.simulated {
            sim.stop().await;
        }
    }
}

impl Summary {
    /// Returns what a turn came to.
    pub fn new(task: &Task, finished: &Finished, cost: Option<f64>) -> Self {
        Self {
            run: task.id.clone(),
            conversation: task.conversation.clone(),
            conclusion: finished.conclusion.word(),
            calls: finished.calls,
            usage: finished.usage.total().unwrap_or_default(),
            cost,
        }
    }
}

/// Returns the backend that is asked for. A model that no backend lists or maps is the active one's: without its name
/// the backend would take it for one that it does not know, and use its own.
fn backend(asked: &TalkArgs, config: &Config) -> Option<Text> {
    let Some(model) = asked.model.as_deref().filter(|_| asked.backend.is_none()) else {
        return asked.backend.as_deref().map(Text::from);
    };
    let chosen = route(config, &Asked { model: Some(model), ..Asked::default() }, &Default::default());
    let is_active = chosen.is_ok_and(|route| route.reason == Reason::Active);
    is_active.then(|| config.active.clone())
}

async fn toolbox(cwd: &Path, tools: &Tools, servers: &[Mcp]) -> Result<Toolbox, CommandError> {
    let at = |source| CommandError::file(cwd.display(), source);
    let workdir = Workdir::open(cwd).map_err(at)?;
    let launcher = launcher()?;
    let shell = shell(tools).await?;
    let limits = Limits { command_time: tools.command_timeout, ..Limits::default() };
    let mut toolbox = Toolbox::new(workdir, limits, shell);
    for server in servers {
        let settings = ServerSettings { launcher: launcher.clone(), ..server_settings(server) };
        let connected = toolbox.connect(settings).await;
        connected.map_err(|error| CommandError::bad_input(format!("mcp: {error}")))?;
    }
    Ok(toolbox)
}

/// Returns what of our own files no tool may write: what is read at the next start, and the record.
fn own_files(config: &Config) -> Vec<ProtectedPath> {
    let reason = "it decides what throughline does, or holds what it recorded";
    let protected = |path| ProtectedPath { path, reason: reason.to_owned() };
    protected_paths(&Process, config).into_iter().map(protected).collect()
}

/// Returns the shell that commands run with.
pub async fn shell(tools: &Tools) -> Result<Shell, CommandError> {
    let settings = ShellSettings {
        launcher: launcher()?,
        readable: tools.readable.clone(),
        writable: tools.writable.clone(),
        network: tools.network,
        confinement: tools.confinement.map(Confine::policy),
        pass: tools.pass.clone(),
        withheld: tools.withheld.clone(),
        ..ShellSettings::default()
    };
    Shell::new(settings).await.map_err(|source| CommandError::file("the shell", source))
}

/// Returns how commands and servers are started: by this program.
fn launcher() -> Result<Launcher, CommandError> {
    let program = std::env::current_exe().map_err(|source| CommandError::file("this program", source))?;
    Ok(Launcher::Confined { program, arguments: vec![CONFINED_SHELL.into()] })
}

fn server_settings(server: &Mcp) -> ServerSettings {
    let transport = match &server.way {
        McpWay::Command { command, args, env, cwd } => ServerTransport::Stdio {
            command: command.clone(),
            arguments: args.iter().map(Into::into).collect(),
            variables: env.iter().map(|(name, value)| (name.into(), value.expose().into())).collect(),
            directory: cwd.clone(),
        },
        McpWay::Url { url, headers } => ServerTransport::Http {
            url: url.clone(),
            headers: headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
        },
    };
    let settings = ServerSettings::new(server.name.clone(), transport);
    ServerSettings { call_time_max: server.timeout.unwrap_or(settings.call_time_max), ..settings }
}

/// Says what does not confine commands. What the user turned off is not said again to one who asks for silence.
fn tell_confinement(toolbox: &Toolbox, tools: &Tools, args: &Args) {
    let (shell, is_off) = (toolbox.shell(), tools.confinement == Some(Confine::Off));
    if is_off && (args.quiet || args.json) {
        return;
    }
    if let Some(refusal) = shell.refusal() {
        output::remark(&format!("warning: {refusal}; see tools.confinement"));
    } else if shell.confinement().landlock.is_err() {
        let confinement = shell.confinement();
        output::remark(&format!("warning: {confinement}. They run with your rights; see tools.confinement"));
    }
}

/// Reads an image, as the tools do.
async fn image(path: &Path) -> Result<Text, CommandError> {
    let (folder, name) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => (folder, name),
        (_, Some(name)) => (Path::new("."), name),
        _ => return Err(CommandError::bad_input(format!("{}: not a file", path.display()))),
    };
    let at = |source| CommandError::file(path.display(), source);
    let shell = Shell::direct().map_err(at)?;
    let toolbox = Toolbox::new(Workdir::open(folder).map_err(at)?, Limits::default(), shell);
    let read =
        throughline_tools::Read { path: name.to_string_lossy().into_owned(), offset: None, limit: None };
    let outcome = toolbox.run(&throughline_tools::Call::Read(read), &Context::default()).await;
    match outcome.images.first() {
        Some(image) => Ok(image_item(&image.media_type, &image.base64)),
        None => Err(CommandError::bad_input(format!(
            "{}: not an image (PNG, JPEG, GIF or WebP) that can be read",
            path.display()
        ))),
    }
}
