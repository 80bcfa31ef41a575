//! `throughline export`: a conversation as a session of an agent, as a request body, or as a document.
//!
//! Exporting is a function of what is exported: the same branch has the same session id and goes into the same file,
//! and a file that is there is not written again, since its agent may have gone on in it.

mod html;
pub mod interchange;

use super::{history, import};
use crate::args::{Args, ExportArgs, FormName};
use crate::exit::CommandError;
use crate::output::{self, Spinner, json_line};
use crate::private::{self, Scratch};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use throughline_carry::{
    Agent, Fitted, Header, Told, file_name, fit, session_id, write_body, write_markdown, write_session,
};
use throughline_core::{Action, ConversationId, Dialect, Kind, Place, Report, Subject, Text};
use throughline_gateway::config::Config;
use throughline_gateway::view;
use throughline_store::{Conversations, History, Kept, Moment, Which};
use throughline_wire::json::{Document, Writer};

/// A branch of a conversation, ready to be written.
pub struct Branch {
    /// Its title.
    pub title: Text,
    /// The directory that it worked in, where that is known.
    pub cwd: Option<Text>,
    /// The entries up to the last one.
    pub told: Vec<Told>,
    /// What its ids are made from: the last entry, which all before it go into.
    pub seed: String,
    /// How many entries of the conversation are on other branches.
    pub elsewhere: u64,
}

/// A session that was written for an agent.
pub struct Session {
    /// The agent.
    pub agent: Agent,
    /// What stands at its head.
    pub header: Header,
    /// The session itself.
    pub text: String,
    /// What was changed for the agent.
    pub report: Report,
}

/// What became of a session that was to be installed.
pub struct Installed {
    /// The file; none where the agent keeps it in a database.
    pub file: Option<PathBuf>,
    /// Whether it was there already.
    pub was_there: bool,
}

/// Exports a conversation.
pub fn run(asked: &ExportArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open_to_read(&config)?;
    let id = history::wait(async { history::find(&*history, &asked.id).await })?;
    let agent = match asked.to {
        FormName::ClaudeCode => Agent::ClaudeCode,
        FormName::Codex => Agent::Codex,
        FormName::Opencode => Agent::Opencode,
        form => {
            if asked.install || asked.cwd.is_some() {
                return Err(CommandError::bad_input(
                    "--install and --cwd: only a session of an agent has these",
                ));
            }
            if asked.redact && form != FormName::Html {
                return Err(CommandError::bad_input("--redact: only of --to html"));
            }
            let text = match form {
                FormName::Html => page(&*history, &id, &config, asked.redact)?,
                form => document(&*history, &id, form, asked.model.as_deref(), args)?,
            };
            return deliver(&text, asked, args);
        }
    };
    if asked.model.is_some() {
        return Err(CommandError::bad_input("--model: only a request body asks for a model"));
    }
    let reading = Spinner::of("reading the history", !args.quiet);
    let branch = history::wait(read(&*history, &id))?;
    drop(reading);
    let session = session(agent, &branch, &branch.told, asked.cwd.as_deref(), Report::default())?;
    remark_on(&session.report, &branch.told, args);
    if !asked.install {
        return deliver(&session.text, asked, args);
    }
    let installed = install(&session)?;
    tell_installed(&session, &installed, args)
}

/// Reads the branch of a conversation that was added to last.
pub async fn read(history: &dyn History, id: &ConversationId) -> Result<Branch, CommandError> {
    let heading = history.conversations(Conversations::One(id.clone())).await?.items.into_iter().next();
    let kept = told_once(view::latest_branch(history, id).await?);
    let seed = kept.last().map_or_else(String::new, |kept| kept.id.to_string());
    if kept.is_empty() {
        return Err(CommandError::no(format!("{id} has no entries")));
    }
    let here = kept.iter().filter(|kept| kept.conversation == *id).count() as u64;
    let elsewhere = heading.as_ref().map_or(0, |heading| heading.entries.saturating_sub(here));
    let project = heading.as_ref().and_then(|heading| heading.project.clone());
    let title = heading.and_then(|heading| heading.title).unwrap_or_else(|| id.as_str().into());
    let cwd = match project {
        Some(project) => Some(project),
        None => directory(history, id).await?,
    };
    let told = |(number, Kept { entry, at: Moment(at), .. })| Told { entry, at, number: Some(number) };
    let told = (0..).zip(kept).map(told).collect();
    Ok(Branch { title, cwd, told, seed, elsewhere })
}

