//! Reading a session from where it is, line by line, and handing on what it brings.

use super::find::{Found, Place, failed, stem};
use super::flaw::{Flaw, text_of};
use super::opencode;
use super::store::{Importer, Origin, id_of_beginning};
use crate::exit::CommandError;
use crate::output::Bar;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use throughline_carry::{
    Agent, Contents, Damage, Facts, Millis, Piece, SessionReader, read_body, read_document,
};
use throughline_core::{ConversationId, Dialect, Text};
use throughline_gateway::bill::Bill;
use throughline_store::History;
use throughline_wire::json::Document;

/// How many lines are kept in mind before one that brings something.
const WAITING_MAX: usize = 1_000;

/// What came of an import.
#[derive(Debug)]
pub struct Imported {
    /// The conversation that the session became; none, if nothing was said in it.
    pub conversation: Option<ConversationId>,
    /// The conversations that its sub-agents became, where they are in the same file.
    pub sub_agents: Vec<ConversationId>,
    /// Where it is from.
    pub source: String,
    /// What the session says of itself.
    pub facts: Facts,
    /// How many entries were not there before.
    pub new_entries: usize,
    /// The tokens that its answers took.
    pub used: Bill,
    /// What could not be read as it is.
    pub flaws: Vec<Flaw>,
}

/// A line of a file.
struct Line {
    number: u64,
    offset: u64,
    text: String,
    /// Where it is no text, if it is not.
    not_text: Option<usize>,
}

/// Lines of a file, one at a time.
struct Lines {
    reader: BufReader<File>,
    number: u64,
    offset: u64,
}

/// Reads what a session says of itself.
pub fn facts(found: &Found) -> Result<Facts, CommandError> {
    let Some((mut reader, path)) = line_reader(found) else {
        let (text, _) = opencode::document(&found.place)?;
        return read_document(found.agent, &text)
            .map(|contents| in_workspace(contents.facts, found))
            .map_err(|error| unreadable(found, &error));
    };
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next(path)? {
        // What is damaged says nothing.
        let _ = reader.line(&line.text);
    }
    Ok(named(reader.facts().clone(), path))
}

