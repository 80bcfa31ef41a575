//! `throughline import`: sessions of agents, request bodies and our own form, into the history.
//!
//! Without a session to import, those that are there are listed. What was imported before is not imported again: only
//! what is new is added. A line that cannot be read is named and left out.

pub mod find;
pub mod flaw;
mod interchange;
pub mod opencode;
pub mod session;
pub mod store;
mod watch;

use super::history;
use crate::args::{Args, ImportArgs};
use crate::exit::{CommandError, Failure};
use crate::output::{self, Bar, Cell, Column, Ink, Table, Tone, Unit, counted, json_lines};
use find::Found;
use session::{Imported, Kind};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use throughline_carry::{Agent, Facts, Millis, iso};
use throughline_core::{ConversationId, Text};
use throughline_gateway::bill::Bill;
use throughline_gateway::config::Config;
use throughline_store::{History, Moment};
use throughline_wire::json::Writer;

/// A session in a list.
struct Listed {
    agent: Agent,
    facts: Facts,
    size: Option<u64>,
    modified: Millis,
    place: String,
}

/// Lists sessions, or imports them.
pub fn run(asked: &ImportArgs, args: &Args) -> Result<(), CommandError> {
    let (kind, name) = meant(asked)?;
    match (kind, name) {
        (Some(Kind::Body(dialect)), Some(name)) => {
            let history = history::open(&history::configured(args)?)?;
            let imported = history::wait(session::import_body(history, dialect, Path::new(&name)))?;
            if imported.conversation.is_none() {
                return Err(CommandError::bad_input(format!("{name}: nothing is said in it")));
            }
            report(dialect.name(), &imported, args)
        }
        (Some(Kind::Interchange), Some(name)) => interchange::run(Path::new(&name), args),
        (Some(Kind::Body(_) | Kind::Interchange), None) => Err(CommandError::bad_input("which file?")),
        (Some(Kind::Agent(agent)), name) => of_agents(&[agent], name.as_deref(), asked, args),
        (None, name) => of_agents(&Agent::ALL, name.as_deref(), asked, args),
    }
}

/// Works out what the user means: the first word is a kind of session, or already the file.
fn meant(asked: &ImportArgs) -> Result<(Option<Kind>, Option<String>), CommandError> {
    let path = asked.path.clone();
    let Some(first) = &asked.from else { return Ok((None, path)) };
    let kind = Kind::from_name(first);
    if kind.is_some()
        && (path.is_some() || !matches!(kind, Some(Kind::Body(_))) || !Path::new(first).exists())
    {
        return Ok((kind, path));
    }
    if path.is_some() {
        return Err(unknown(first));
    }
    // A file whose name says what it is, or whose content does.
    let name = Path::new(first);
    if !name.exists() {
        return Err(unknown(first));
    }
    let ending = |ending: &str| first.ends_with(ending);
    let of_name = ["chat.json", "messages.json", "responses.json"].into_iter().find(|name| ending(name));
    let kind =
        of_name.and_then(Kind::from_name).map_or_else(|| session::recognised(name), |kind| Ok(Some(kind)))?;
    match kind {
        Some(kind) => Ok((Some(kind), Some(first.clone()))),
        None => Err(CommandError::bad_input(format!(
            "{first}: not a session that is known; say which agent's it is"
        ))),
    }
}

fn unknown(word: &str) -> CommandError {
    let names: Vec<&str> = Agent::ALL.iter().map(|agent| agent.name()).collect();
    CommandError::bad_input(format!(
        "{word}: neither a file nor a kind of session; there are {}, jsonl, chat.json, messages.json and responses.json",
        names.join(", ")
    ))
}

fn of_agents(
    agents: &[Agent],
    name: Option<&str>,
    asked: &ImportArgs,
    args: &Args,
) -> Result<(), CommandError> {
    if asked.watch {
        return watch::run(agents, args);
    }
    let found = match (name, agents) {
        (Some(name), [agent]) => find::named(*agent, name)?,
        (Some(name), _) => return Err(unknown(name)),
        (None, _) if asked.latest => latest(agents)?,
        (None, _) if asked.all => find::of_all(agents)?,
        (None, _) => return list(agents, asked, args),
    };
    if found.is_empty() {
        return Err(CommandError::no("there is no session to import")
            .hint("CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_DATA_HOME and VSCODE_APPDATA say where agents keep theirs; a path works as well"));
    }
    import_all(&found, asked.all, args)
}

/// So many sessions are named one by one; of more, what they came to.
const NAMED_MAX: usize = 10;

