//! Reading a session from where it is, line by line, and handing on what it brings.

use super::find::{Found, Place, failed, stem};
use super::opencode;
use super::store::{Importer, Origin, id_of_beginning};
use crate::exit::CommandError;
use crate::output::Bar;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use throughline_carry::{Agent, Damage, Facts, Millis, Piece, SessionReader, read_body, read_document};
use throughline_core::{ConversationId, Dialect};
use throughline_store::History;
use throughline_wire::json::Document;

/// How many lines are kept in mind before one that brings something.
const WAITING_MAX: usize = 1_000;

/// What came of an import.
#[derive(Debug)]
pub struct Imported {
    /// The conversation that the session became.
    pub conversation: ConversationId,
    /// What the session says of itself.
    pub facts: Facts,
    /// How many entries were not there before.
    pub new_entries: usize,
    /// The lines that could not be read, and why.
    pub damaged: Vec<(u64, Damage)>,
}

/// A line of a file.
struct Line {
    number: u64,
    offset: u64,
    text: String,
}

/// Lines of a file, one at a time.
struct Lines {
    reader: BufReader<File>,
    number: u64,
    offset: u64,
}

/// Reads what a session says of itself, and how many of its lines cannot be read.
pub fn facts(found: &Found) -> Result<(Facts, usize), CommandError> {
    let Some((mut reader, path)) = line_reader(found)? else {
        let text = opencode::document(&found.place)?;
        return Ok(match read_document(found.agent, &text) {
            Ok((facts, _)) => (facts, 0),
            Err(_) => (Facts::default(), 1),
        });
    };
    let mut lines = Lines::open(path)?;
    let mut damaged = 0;
    while let Some(line) = lines.next(path)? {
        damaged += usize::from(reader.line(&line.text).is_err());
    }
    Ok((named(reader.facts().clone(), path), damaged))
}

/// Imports a session of an agent.
pub async fn import(history: Arc<dyn History>, found: &Found, bar: &Bar) -> Result<Imported, CommandError> {
    let at = millis(found.modified);
    let Some((mut reader, path)) = line_reader(found)? else {
        let text = opencode::document(&found.place)?;
        let (facts, pieces) = read_document(found.agent, &text).map_err(|error| unreadable(found, &error))?;
        return whole(history, Origin::Agent(found.agent), facts, &pieces, &text, &found.place.name(), at)
            .await;
    };
    let (name, size) = (stem(path), found.size.unwrap_or(0));
    let mut lines = Lines::open(path)?;
    let mut importer: Option<Importer> = None;
    // Lines before the first that brings something: by then it is known whose they are, and where it worked.
    let mut waiting: Vec<(Line, &'static str)> = Vec::new();
    let mut damaged = Vec::new();
    while let Some(line) = lines.next(path)? {
        bar.at(&name, line.offset, size);
        let read = reader.line(&line.text);
        let (number, kind) = (line.number, if read.is_ok() { "line" } else { "damaged" });
        waiting.push((line, kind));
        let facts = named(reader.facts().clone(), path);
        let is_begun = importer.is_some() || waiting.len() > WAITING_MAX;
        match read {
            Ok(piece) if is_begun || piece.is_some() => {
                let importer = importer.get_or_insert_with(|| {
                    let id = facts.id.as_deref().unwrap_or_default();
                    Importer::new(
                        Arc::clone(&history),
                        Origin::Agent(found.agent),
                        id,
                        &found.place.name(),
                        at,
                    )
                });
                for (line, kind) in waiting.drain(..) {
                    importer.line(&line.text, kind, line.offset, &facts).await?;
                }
                if let Some(piece) = piece {
                    importer.piece(&piece, &facts).await?;
                }
            }
            Ok(_) => {}
            Err(error) => damaged.push((number, error)),
        }
    }
    let facts = named(reader.facts().clone(), path);
    let id = facts.id.clone().unwrap_or_default();
    let Some(mut importer) = importer else {
        // Nothing was said in it: there is no conversation to be made of it.
        let conversation = ConversationId::new(format!("conv_{id}"));
        return Ok(Imported { conversation, facts, new_entries: 0, damaged });
    };
    for (line, kind) in waiting {
        importer.line(&line.text, kind, line.offset, &facts).await?;
    }
    let conversation = importer.conversation(None);
    let new_entries = importer.finish(&facts).await?;
    Ok(Imported { conversation, facts, new_entries, damaged })
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
    let source = path.display().to_string();
    whole(history, Origin::Body(dialect), facts, &pieces, &text, &source, at).await
}

async fn whole(
    history: Arc<dyn History>,
    origin: Origin,
    facts: Facts,
    pieces: &[Piece],
    text: &str,
    source: &str,
    at: Millis,
) -> Result<Imported, CommandError> {
    let id = facts.id.clone().unwrap_or_default();
    let mut importer = Importer::new(history, origin, &id, source, at);
    importer.line(text, "document", 0, &facts).await?;
    for piece in pieces {
        importer.piece(piece, &facts).await?;
    }
    let conversation = importer.conversation(None);
    let new_entries = importer.finish(&facts).await?;
    Ok(Imported { conversation, facts, new_entries, damaged: Vec::new() })
}

/// Returns the reader of a session that is read line by line, and its file.
fn line_reader(found: &Found) -> Result<Option<(SessionReader, &Path)>, CommandError> {
    let Place::File(path) = &found.place else { return Ok(None) };
    let is_document = found.agent == Agent::Codex && path.extension().is_some_and(|ending| ending == "json");
    let reader = SessionReader::new(found.agent).filter(|_| !is_document);
    Ok(reader.map(|reader| (reader, path.as_path())))
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
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        self.number += 1;
        let line = Line { number: self.number, offset: self.offset, text };
        self.offset += read as u64;
        Ok(Some(line))
    }
}
