//! What was deleted can be had back for a day.
//!
//! Before conversations are taken out of the history, each is written in our own form, which loses nothing, into a folder
//! beside it. What is older than a day goes with the next deletion, and with the next start of a gateway.

use super::export::interchange;
use super::import;
use crate::exit::CommandError;
use crate::output::Bar;
use crate::private;
use std::path::{Path, PathBuf};
use throughline_core::ConversationId;
use throughline_gateway::config::{Config, StoreLocation};
use throughline_gateway::gateway::now;
use throughline_store::{History, Moment};

/// How long it can be had back.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The folder, below that of the history.
const FOLDER: &str = "deleted";

/// A conversation that was deleted.
#[derive(Debug)]
struct Deleted {
    at: i64,
    file: PathBuf,
}

/// Returns the folder for what is deleted from the history of this configuration.
pub fn folder(config: &Config) -> PathBuf {
    let beside = match &config.store.location {
        StoreLocation::Sqlite(file) => file.parent().map(Path::to_owned).unwrap_or_default(),
        StoreLocation::Postgres(_) => config.data.clone(),
    };
    beside.join(FOLDER)
}

/// Keeps conversations that are about to be deleted.
pub async fn keep(
    history: &dyn History,
    ids: &[ConversationId],
    folder: &Path,
    bar: &Bar,
) -> Result<(), CommandError> {
    sweep(folder, now());
    if ids.is_empty() {
        return Ok(());
    }
    let failed = |source| CommandError::file(folder.display(), source);
    private::create_folder(folder).map_err(failed)?;
    let at = now().0;
    for (number, id) in (0..).zip(ids) {
        bar.at("keeping a copy", number, ids.len() as u64);
        let text = interchange::write(history, id).await?;
        private::write(&folder.join(format!("{at}-{number}.jsonl")), text).map_err(failed)?;
    }
    bar.clear();
    Ok(())
}

/// Brings back what was deleted last, and returns its ids.
pub async fn undo(history: &dyn History, folder: &Path) -> Result<Vec<ConversationId>, CommandError> {
    sweep(folder, now());
    let deleted = list(folder);
    let Some(last) = deleted.iter().map(|deleted| deleted.at).max() else {
        return Err(CommandError::no("nothing was deleted in the last day"));
    };
    let mut ids = Vec::new();
    for deleted in deleted.iter().filter(|deleted| deleted.at == last) {
        ids.push(import::restore(history, &deleted.file).await?);
        std::fs::remove_file(&deleted.file)
            .map_err(|source| CommandError::file(deleted.file.display(), source))?;
    }
    Ok(ids)
}

/// Removes what was deleted more than a day ago.
pub fn sweep(folder: &Path, now: Moment) {
    for deleted in list(folder).iter().filter(|deleted| now.0 - deleted.at > KEPT_MS) {
        // What cannot be removed now is tried again the next time.
        let _ = std::fs::remove_file(&deleted.file);
    }
}

fn list(folder: &Path) -> Vec<Deleted> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let deleted = |file: PathBuf| {
        let name = file.file_name()?.to_str()?;
        let at = name.split_once('-')?.0.parse().ok()?;
        Some(Deleted { at, file })
    };
    let mut all: Vec<Deleted> = files.filter_map(deleted).collect();
    all.sort_by(|a, b| a.file.cmp(&b.file));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_a_day_is_gone_for_good() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1000-0.jsonl", "90000000-0.jsonl", "something else"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        sweep(folder.path(), Moment(1001 + KEPT_MS));
        let left: Vec<i64> = list(folder.path()).iter().map(|deleted| deleted.at).collect();
        assert_eq!(left, [90_000_000]);
        assert!(folder.path().join("something else").exists(), "what is not ours is left alone");
    }
}