/// Imports sessions. Of several, one that cannot be imported does not keep the others out.
fn import_all(found: &[Found], all: bool, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open(&config)?;
    let bar = Bar::new(!args.quiet, Unit::Bytes);
    let is_one = found.len() == 1 && !all;
    let is_summed_up = found.len() > NAMED_MAX && !args.json && args.verbose == 0;
    let total: u64 = found.iter().filter_map(|found| found.size).sum();
    let (count, mut done) = (found.len(), 0);
    let mut sum = Sum::default();
    let mut failed: u64 = 0;
    // A file that is empty yet is the beginning of a session.
    for (number, found) in found.iter().enumerate().filter(|(_, found)| is_one || found.size != Some(0)) {
        if !is_one {
            bar.within(&format!("session {} of {count}", number + 1), done, total);
        }
        let imported = quietly(&history, found, &bar);
        done += found.size.unwrap_or_default();
        if !is_summed_up {
            bar.clear();
        }
        match imported {
            Ok(imported) if is_summed_up => sum.add(&imported),
            Ok(Imported { conversation: None, source, .. }) if is_one => {
                return Err(CommandError::no(format!("{source}: nothing was said in it")));
            }
            Ok(imported) => report(found.agent.name(), &imported, args)?,
            Err(error) if is_one || error.kind() == Failure::Store => return Err(error),
            Err(error) => {
                output::report_error(&error);
                failed += 1;
            }
        }
    }
    bar.clear();
    if is_summed_up {
        output::print(&sum.told(&config))?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(CommandError::no(format!(
            "{} could not be imported; the others were",
            counted(failed, "session", "sessions")
        ))),
    }
}

/// What many sessions came to.
#[derive(Default)]
struct Sum {
    sessions: u64,
    sub_agents: u64,
    empty: u64,
    flaws: u64,
    new_entries: u64,
    calls: u64,
    projects: BTreeSet<Text>,
    used: Bill,
}

impl Sum {
    fn add(&mut self, imported: &Imported) {
        self.flaws += imported.flaws.len() as u64;
        if imported.conversation.is_none() {
            self.empty += 1;
            return;
        }
        let is_sub_agent = imported.facts.parent.is_some();
        self.sessions += u64::from(!is_sub_agent);
        self.sub_agents += u64::from(is_sub_agent) + imported.sub_agents.len() as u64;
        self.new_entries += imported.new_entries as u64;
        self.calls += imported.facts.calls;
        self.projects.extend(imported.facts.cwd.clone());
        self.used.merge(&imported.used);
    }

    fn told(&self, config: &Config) -> String {
        let mut text = format!(
            "{}, {}, in {}: {}, {}\n",
            counted(self.sessions, "session", "sessions"),
            counted(self.sub_agents, "sub-agent", "sub-agents"),
            counted(self.projects.len() as u64, "project", "projects"),
            counted(self.new_entries, "new entry", "new entries"),
            counted(self.calls, "call", "calls"),
        );
        if let Some(used) = self.used.total() {
            let known = self.used.cost_known(config);
            let cost = if known > 0.0 {
                format!(", {} at list prices", output::money(known))
            } else {
                String::new()
            };
            let (input, out) = (output::count(used.input), output::count(used.output));
            text.push_str(&format!("{input} tokens in, {out} out{cost}\n"));
        }
        if self.empty > 0 {
            text.push_str(&format!("{} with nothing said\n", counted(self.empty, "session", "sessions")));
        }
        if self.flaws > 0 {
            let flaws = counted(self.flaws, "line or part", "lines or parts");
            text.push_str(&format!("{flaws} could not be read and were left out; -v names each\n"));
        }
        text
    }
}

/// Returns the session with something said in it that was changed last, and its sub-agents.
pub fn latest(agents: &[Agent]) -> Result<Vec<Found>, CommandError> {
    let all = find::of_all(agents)?;
    let mut sessions: Vec<&Found> = all.iter().filter(|found| !found.place.is_sub_agent()).collect();
    sessions.sort_by_key(|found| std::cmp::Reverse(found.modified));
    // An agent that was opened and closed leaves a file as well.
    let has_talk = |found: &&Found| session::has_talk(found).unwrap_or(false);
    match sessions.iter().copied().find(has_talk).cloned() {
        Some(latest) => Ok(with_sub_agents(latest, all)),
        None if sessions.is_empty() => Ok(Vec::new()),
        None => Err(CommandError::no(format!(
            "in none of the {} was anything said",
            counted(sessions.len() as u64, "session that was found", "sessions that were found")
        ))
        .hint("a path names another; with `carry` it is given as --session")),
    }
}

/// Returns a session and those of its sub-agents that are kept in a folder of its name.
pub fn with_sub_agents(session: Found, all: Vec<Found>) -> Vec<Found> {
    let find::Place::File(path) = &session.place else { return vec![session] };
    let folder = path.with_extension("");
    let is_below =
        |found: &Found| matches!(&found.place, find::Place::File(path) if path.starts_with(&folder));
    let below: Vec<Found> = all.into_iter().filter(is_below).collect();
    // What was imported last is what is gone on with: the session itself.
    below.into_iter().chain([session]).collect()
}

