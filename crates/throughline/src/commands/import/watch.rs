//! Following the sessions of agents: what is added to them is imported as it comes.
//!
//! Agents append to files, so a file that has another size or time than before has something new. Looking costs a
//! listing of the folders; nothing is read that has not changed.

use super::find::{self, Found};
use super::{quietly, report};
use crate::args::Args;
use crate::commands::history;
use crate::exit::{CommandError, Failure};
use crate::output::{self, Bar, Unit};
use crate::signals;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use throughline_carry::Agent;

/// How often the sessions are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Imports what is there, and what comes, until it is told to stop.
pub fn run(agents: &[Agent], args: &Args) -> Result<(), CommandError> {
    let history = history::open(&history::configured(args)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let bar = Bar::new(false, Unit::Bytes);
    let mut known: BTreeMap<String, (SystemTime, Option<u64>)> = BTreeMap::new();
    let mut stop = {
        let _inside = runtime.enter();
        Box::pin(signals::stop())
    };
    if !args.quiet {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name()).collect();
        output::remark(&format!("following the sessions of {}; Ctrl-C ends it", names.join(", ")));
    }
    loop {
        for found in changed(agents, &mut known) {
            match quietly(&history, &found, &bar) {
                Ok(imported) if imported.new_entries > 0 => report(found.agent.name(), &imported, args)?,
                Ok(_) => {}
                // It may be written right now; the next change is looked at again.
                Err(error) if error.kind() == Failure::Store => return Err(error),
                Err(error) => output::remark(&format!("{}: {error}", found.place.name())),
            }
        }
        let stopped = runtime.block_on(async {
            tokio::select! {
                () = &mut stop => true,
                () = tokio::time::sleep(PERIOD) => false,
            }
        });
        if stopped {
            return Ok(());
        }
    }
}

/// Returns the sessions that are not as they were.
fn changed(agents: &[Agent], known: &mut BTreeMap<String, (SystemTime, Option<u64>)>) -> Vec<Found> {
    let mut all: Vec<Found> =
        agents.iter().flat_map(|agent| find::sessions(*agent).unwrap_or_default()).collect();
    // The earliest change first, so that what was added last is the latest in the history, too.
    all.sort_by_key(|found| found.modified);
    all.retain(|found| {
        let now = (found.modified, found.size);
        known.insert(found.place.name(), now) != Some(now)
    });
    all
}
