//! `throughline start`: an agent that comes through the gateway, with nothing written anywhere.
//!
//! The gateway that runs already is used; else one is run here for as long as the agent does. An agent that is logged in
//! with a subscription keeps its login: where no backend is configured, its own provider is shown its own credentials.

use super::config::bad_config;
use super::env::launch::{Launch, launch};
use super::open::{reached, running};
use super::{history, serve};
use crate::args::{Args, StartArgs};
use crate::configuration::{Question, load};
use crate::exit::CommandError;
use crate::output::{self, Ink, counted};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use throughline_core::Text;
use throughline_gateway::config::{self, BackendsFrom, Config, Flags, Process, Surroundings};
use throughline_gateway::exchange::SIDE_QUESTIONS;
use throughline_gateway::gateway::{Gateway, now};
use throughline_gateway::server;
use throughline_gateway::view::{self, Tallies};
use throughline_sim::Sim;
use throughline_store::{ConversationFilter, Conversations, History, Moment, Paging, short_id};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How many conversations are named afterwards.
const NAMED_MAX: u32 = 5;

/// Claude's own provider, shown the login that Claude Code has.
const CLAUDE_LOGIN: &str = "active = \"claude\"\n[[backends]]\nname = \"claude\"\ndialect = \"messages\"\n\
    base_url = \"https://api.anthropic.com/v1\"\napi_key = \"passthrough\"\ndefault_model = \"claude-sonnet-4-5\"\n";

/// The provider of Codex for those who log in with ChatGPT, shown that login.
const CHATGPT_LOGIN: &str = "active = \"chatgpt\"\n[[backends]]\nname = \"chatgpt\"\ndialect = \"responses\"\n\
    base_url = \"https://chatgpt.com/backend-api/codex\"\napi_key = \"passthrough\"\ndefault_model = \"gpt-5-codex\"\n";

/// Runs an agent.
pub fn run(asked: &StartArgs, args: &Args) -> Result<(), CommandError> {
    let config = configured(asked, args)?;
    // Whether there is such an agent is known before anything is started.
    launch(&asked.agent, "http://127.0.0.1", &config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let began = now();
    let (status, summary) = runtime.block_on(async {
        let history = history::open(&config)?;
        match running(&config) {
            Some(url) => {
                let status = attended(&launch(&asked.agent, &url, &config)?, asked, &url, args).await?;
                Ok::<_, CommandError>((status, summary(&*history, &config, began, true).await?))
            }
            None => {
                let served = Served::start(config.clone(), Arc::clone(&history)).await?;
                let started = launch(&asked.agent, &served.url, &config);
                let status = match started {
                    Ok(launch) => attended(&launch, asked, &served.url, args).await,
                    Err(error) => Err(error),
                };
                served.stop().await;
                Ok((status?, summary(&*history, &config, began, false).await?))
            }
        }
    })?;
    if !args.quiet {
        output::remark(&summary);
    }
    match status.code() {
        Some(0) => Ok(()),
        code => {
            let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            Err(CommandError::agent(code, format!("{} ended with {status}", asked.agent)))
        }
    }
}

/// Reads the configuration. Where it names no backend and no key is set, the agent's own login is used, if it has one.
fn configured(asked: &StartArgs, args: &Args) -> Result<Config, CommandError> {
    let flags = Flags { config: args.config.clone(), listen: asked.listen.clone(), data: args.data.clone() };
    let config = load(&flags, Question::of(args)).map_err(|errors| bad_config(&errors))?;
    if config.backends_from != BackendsFrom::Nobody || config.file.is_some() {
        return Ok(config);
    }
    let Some(text) = login(&asked.agent) else {
        if !args.quiet {
            output::remark(
                "no backend is configured, no key was found and the agent is not logged in: a simulated model answers",
            );
        }
        return Ok(config);
    };
    let surroundings = Written { path: PathBuf::from("the login of the agent"), text };
    let flags = Flags { config: Some(surroundings.path.clone()), ..flags };
    config::load(&surroundings, &flags).map_err(|errors| bad_config(&errors))
}

/// Returns the configuration that keeps the login of an agent working, if it has one.
fn login(agent: &str) -> Option<&'static str> {
    let home = std::env::home_dir()?;
    let folder = |variable: &str, below: &str| {
        let named = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        named.unwrap_or_else(|| home.join(below))
    };
    match agent {
        "claude" | "claude-code" => {
            let file = folder("CLAUDE_CONFIG_DIR", ".claude").join(".credentials.json");
            let has_token = std::env::var_os("CLAUDE_CODE_OAUTH_TOKEN").is_some();
            // On a Mac the login is in the keychain, and only the agent can tell.
            (has_token || file.exists() || cfg!(target_os = "macos")).then_some(CLAUDE_LOGIN)
        }
        "codex" => {
            let file = folder("CODEX_HOME", ".codex").join("auth.json");
            let login = std::fs::read_to_string(file).ok()?;
            login.contains("\"access_token\"").then_some(CHATGPT_LOGIN)
        }
        _ => None,
    }
}