fn list(agents: &[Agent], asked: &ImportArgs, args: &Args) -> Result<(), CommandError> {
    let mut found = find::of_all(agents)?;
    found.retain(|found| !found.place.is_sub_agent());
    if found.is_empty() && !args.quiet {
        output::remark("no sessions of agents were found");
    }
    found.sort_by_key(|found| std::cmp::Reverse(found.modified));
    let more = found.len() > asked.limit as usize;
    found.truncate(asked.limit as usize);
    let mut listed = Vec::with_capacity(found.len());
    for found in &found {
        // One that cannot be read is listed all the same.
        let facts = session::facts(found).unwrap_or_default();
        let modified = session::millis(found.modified);
        listed.push(Listed {
            agent: found.agent,
            facts,
            size: found.size,
            modified,
            place: found.place.name(),
        });
    }
    if args.json {
        return output::print(&json_lines(&listed, write_listed));
    }
    let ink = Ink::of_stdout();
    let mut table = Table::new([
        Column::words("AGENT"),
        Column::words("ID").down_to(9),
        Column::words("UPDATED"),
        Column::number("TURNS").spared(),
        Column::number("CALLS").spared(),
        Column::number("SIZE").spared(),
        Column::words("DIRECTORY").down_to(12).spared(),
        Column::words("TITLE").down_to(16),
    ]);
    listed.iter().for_each(|listed| table.push(row(listed, &ink)));
    output::page(&table.shown(&ink), args)?;
    if more && !args.quiet {
        output::remark("there are more; --limit shows them");
    }
    Ok(())
}

fn row(listed: &Listed, ink: &Ink) -> [Cell; 8] {
    let facts = &listed.facts;
    let text = |text: &Option<Text>| Cell::from(text.as_deref().unwrap_or("-"));
    [
        listed.agent.to_string().into(),
        Cell::new(Tone::Bold, facts.id.as_deref().unwrap_or("-")),
        ink.when(Moment(facts.updated.unwrap_or(listed.modified))).into(),
        facts.turns.to_string().into(),
        facts.calls.to_string().into(),
        listed.size.map_or_else(|| "-".to_owned(), output::bytes).into(),
        text(&facts.cwd),
        text(&facts.title),
    ]
}

fn write_listed(writer: &mut Writer, listed: &Listed) {
    writer.begin_object();
    writer.field_str("agent", listed.agent.name());
    write_facts(writer, &listed.facts);
    if let Some(size) = listed.size {
        writer.field_uint("bytes", size);
    }
    writer.field_str("source", &listed.place);
    writer.end_object();
}

fn write_facts(writer: &mut Writer, facts: &Facts) {
    let texts = [
        ("id", &facts.id),
        ("title", &facts.title),
        ("directory", &facts.cwd),
        ("model", &facts.model),
        ("version", &facts.version),
        ("parent", &facts.parent),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            writer.field_str(name, text);
        }
    }
    for (name, at) in [("started", facts.started), ("updated", facts.updated)] {
        if let Some(at) = at {
            writer.field_str(name, &iso(at));
        }
    }
    for (name, count) in [("turns", facts.turns), ("calls", facts.calls), ("results", facts.results)] {
        writer.field_uint(name, count);
    }
}

/// Says what in a session could not be read as it is.
pub fn remark_on(imported: &Imported, args: &Args) {
    if !args.quiet {
        for flaw in &imported.flaws {
            output::remark(&format!("{}: {flaw}", imported.source));
        }
    }
}

/// Says what came of an import.
fn report(from: &str, imported: &Imported, args: &Args) -> Result<(), CommandError> {
    remark_on(imported, args);
    let Some(conversation) = &imported.conversation else {
        if !args.quiet {
            output::remark(&format!("{}: nothing was said in it", imported.source));
        }
        return Ok(());
    };
    if args.json {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("conversation", conversation.as_str());
        writer.field_str("from", from);
        write_facts(&mut writer, &imported.facts);
        writer.field_uint("new_entries", imported.new_entries as u64);
        if let Some(used) = imported.used.total() {
            writer.field_uint("input_tokens", used.input);
            writer.field_uint("cached_tokens", used.cache_read);
            writer.field_uint("output_tokens", used.output);
        }
        writer.key("damaged");
        writer.begin_array();
        imported.flaws.iter().filter_map(flaw::Flaw::line).for_each(|number| writer.uint(number));
        writer.end_array();
        writer.key("flaws");
        writer.begin_array();
        imported.flaws.iter().for_each(|flaw| writer.string(&flaw.to_string()));
        writer.end_array();
        writer.end_object();
        return output::print(&format!("{}\n", writer.into_string()));
    }
    let facts = &imported.facts;
    let new = match imported.new_entries {
        0 => "nothing new".to_owned(),
        new => counted(new as u64, "new entry", "new entries"),
    };
    let turns = counted(facts.turns, "turn", "turns");
    let calls = counted(facts.calls, "call", "calls");
    let results = counted(facts.results, "result", "results");
    output::print(&format!("{conversation}  {new}; {from}: {turns}, {calls}, {results}\n"))
}

/// Brings back a conversation that was written in our own form.
pub async fn restore(history: &dyn History, path: &Path) -> Result<ConversationId, CommandError> {
    let (id, ..) = interchange::load(history, path, &Bar::new(false, Unit::Bytes)).await?;
    Ok(id)
}

/// Imports one session and says nothing.
pub fn quietly(history: &Arc<dyn History>, found: &Found, bar: &Bar) -> Result<Imported, CommandError> {
    history::wait(session::import(Arc::clone(history), found, bar))
}