/// Writes what is shown of a branch as a session; `report` has what was changed before.
pub fn session(
    agent: Agent,
    branch: &Branch,
    shown: &[Told],
    cwd: Option<&Path>,
    report: Report,
) -> Result<Session, CommandError> {
    let cwd = match (cwd, &branch.cwd) {
        (Some(cwd), _) => std::path::absolute(cwd).map_err(|source| import::find::failed(cwd, source))?,
        (None, Some(cwd)) => PathBuf::from(cwd.as_str()),
        (None, None) => {
            std::env::current_dir().map_err(|source| import::find::failed(Path::new("."), source))?
        }
    };
    // Shortened otherwise, it is another session.
    let shortened: Vec<String> = report.changes.iter().map(|change| format!("{change:?}")).collect();
    let Fitted { entries, mut report } = fit(shown, agent, report);
    if branch.elsewhere > 0 {
        let entries = output::counted(branch.elsewhere, "entry", "entries");
        let reason =
            format!("{entries} of other branches stay in the history: a session goes on with one branch");
        report.field(Action::Dropped, "branches", reason);
    }
    let started = branch.told.first().map_or(0, |told| told.at);
    let cwd: Text = cwd.display().to_string().into();
    let seed = format!("{agent} {cwd} {} {}", branch.seed, shortened.join(" "));
    let header = Header {
        id: session_id(agent, &seed, started).into(),
        cwd,
        title: branch.title.clone(),
        model: branch.told.iter().rev().find_map(|told| Some(told.entry.origin.as_ref()?.model.clone())),
        version: version(agent),
        started,
    };
    let text = write_session(agent, &header, &entries);
    Ok(Session { agent, header, text, report })
}

/// Puts a session where its agent looks for it, unless it is there.
pub fn install(session: &Session) -> Result<Installed, CommandError> {
    let agent = session.agent;
    let home = import::find::home(agent).ok_or_else(|| {
        CommandError::bad_input(format!("where {agent} keeps its sessions is not known: set HOME"))
    })?;
    let name = file_name(agent, &session.header);
    if agent == Agent::Opencode {
        // Its sessions are in a database; its own command puts them there, and the file is gone afterwards.
        let failed = |source| import::find::failed(&std::env::temp_dir(), source);
        let scratch = Scratch::folder("throughline-").map_err(failed)?;
        let file = scratch.write(&name, &session.text).map_err(failed)?;
        import::opencode::run(&["import", &file.display().to_string()])?;
        return Ok(Installed { file: None, was_there: false });
    }
    let file = home.join(name);
    if file.exists() {
        return Ok(Installed { file: Some(file), was_there: true });
    }
    if let Some(folder) = file.parent() {
        private::create_folder(folder).map_err(|source| import::find::failed(folder, source))?;
    }
    private::write_new(&file, &session.text).map_err(|source| import::find::failed(&file, source))?;
    Ok(Installed { file: Some(file), was_there: false })
}

/// Says where a session is, and how to go on with it.
pub fn tell_installed(session: &Session, installed: &Installed, args: &Args) -> Result<(), CommandError> {
    let command = session.agent.resume_command(&session.header.id).join(" ");
    if args.json {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("agent", session.agent.name());
        writer.field_str("session", &session.header.id);
        match &installed.file {
            Some(file) => writer.field_str("file", &file.display().to_string()),
            None => writer.field_null("file"),
        }
        writer.field_str("directory", &session.header.cwd);
        writer.field_str("command", &command);
        writer.field_str("report", &session.report.to_string());
        writer.end_object();
        return output::print(&format!("{}\n", writer.into_string()));
    }
    if installed.was_there && !args.quiet {
        output::remark("that session is there already; it was left as it is");
    }
    let cwd = &session.header.cwd;
    output::print(&format!("cd {} && {command}\n", quoted(cwd)))
}