/// This process, with a configuration that is in no file.
struct Written {
    path: PathBuf,
    text: &'static str,
}

impl Surroundings for Written {
    fn variable(&self, name: &str) -> Option<String> {
        Process.variable(name)
    }

    fn variable_names(&self) -> Vec<String> {
        Process.variable_names()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        if path == self.path { Ok(self.text.to_owned()) } else { Process.read(path) }
    }
}

/// A gateway that runs for as long as the agent does.
struct Served {
    url: String,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<io::Result<()>>,
    simulated: Option<Sim>,
}

impl Served {
    async fn start(config: Config, history: Arc<dyn History>) -> Result<Self, CommandError> {
        let simulated = serve::simulated(&config).await?;
        let base_url = simulated.as_ref().map(Sim::base_url);
        let listen = config.listen;
        let gateway = Gateway::build(config, history, base_url).await;
        let gateway = Arc::new(gateway.map_err(|error| CommandError::bad_input(error.to_string()))?);
        let listener = match TcpListener::bind(listen).await {
            // Something else is there; for one agent any port will do.
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                TcpListener::bind(SocketAddr::new(listen.ip(), 0)).await
            }
            bound => bound,
        };
        let listener = listener.map_err(|source| serve::not_bound(listen, source))?;
        let address = listener.local_addr().map_err(|source| CommandError::file(listen, source))?;
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server::serve(listener, gateway, async {
            let _ = stopped.await;
        }));
        Ok(Self { url: format!("http://{}", reached(address)), stop, serving, simulated })
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.serving.await;
        if let Some(sim) = self.simulated {
            sim.stop().await;
        }
    }
}

/// Runs the agent on this terminal, and waits for it.
async fn attended(
    launch: &Launch,
    asked: &StartArgs,
    url: &str,
    args: &Args,
) -> Result<ExitStatus, CommandError> {
    if !args.quiet {
        output::remark(&format!("{} through {url}; look on at {url}/", launch.program));
    }
    // Ctrl-C is the agent's: it reaches everybody at the terminal, and must not end this program before the agent.
    #[cfg(unix)]
    let _interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    let mut command = Command::new(launch.program);
    command.args(&launch.args).args(&asked.rest).envs(launch.variables.iter().cloned());
    let mut child = command.spawn().map_err(|source| not_started(launch, source))?;
    let ended = tokio::task::spawn_blocking(move || child.wait()).await;
    let ended = ended.map_err(|error| CommandError::no(format!("{}: {error}", launch.program)))?;
    ended.map_err(|source| CommandError::file(launch.program, source))
}

fn not_started(launch: &Launch, source: io::Error) -> CommandError {
    let is_missing = source.kind() == ErrorKind::NotFound;
    let error = CommandError::file(launch.program, source);
    match is_missing {
        true => error.hint(format!("{} is not installed, or not in PATH", launch.program)),
        false => error,
    }
}

/// Returns what came of it, and where to look.
async fn summary(
    history: &dyn History,
    config: &Config,
    began: Moment,
    is_still_served: bool,
) -> Result<String, CommandError> {
    let filter = ConversationFilter {
        since: Some(began),
        except_identified: Some(Text::from_static(SIDE_QUESTIONS)),
        ..ConversationFilter::default()
    };
    let which = Conversations::Matching(Box::new(filter), Paging::first(NAMED_MAX));
    let page = view::list(history, which).await?;
    let Some(first) = page.items.first().map(|listed| listed.heading.id.clone()) else {
        return Ok("nothing came through the gateway".to_owned());
    };
    let ink = Ink::of_stderr();
    let tallies = Tallies::default();
    let mut lines = Vec::new();
    for listed in &page.items {
        let heading = &listed.heading;
        let tally = tallies.of(history, heading).await?;
        let used = tally.used.total().unwrap_or_default();
        let mut facts = vec![
            counted(heading.exchanges, "request", "requests"),
            format!("{} tokens", output::count(used.input.saturating_add(used.output))),
        ];
        facts.extend(tally.used.cost(config).map(output::money));
        let title = ink.tame(heading.title.as_deref().unwrap_or("without a title")).into_owned();
        lines.push(format!("  {}  {title}  {}", ink.bold(short_id(&heading.id)), ink.dim(&facts.join(", "))));
    }
    let short = short_id(&first);
    let page = if is_still_served {
        format!("throughline open {short}")
    } else {
        "throughline serve --open".to_owned()
    };
    Ok(format!("kept:\n{}\nlook at it: throughline show {short}, or {page}", lines.join("\n")))
}
