//! Following the sessions of agents: what is added to them is imported as it comes.
//!
//! Agents append to files, so a file that has another size or time than before has something new. Looking costs a
//! listing of the folders; nothing is read that has not changed.

use super::find::{self, Found, Sessions};
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
    let mut missed: BTreeMap<Agent, String> = BTreeMap::new();
    let mut found = looked_at(agents, &mut missed);
    let followed: Vec<&str> =
        agents.iter().filter(|agent| !missed.contains_key(agent)).map(|agent| agent.name()).collect();
    if followed.is_empty() {
        return Err(CommandError::no("there are no sessions that could be followed"));
    }
    if !args.quiet {
        output::remark(&format!("following the sessions of {}; Ctrl-C ends it", followed.join(", ")));
    }
    loop {
        for found in changed(found, &mut known) {
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
        found = looked_at(agents, &mut missed);
    }
}

/// Returns the sessions that are there. Why some cannot be looked at is said once, and again when it is another reason.
fn looked_at(agents: &[Agent], missed: &mut BTreeMap<Agent, String>) -> Vec<Found> {
    let mut all = Vec::new();
    for agent in agents {
        let sessions: Sessions = find::sessions(*agent);
        all.extend(sessions.found);
        let before = missed.remove(agent);
        if let Some(error) = sessions.missed.map(|error| error.to_string()) {
            if before.as_ref() != Some(&error) {
                output::remark(&format!("{agent}: {error}"));
            }
            missed.insert(*agent, error);
        }
    }
    all
}

/// Returns those of the sessions that are not as they were.
fn changed(mut all: Vec<Found>, known: &mut BTreeMap<String, (SystemTime, Option<u64>)>) -> Vec<Found> {
    // The earliest change first, so that what was added last is the latest in the history, too.
    all.sort_by_key(|found| found.modified);
    all.retain(|found| {
        let now = (found.modified, found.size);
        known.insert(found.place.name(), now) != Some(now)
    });
    all
}