/// Says how much was changed for an agent, and each change with its entry.
pub fn remark_on(report: &Report, told: &[Told], args: &Args) {
    if args.quiet || args.json {
        return;
    }
    for line in remarks(report, told) {
        output::remark(&line);
    }
    if !report.changes.is_empty() {
        output::remark(&report.to_string());
    }
}

/// Returns a line for each change; what was done to many entries in the same way is one line.
fn remarks(report: &Report, told: &[Told]) -> Vec<String> {
    const NAMED_MAX: usize = 3;
    let mut lines: Vec<(String, String, Vec<u32>)> = Vec::new();
    let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
    for change in &report.changes {
        let tail = format!("{}: {}", change.action.name(), change.reason);
        let Subject::Entry(Some(Place { message, .. })) = &change.subject else {
            lines.push((about(&change.subject, told), tail, Vec::new()));
            continue;
        };
        let what = of_entry(*message, told);
        let at = *known.entry((what.clone(), tail.clone())).or_insert(lines.len());
        if at == lines.len() {
            lines.push((what, tail, Vec::new()));
        }
        lines[at].2.push(*message);
    }
    let line = |(what, tail, numbers): (String, String, Vec<u32>)| {
        let named: Vec<String> = numbers.iter().take(NAMED_MAX).map(u32::to_string).collect();
        match numbers.len() {
            0 => format!("{what}: {tail}"),
            1 => format!("entry {} ({what}): {tail}", named.concat()),
            2..=NAMED_MAX => format!("entries {} ({what}): {tail}", named.join(", ")),
            count => format!("entries {} and {} more ({what}): {tail}", named.join(", "), count - NAMED_MAX),
        }
    };
    lines.into_iter().map(line).collect()
}

/// Writes a report as JSON: a line for each change, with the entry that it was made to.
pub fn report_lines(report: &Report, told: &[Told]) -> String {
    output::json_lines(&report.changes, |writer, change| {
        writer.begin_object();
        if let Subject::Entry(Some(Place { message, .. })) = &change.subject {
            writer.field_uint("entry", u64::from(*message));
        }
        writer.field_str("what", &about(&change.subject, told));
        writer.field_str("action", change.action.name());
        writer.field_str("reason", &change.reason);
        writer.end_object();
    })
}

/// Names what a change was made to.
fn about(subject: &Subject, told: &[Told]) -> String {
    match subject {
        Subject::Field(name) => name.to_string(),
        Subject::Tool(name) => format!("tool {name}"),
        Subject::Entry(None) => "an entry that was put in".to_owned(),
        Subject::Entry(Some(Place { message, .. })) => {
            format!("entry {message} ({})", of_entry(*message, told))
        }
    }
}

/// Says what kind of entry the one of a number is.
fn of_entry(number: u32, told: &[Told]) -> String {
    let entry = told.get(number as usize).map(|told| &told.entry);
    entry.map_or_else(String::new, |entry| match &entry.kind {
        Kind::Called(call) => format!("called {}", call.name),
        Kind::Said(said) => view::role_name(said.role).to_owned(),
        kind => view::kind_name(kind).to_owned(),
    })
}

/// Writes a conversation as a page of its own.
fn page(
    history: &dyn History,
    id: &ConversationId,
    config: &Config,
    redact: bool,
) -> Result<String, CommandError> {
    history::wait(async {
        let heading = history.conversations(Conversations::One(id.clone())).await?.items.into_iter().next();
        let heading = heading.ok_or_else(|| CommandError::no(format!("{id} is gone")))?;
        let branch = told_once(view::latest_branch(history, id).await?);
        let exchanges = view::exchanges(history, id).await?;
        html::write(&heading, &branch, &exchanges, config, redact).map_err(CommandError::bad_input)
    })
}

