//! `throughline import`: sessions of agents, request bodies and our own form, into the history.
//!
//! Without a session to import, those that are there are listed. What was imported before is not imported again: only
//! what is new is added. A line that cannot be read is named and left out.

pub mod find;
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
use std::path::Path;
use std::sync::Arc;
use throughline_carry::{Agent, Facts, Millis, iso};
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
        (None, _) if asked.all || asked.latest => chosen(agents, asked.latest)?,
        (None, _) => return list(agents, asked, args),
    };
    if found.is_empty() {
        return Err(CommandError::no("there is no session to import")
            .hint("CLAUDE_CONFIG_DIR, CODEX_HOME and XDG_DATA_HOME say where agents keep theirs; a path works as well"));
    }
    let history = history::open(&history::configured(args)?)?;
    let bar = Bar::new(!args.quiet, Unit::Bytes);
    for found in &found {
        let imported = history::wait(session::import(Arc::clone(&history), found, &bar));
        bar.clear();
        match imported {
            Ok(imported) => report(found.agent.name(), &imported, args)?,
            // One session that cannot be read does not keep the others out.
            Err(error) if asked.all && error.kind() == Failure::BadInput => output::report_error(&error),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns all sessions, or the latest with its sub-agents.
pub fn chosen(agents: &[Agent], latest: bool) -> Result<Vec<Found>, CommandError> {
    let mut all = Vec::new();
    for agent in agents {
        all.extend(find::sessions(*agent)?);
    }
    if !latest {
        return Ok(all);
    }
    let newest = all.iter().filter(|found| !found.place.is_sub_agent()).max_by_key(|found| found.modified);
    let Some(newest) = newest.cloned() else { return Ok(Vec::new()) };
    Ok(with_sub_agents(newest, all))
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
    let mut found = Vec::new();
    for agent in agents {
        match find::sessions(*agent) {
            Ok(sessions) => found.extend(sessions.into_iter().filter(|found| !found.place.is_sub_agent())),
            // Of several agents, one whose sessions cannot be read does not hide those of the others.
            Err(error) if agents.len() > 1 => output::remark(&format!("{agent}: {error}")),
            Err(error) => return Err(error),
        }
    }
    found.sort_by_key(|found| std::cmp::Reverse(found.modified));
    let more = found.len() > asked.limit as usize;
    found.truncate(asked.limit as usize);
    let mut listed = Vec::with_capacity(found.len());
    for found in &found {
        let (facts, _) = session::facts(found)?;
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
    if listed.is_empty() && !args.quiet {
        output::remark("no sessions of agents were found");
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
    let text = |text: &Option<throughline_core::Text>| Cell::from(text.as_deref().unwrap_or("-"));
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

/// Says what came of an import.
fn report(from: &str, imported: &Imported, args: &Args) -> Result<(), CommandError> {
    if !args.quiet {
        for (number, error) in &imported.damaged {
            output::remark(&format!("line {number} could not be read and was left out: {error}"));
        }
    }
    if args.json {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("conversation", imported.conversation.as_str());
        writer.field_str("from", from);
        write_facts(&mut writer, &imported.facts);
        writer.field_uint("new_entries", imported.new_entries as u64);
        writer.key("damaged");
        writer.begin_array();
        imported.damaged.iter().for_each(|(number, _)| writer.uint(*number));
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
    output::print(&format!("{}  {new}; {from}: {turns}, {calls}, {results}\n", imported.conversation))
}

/// Imports one session and says nothing.
pub fn quietly(history: &Arc<dyn History>, found: &Found, bar: &Bar) -> Result<Imported, CommandError> {
    history::wait(session::import(Arc::clone(history), found, bar))
}
