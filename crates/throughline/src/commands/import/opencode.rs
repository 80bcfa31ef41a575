//! opencode's sessions: files in its storage (older versions), or its database, which its own command reads.

use super::find::{Found, Place, Sessions, failed};
use super::flaw::{Flaw, document_of};
use crate::exit::CommandError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};
use throughline_carry::{Agent, Damage, join_opencode};
use throughline_wire::json::{Document, Kind, quote};

/// Returns all sessions, of files and of the database; either may be there without the other.
pub fn sessions(home: &Path) -> Sessions {
    let (mut found, mut missed) = match in_storage(home) {
        Ok(found) => (found, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    if home.join("opencode.db").exists() {
        match in_database() {
            Ok(sessions) => found.extend(sessions),
            Err(error) => missed = Some(error),
        }
    }
    Sessions { found, missed }
}

fn in_storage(home: &Path) -> Result<Vec<Found>, CommandError> {
    let storage = home.join("storage");
    let mut found = Vec::new();
    for project in folder(&storage.join("session"))? {
        for info in
            folder(&project)?.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        {
            let modified = std::fs::metadata(&info).and_then(|facts| facts.modified());
            found.push(Found {
                agent: Agent::Opencode,
                place: Place::Storage { storage: storage.clone(), info },
                modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
                size: None,
            });
        }
    }
    Ok(found)
}

/// Reads a session as one document, and says what could not be read of it.
pub fn document(place: &Place) -> Result<(String, Vec<Flaw>), CommandError> {
    match place {
        Place::File(path) => Ok(document_of(std::fs::read(path).map_err(|source| failed(path, source))?)),
        Place::Storage { storage, info } => stored(storage, info),
        Place::Database(id) => Ok((run(&["export", id])?, Vec::new())),
    }
}

/// Puts the files of a session together: they are named by ids, which sort by time. A file that cannot be read is named
/// and left out.
fn stored(storage: &Path, info: &Path) -> Result<(String, Vec<Flaw>), CommandError> {
    let mut flaws = Vec::new();
    let session = super::find::stem(info);
    let mut messages = Vec::new();
    for message in folder(&storage.join("message").join(&session))? {
        let parts = folder(&storage.join("part").join(super::find::stem(&message)))?;
        let Some(message) = object(&message, &mut flaws) else { continue };
        messages.push((message, parts.iter().filter_map(|part| object(part, &mut flaws)).collect()));
    }
    // Without its facts it is still known by its name.
    let info = object(info, &mut flaws).unwrap_or_else(|| format!("{{\"id\":{}}}", quote(&session)));
    Ok((join_opencode(&info, &messages), flaws))
}

/// Reads a file that holds one object.
fn object(path: &Path, flaws: &mut Vec<Flaw>) -> Option<String> {
    let read = || {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let document = Document::parse(text.as_str()).map_err(|error| error.to_string())?;
        if document.root().kind() == Kind::Object { Ok(text) } else { Err("not an object".to_owned()) }
    };
    read().map_err(|error| flaws.push(Flaw::Part(Damage(format!("{}: {error}", path.display()))))).ok()
}

fn folder(path: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| failed(path, source))?,
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn in_database() -> Result<Vec<Found>, CommandError> {
    let listed = run(&["db", "select id, time_updated from session", "--format", "json"])?;
    let rows = Document::parse(listed.trim());
    let rows =
        rows.map_err(|error| CommandError::no(format!("opencode db: its answer is not JSON: {error}")))?;
    let found = rows.root().items().filter_map(|row| {
        let id = row.field("id")?.as_str()?.into_owned();
        let updated = Duration::from_millis(row.field("time_updated")?.as_u64()?);
        let modified = SystemTime::UNIX_EPOCH + updated;
        Some(Found { agent: Agent::Opencode, place: Place::Database(id), modified, size: None })
    });
    Ok(found.collect())
}

/// Runs opencode and returns what it prints.
pub fn run(args: &[&str]) -> Result<String, CommandError> {
    let output = Command::new("opencode").args(args).output().map_err(|source| {
        CommandError::file("opencode, whose sessions are in a database that only it reads", source)
    })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(CommandError::no(format!("opencode {}: {words}", args.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
