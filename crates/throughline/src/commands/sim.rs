//! `throughline sim`: the simulated backend on its own.

use super::serve;
use crate::args::SimArgs;
use crate::exit::CommandError;
use crate::output;
use crate::signals;
use throughline_sim::{Script, Sim, SimOptions};

/// Serves until it is told to stop.
pub fn run(args: &SimArgs) -> Result<(), CommandError> {
    let options = options(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    runtime.block_on(serve(options))
}

async fn serve(options: SimOptions) -> Result<(), CommandError> {
    let listen = options.listen;
    let started = Sim::start(options).await;
    let sim = started.map_err(|source| serve::not_bound(listen, source))?;
    let stop = signals::stop();
    output::print(&format!("the simulated backend is ready on {}\n", sim.base_url()))?;
    stop.await;
    sim.stop().await;
    Ok(())
}

fn options(args: &SimArgs) -> Result<SimOptions, CommandError> {
    Ok(SimOptions {
        listen: args.listen,
        script: args.script.as_deref().map(read_script).transpose()?,
        reject_native: args.reject_native,
        stateless: args.no_state,
        strict: !args.lenient,
        chat_rules: args.profile.into(),
        models: args.model.clone(),
        seed: args.seed.clone(),
        key: args.key.clone(),
    })
}

fn read_script(path: &std::path::Path) -> Result<Script, CommandError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| CommandError::file(&name, source))?;
    Script::parse(&text).map_err(|error| {
        CommandError::bad_input(format!("{name}: {error}")).hint("docs/sim.md describes scripts")
    })
}