/// Says whether anything was said in a session; no more of it is read than that takes.
pub fn has_talk(found: &Found) -> Result<bool, CommandError> {
    let is_talk = |facts: &Facts| facts.turns > 0 || facts.calls > 0;
    let Some((mut reader, path)) = line_reader(found) else { return Ok(is_talk(&facts(found)?)) };
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next(path)? {
        let _ = reader.line(&line.text);
        if is_talk(reader.facts()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Imports a session of an agent.
pub async fn import(history: Arc<dyn History>, found: &Found, bar: &Bar) -> Result<Imported, CommandError> {
    match line_reader(found) {
        Some((reader, path)) => line_by_line(history, found, reader, path, bar).await,
        None => {
            let (text, mut flaws) = opencode::document(&found.place)?;
            let contents = read_document(found.agent, &text).map_err(|error| unreadable(found, &error))?;
            let Contents { facts, pieces, damaged } = contents;
            flaws.extend(damaged.into_iter().map(Flaw::Part));
            let facts = in_workspace(facts, found);
            let read = Whole { facts, pieces, text, source: found.place.name(), at: millis(found.modified) };
            let imported = whole(history, Origin::Agent(found.agent), read).await?;
            Ok(Imported { flaws, ..imported })
        }
    }
}

async fn line_by_line(
    history: Arc<dyn History>,
    found: &Found,
    mut reader: SessionReader,
    path: &Path,
    bar: &Bar,
) -> Result<Imported, CommandError> {
    let (name, size, source) = (stem(path), found.size.unwrap_or(0), found.place.name());
    let begun = |facts: &Facts| {
        let id = facts.id.as_deref().unwrap_or_default();
        let (history, at) = (Arc::clone(&history), millis(found.modified));
        Importer::new(history, Origin::Agent(found.agent), id, &source, at)
    };
    let mut lines = Lines::open(path)?;
    let mut importer: Option<Importer> = None;
    // Lines before the first that brings something: by then it is known whose they are, and where it worked.
    let mut waiting: Vec<(Line, &'static str)> = Vec::new();
    let mut flaws = Vec::new();
    while let Some(line) = lines.next(path)? {
        bar.at(&name, line.offset, size);
        let number = line.number;
        flaws.extend(line.not_text.map(|at| Flaw::Bytes { number, at }));
        let read = reader.line(&line.text);
        waiting.push((line, if read.is_ok() { "line" } else { "damaged" }));
        let facts = named(reader.facts().clone(), path);
        let is_begun = importer.is_some() || waiting.len() > WAITING_MAX;
        match read {
            Ok(piece) if is_begun || piece.is_some() => {
                let importer = importer.get_or_insert_with(|| begun(&facts));
                for (line, kind) in waiting.drain(..) {
                    importer.line(&line.text, kind, line.offset, &facts).await?;
                }
                if let Some(piece) = piece {
                    importer.piece(&piece, &facts).await?;
                }
            }
            Ok(_) => {}
            Err(damage) => flaws.push(Flaw::Line { number, damage }),
        }
    }
    let facts = named(reader.facts().clone(), path);
    let Some(mut importer) = importer else {
        // Nothing was said in it: there is no conversation to be made of it.
        ensure_session(found.agent, path)?;
        return Ok(Imported { flaws, ..Imported::nothing(facts, source) });
    };
    for (line, kind) in waiting {
        importer.line(&line.text, kind, line.offset, &facts).await?;
    }
    Ok(Imported { flaws, ..finished(importer, facts, source).await? })
}

/// Imports one request body.
pub async fn import_body(
    history: Arc<dyn History>,
    dialect: Dialect,
    path: &Path,
) -> Result<Imported, CommandError> {
    let text = std::fs::read_to_string(path).map_err(|source| failed(path, source))?;
    let read = read_body(dialect, &text);
    let (mut facts, pieces) =
        read.map_err(|error| CommandError::bad_input(format!("{}: {error}", path.display())))?;
    let entries = pieces.first().map_or(&[][..], |piece| &piece.entries);
    facts.id = Some(id_of_beginning(entries).into());
    let at = std::fs::metadata(path).and_then(|facts| facts.modified()).map_or(0, millis);
    let read = Whole { facts, pieces, text, source: path.display().to_string(), at };
    whole(history, Origin::Body(dialect), read).await
}

/// A session that was read as one document.
struct Whole {
    facts: Facts,
    pieces: Vec<Piece>,
    text: String,
    source: String,
    at: Millis,
}

async fn whole(history: Arc<dyn History>, origin: Origin, read: Whole) -> Result<Imported, CommandError> {
    let Whole { facts, pieces, text, source, at } = read;
    if pieces.iter().all(|piece| piece.entries.is_empty()) {
        return Ok(Imported::nothing(facts, source));
    }
    let id = facts.id.clone().unwrap_or_default();
    let mut importer = Importer::new(history, origin, &id, &source, at);
    importer.line(&text, "document", 0, &facts).await?;
    for piece in &pieces {
        importer.piece(piece, &facts).await?;
    }
    finished(importer, facts, source).await
}

async fn finished(importer: Importer, facts: Facts, source: String) -> Result<Imported, CommandError> {
    let conversation = importer.conversation(None);
    let sub_agents = importer.conversations().filter(|id| **id != conversation).cloned().collect();
    let (new_entries, used) = importer.finish(&facts).await?;
    let conversation = Some(conversation);
    Ok(Imported { conversation, sub_agents, source, facts, new_entries, used, flaws: Vec::new() })
}

impl Imported {
    /// Returns what comes of a session in which nothing was said.
    fn nothing(facts: Facts, source: String) -> Self {
        Self {
            conversation: None,
            sub_agents: Vec::new(),
            source,
            facts,
            new_entries: 0,
            used: Bill::default(),
            flaws: Vec::new(),
        }
    }
}

/// Makes sure that a file in which nothing was said is a session at all.
fn ensure_session(agent: Agent, path: &Path) -> Result<(), CommandError> {
    let refused = CommandError::bad_input(format!("{}: not a session of {agent}", path.display()));
    match recognised(path)? {
        Some(Kind::Agent(known)) if known == agent => return Ok(()),
        Some(Kind::Agent(known)) => return Err(refused.hint(format!("it is one of {known}"))),
        Some(Kind::Interchange) => return Err(refused.hint("it is our own form: `throughline import jsonl`")),
        Some(Kind::Body(_)) | None => {}
    }
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next(path)? {
        let Ok(document) = Document::parse(line.text.as_str()) else { continue };
        if document.root().field("type").is_some_and(|kind| kind.as_str().is_some()) {
            return Ok(());
        }
    }
    Err(refused
        .hint("a request body is imported with chat.json, messages.json or responses.json in front of it"))
}

/// Returns the reader of a session that is read line by line, and its file.
fn line_reader(found: &Found) -> Option<(SessionReader, &Path)> {
    let Place::File(path) = &found.place else { return None };
    let is_document = found.agent == Agent::Codex && path.extension().is_some_and(|ending| ending == "json");
    let reader = SessionReader::new(found.agent).filter(|_| !is_document);
    reader.map(|reader| (reader, path.as_path()))
}

/// Gives a session the id that its file has: lines in it may have been copied from another.
fn named(facts: Facts, path: &Path) -> Facts {
    let stem = stem(path);
    let is_uuid = |text: &str| text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4;
    let id = match &facts.id {
        _ if is_uuid(&stem) => Some(stem.into()),
        Some(id) => Some(id.clone()),
        None => Some(stem.into()),
    };
    Facts { id, ..facts }
}

/// Gives a session of VS Code the folder that its workspace is: that is kept beside the sessions of the workspace.
fn in_workspace(facts: Facts, found: &Found) -> Facts {
    let Place::File(path) = &found.place else { return facts };
    if found.agent != Agent::VsCode {
        return facts;
    }
    let workspace = path.parent().and_then(Path::parent).map(|storage| storage.join("workspace.json"));
    let described = workspace.and_then(|file| std::fs::read_to_string(file).ok());
    let document = described.and_then(|text| Document::parse(text).ok());
    let folder = document.and_then(|document| document.root().field("folder")?.as_text());
    let cwd = folder.and_then(|folder| folder.strip_prefix("file://").map(Text::from));
    Facts { cwd: facts.cwd.or(cwd), ..facts }
}

fn unreadable(found: &Found, error: &Damage) -> CommandError {
    CommandError::bad_input(format!("{}: {error}", found.place.name()))
}

pub fn millis(time: SystemTime) -> Millis {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// Says what kind of file it is, by its first line that says something.
pub fn recognised(path: &Path) -> Result<Option<Kind>, CommandError> {
    const LINES_MAX: u64 = 20;
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next(path)?.filter(|line| line.number <= LINES_MAX) {
        let Ok(document) = Document::parse(line.text.as_str()) else { continue };
        let (root, has) = (document.root(), |name: &str| document.root().field(name).is_some());
        if root.field("type").is_some_and(|kind| kind.is_str("throughline")) {
            return Ok(Some(Kind::Interchange));
        }
        if has("kind") && has("v") || has("requests") && has("sessionId") {
            return Ok(Some(Kind::Agent(Agent::VsCode)));
        }
        if has("sessionId") || has("parentUuid") {
            return Ok(Some(Kind::Agent(Agent::ClaudeCode)));
        }
        if has("payload") || has("record_type") || has("instructions") && has("id") {
            return Ok(Some(Kind::Agent(Agent::Codex)));
        }
    }
    Ok(None)
}

/// What kind of file something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A session of an agent.
    Agent(Agent),
    /// A request body.
    Body(Dialect),
    /// Our own form.
    Interchange,
}

impl Kind {
    /// Returns the kind that the user means.
    pub fn from_name(name: &str) -> Option<Self> {
        let dialect = || Dialect::from_name(name.strip_suffix(".json").unwrap_or(name)).map(Self::Body);
        let interchange = || (name == "jsonl").then_some(Self::Interchange);
        Agent::from_name(name).map(Self::Agent).or_else(interchange).or_else(dialect)
    }
}

impl Lines {
    fn open(path: &Path) -> Result<Self, CommandError> {
        let file = File::open(path).map_err(|source| failed(path, source))?;
        Ok(Self { reader: BufReader::with_capacity(1 << 16, file), number: 0, offset: 0 })
    }

    fn next(&mut self, path: &Path) -> Result<Option<Line>, CommandError> {
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes).map_err(|source| failed(path, source))?;
        if read == 0 {
            return Ok(None);
        }
        while bytes.last().is_some_and(u8::is_ascii_whitespace) {
            bytes.pop();
        }
        let (text, not_text) = text_of(bytes);
        self.number += 1;
        let line = Line { number: self.number, offset: self.offset, text, not_text };
        self.offset += read as u64;
        Ok(Some(line))
    }
}