fn document(
    history: &dyn History,
    id: &ConversationId,
    form: FormName,
    model: Option<&str>,
    args: &Args,
) -> Result<String, CommandError> {
    let _reading = Spinner::of("reading the history", !args.quiet);
    if form == FormName::Jsonl {
        return history::wait(interchange::write(history, id));
    }
    let branch = history::wait(read(history, id))?;
    let dialect = match form {
        FormName::Responses => Dialect::Responses,
        FormName::Messages => Dialect::Messages,
        FormName::Chat => Dialect::Chat,
        _ => return Ok(write_markdown(&branch.title, &branch.told)),
    };
    let (body, report) = write_body(dialect, &branch.told, model.map(Text::from));
    remark_on(&report, &branch.told, args);
    Ok(format!("{body}\n"))
}

/// Writes the document to its file or, as it is, to standard output.
fn deliver(text: &str, asked: &ExportArgs, args: &Args) -> Result<(), CommandError> {
    let Some(file) = &asked.output else { return output::print(text) };
    private::write(file, text).map_err(|source| import::find::failed(file, source))?;
    if !args.json {
        return Ok(());
    }
    output::print(&json_line(|writer| {
        writer.begin_object();
        writer.field_str("file", &file.display().to_string());
        writer.field_uint("bytes", text.len() as u64);
        writer.end_object();
    }))
}

/// Leaves out instructions that say what holds already: earlier versions kept them with each request.
fn told_once(branch: Vec<Kept>) -> Vec<Kept> {
    let mut told: Vec<Kept> = Vec::with_capacity(branch.len());
    for kept in branch {
        if !kept.entry.restates(told.iter().map(|told| &told.entry)) {
            told.push(kept);
        }
    }
    told
}

/// Returns the directory that an imported session worked in.
async fn directory(history: &dyn History, id: &ConversationId) -> Result<Option<Text>, CommandError> {
    let Some(first) = view::exchanges(history, id).await?.into_iter().next() else { return Ok(None) };
    if first.ending.as_deref() != Some("imported") {
        return Ok(None);
    }
    let recording = history.recording(first.id, Which::Events).await?;
    let about = recording
        .events
        .into_iter()
        .find(|(_, event)| event.name.as_deref() == Some(import::store::IMPORTED));
    let document = about.and_then(|(_, event)| Document::parse(event.data.as_str()).ok());
    Ok(document.and_then(|document| document.root().field("cwd")?.as_text()))
}

/// Returns the version that a session is said to be of: one whose form was looked at.
const fn version(agent: Agent) -> Text {
    Text::from_static(match agent {
        Agent::ClaudeCode => "2.1.197",
        Agent::Codex => "0.166.0",
        Agent::Opencode => "1.18.33",
        Agent::VsCode => "1.139.1",
    })
}

/// Returns a word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Entry, EntryId, Part, Role, Said};

    #[test]
    fn instructions_that_an_old_record_repeats_are_told_once() {
        let standing = |text: &str| {
            Entry::new(Kind::Said(Said { role: Role::System, parts: vec![Part::text(text)], standing: true }))
        };
        let said = |text: &str| Entry::said(Role::User, text);
        let entries =
            [standing("a"), said("1"), standing("a"), said("2"), standing("b"), standing("b"), standing("a")];
        let kept = |entry: Entry| Kept {
            id: EntryId::new("e"),
            conversation: ConversationId::new("c"),
            parent: None,
            exchange: None,
            at: Moment(0),
            entry,
        };
        let told: Vec<Entry> =
            told_once(entries.map(kept).into()).into_iter().map(|kept| kept.entry).collect();
        assert_eq!(told, [standing("a"), said("1"), said("2"), standing("b"), standing("a")]);
    }
}
