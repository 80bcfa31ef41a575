//! `throughline serve`: the gateway.

use super::open::{open_browser, reached};
use super::{history, trash};
use crate::args::Args;
use crate::configuration::{Question, load};
use crate::exit::CommandError;
use crate::log;
use crate::output::{self, Ink, json_line};
use crate::reload::Reloader;
use crate::signals;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use throughline_gateway::config::{BackendsFrom, Config, Endpoint, Flags};
use throughline_gateway::gateway::{Gateway, now};
use throughline_gateway::token_counters::TokenCounters;
use throughline_gateway::{model_discovery, server};
use throughline_sim::{Sim, SimOptions};
use tokio::net::TcpListener;

/// How long the last traces may take to reach their collector.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Serves until it is told to stop.
pub fn run(
    listen: Option<&str>,
    port: Option<u16>,
    opens_browser: bool,
    args: &Args,
) -> Result<(), CommandError> {
    let listen = listen.map(str::to_owned).or_else(|| port.map(|port| format!("127.0.0.1:{port}")));
    let flags = Flags { config: args.config.clone(), listen, data: args.data.clone() };
    let reloader = Reloader::new(flags.clone());
    let config = load(&flags, Question::of(args)).map_err(|errors| super::config::bad_config(&errors))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    runtime.block_on(serve(config, reloader, opens_browser, args))
}

async fn serve(
    config: Config,
    reloader: Reloader,
    opens_browser: bool,
    args: &Args,
) -> Result<(), CommandError> {
    let history = history::open(&config)?;
    trash::sweep(&trash::folder(&config), now());
    let simulated = simulated(&config).await?;
    let base_url = simulated.as_ref().map(Sim::base_url);
    let listen = config.listen;
    let (active, simulation) = (config.active.clone(), hint(&config));
    let gateway = Gateway::build(config, history, base_url).await;
    let gateway = Arc::new(gateway.map_err(|error| CommandError::bad_input(error.to_string()))?);
    // Nobody waits for it: until the vocabularies are there, sizes are estimated by bytes.
    drop(tokio::task::spawn_blocking(TokenCounters::load));
    let at = |source| CommandError::file(listen, source);
    let listener = TcpListener::bind(listen).await.map_err(|source| not_bound(listen, source))?;
    let address = listener.local_addr().map_err(at)?;
    let reloading = tokio::spawn(reloader.run(Arc::clone(&gateway), signals::Hangups::new()));
    let discovery = tokio::spawn(model_discovery::keep(Arc::clone(&gateway)));
    let stop = signals::stop();
    if args.json {
        output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_str("ready", &format!("http://{address}"));
            writer.field_str("active", &active);
            writer.field_bool("simulated", !simulation.is_empty());
            writer.end_object();
        }))?;
    } else if !args.quiet {
        output::print(&format!("throughline is ready on http://{address}, with {active}{simulation}\n"))?;
        welcome(address);
    }
    log::follow_exchanges(Arc::clone(&gateway));
    if opens_browser {
        open_browser(&format!("http://{}/", reached(address)));
    }
    let served = Arc::clone(&gateway);
    server::serve(listener, served, stop).await.map_err(at)?;
    let flushed = gateway.setup().tracer.clone();
    reloading.abort();
    if let Some(tracer) = flushed {
        // The last traces are worth a moment, but no more.
        let _ = tokio::time::timeout(FLUSH_MAX, tracer.flush()).await;
    }
    discovery.abort();
    if let Some(sim) = simulated {
        sim.stop().await;
    }
    Ok(())
}

/// Tells somebody at a terminal where to look, and what to do next.
fn welcome(address: SocketAddr) {
    let ink = Ink::of_stderr();
    if !ink.is_on_terminal() {
        return;
    }
    let address = reached(address);
    let usual = SocketAddr::from(([127, 0, 0, 1], 4141));
    let listen = if address == usual { String::new() } else { format!("--listen {address} ") };
    output::remark(&format!("  {}  http://{address}/", ink.dim("inspector")));
    output::remark(&format!(
        "  {}       throughline start {listen}claude   {}",
        ink.dim("next"),
        ink.dim("or codex, opencode, aider; `throughline env` lists the others")
    ));
}

/// Says why an address cannot be listened on, and what to do about it.
pub(super) fn not_bound(listen: SocketAddr, source: std::io::Error) -> CommandError {
    let hint = match source.kind() {
        ErrorKind::AddrInUse => {
            "something listens there already; --listen takes another address, such as 127.0.0.1:0 for any port that is free"
        }
        ErrorKind::AddrNotAvailable => "that address is not this machine's; --listen takes another one",
        ErrorKind::PermissionDenied => "ports below 1024 need more rights; --listen takes another one",
        _ => "--listen takes another address",
    };
    CommandError::file(listen, source).hint(hint)
}

fn hint(config: &Config) -> &'static str {
    match config.backends_from {
        BackendsFrom::Nobody => " (simulated: no backend is configured and no key was found)",
        BackendsFrom::File | BackendsFrom::Keys => "",
    }
}

/// Starts the simulated backend, if the configuration has one.
pub(super) async fn simulated(config: &Config) -> Result<Option<Sim>, CommandError> {
    let is_simulated = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Simulated);
    if !config.backends.iter().any(|backend| is_simulated(&backend.endpoint)) {
        return Ok(None);
    }
    let started = Sim::start(SimOptions::default()).await;
    started.map(Some).map_err(|source| CommandError::file("the simulated backend", source))
}
