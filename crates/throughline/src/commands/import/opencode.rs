//! opencode's sessions: files in its storage (older versions), or its database, which its own command reads.

use super::find::{Found, Place, failed};
use crate::exit::CommandError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};
use throughline_carry::{Agent, join_opencode};
use throughline_wire::json::Document;

/// Returns all sessions, of files and of the database.
pub fn sessions(home: &Path) -> Result<Vec<Found>, CommandError> {
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
    if home.join("opencode.db").exists() {
        found.extend(in_database()?);
    }
    Ok(found)
}

/// Reads a session as one document.
pub fn document(place: &Place) -> Result<String, CommandError> {
    match place {
        Place::File(path) => std::fs::read_to_string(path).map_err(|source| failed(path, source)),
        Place::Storage { storage, info } => stored(storage, info),
        Place::Database(id) => run(&["export", id]),
    }
}

/// Puts the files of a session together: they are named by ids, which sort by time.
fn stored(storage: &Path, info: &Path) -> Result<String, CommandError> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|source| failed(path, source));
    let session = super::find::stem(info);
    let mut messages = Vec::new();
    for message in folder(&storage.join("message").join(&session))? {
        let parts = folder(&storage.join("part").join(super::find::stem(&message)))?;
        let parts = parts.iter().map(|part| read(part)).collect::<Result<_, _>>()?;
        messages.push((read(&message)?, parts));
    }
    Ok(join_opencode(&read(info)?, &messages))
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
