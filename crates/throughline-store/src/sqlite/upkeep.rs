//! Counts, checks, copies: what an operator does to a history in SQLite, on threads and connections of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::connection::{Opening, open_reader, open_writer};
use super::index::index;
use super::intact::create_private;
use super::rows::{empty, insert, rows};
use super::verify::integrity;
use crate::StoreError;
use crate::upkeep::{
    Inflow, Inventory, Outflow, Page, Stats, TABLES, Teller, Volume, Watch, not_empty, unequal,
};
use crate::{Moment, Sqlite};

/// How many rows are sent at a time.
pub(super) const PAGE_ROWS: usize = 256;

impl Sqlite {
    /// Does something that takes long, on a thread of its own.
    pub(super) async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path, Duration) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (path, busy) = (self.path.clone(), self.options.busy);
        let (answer, answered) = oneshot::channel();
        Builder::new()
            .name("history-upkeep".to_owned())
            .spawn(move || answer.send(work(&path, busy)))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

/// Counts what there is.
pub(super) fn stats(connection: &Connection) -> Result<Stats, StoreError> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned);
    let volume = |table: &str| {
        let sql =
            format!("SELECT count(*), coalesce(sum(length(bytes)), 0), coalesce(sum(size), 0) FROM {table}");
        connection.query_row(&sql, [], |row| {
            let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            Ok(Volume { count: number(0)?, bytes: number(1)?, unpacked: number(2)? })
        })
    };
    let moment = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    Ok(Stats {
        conversations: count("SELECT count(*) FROM conversations")?,
        entries: count("SELECT count(*) FROM nodes")?,
        exchanges: count("SELECT count(*) FROM exchanges")?,
        records: volume("blobs")?,
        requests: volume("bodies")?,
        events: volume("events")?,
        answers: volume("answers")?,
        oldest: moment("SELECT min(created) FROM conversations")?.map(Moment),
        latest: moment("SELECT max(updated) FROM conversations")?.map(Moment),
        disk: count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
    })
}

/// Copies the database to a file that is not there yet.
///
/// The copy is made from one state of the database while others write, under a name of its own, and gets the name
/// that was asked for when it is whole and on the disk.
pub(super) fn back_up(path: &Path, busy: Duration, file: &Path, watch: &Watch) -> Result<(), StoreError> {
    let failed = |what: &Path| {
        let what = what.display().to_string();
        move |error: std::io::Error| StoreError::Unavailable(format!("{what}: {error}"))
    };
    refuse_existing(file)?;
    let all @ [partial, ..] = &unfinished(file);
    all.iter().for_each(|left| drop(std::fs::remove_file(left)));
    create_private(partial).map_err(failed(partial))?;
    let copied = (|| {
        let connection = open_reader(path, busy)?;
        connection.pragma_update(None, "query_only", false)?;
        let mut teller = Teller::new(watch.clone(), "copied", 1);
        connection.execute("VACUUM INTO ?1", [partial.to_string_lossy()])?;
        File::open(partial).and_then(|file| file.sync_all()).map_err(failed(partial))?;
        let copy = Connection::open(partial)?;
        if let Some(found) = integrity(&copy)?.first() {
            return Err(StoreError::Damaged(format!("the copy is not sound: {found}")));
        }
        drop(copy);
        std::fs::rename(partial, file).map_err(failed(file))?;
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))?;
        }
        teller.add(1);
        Ok(())
    })();
    if copied.is_err() {
        all.iter().for_each(|left| drop(std::fs::remove_file(left)));
    }
    copied
}

/// Says that a copy is not written over what is there.
pub(crate) fn refuse_existing(file: &Path) -> Result<(), StoreError> {
    if file.exists() {
        return Err(StoreError::Unsupported(format!("{} is there already", file.display())));
    }
    Ok(())
}

/// Returns what a copy is called while it is made, and what SQLite keeps beside it.
pub(crate) fn unfinished(file: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|rest| {
        let mut name = file.as_os_str().to_owned();
        name.push(".partial");
        name.push(rest);
        PathBuf::from(name)
    })
}

/// Builds the index of words anew.
pub(super) fn reindex(path: &Path, busy: Duration) -> Result<(), StoreError> {
    let mut connection = open_writer(path, busy, Opening::AsItIs)?;
    super::index::reindex(&mut connection)
}

/// Gives free pages back to the file system.
pub(super) fn shrink(path: &Path, busy: Duration) -> Result<(), StoreError> {
    let connection = open_writer(path, busy, Opening::AsItIs)?;
    connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// Sends every row of one state of the database.
pub(super) fn pour(path: &Path, busy: Duration, into: &Outflow) -> Result<(), StoreError> {
    let connection = open_reader(path, busy)?;
    let snapshot = connection.unchecked_transaction()?;
    for table in 0..TABLES.len() {
        rows(&snapshot, table, false, PAGE_ROWS, &mut refuse_odd, &mut |page| {
            into.0.blocking_send(Page::Rows(table, page)).map_err(|_| StoreError::Closed)
        })?;
    }
    into.0.blocking_send(Page::End).map_err(|_| StoreError::Closed)
}

/// Says that a row which cannot be read cannot be copied.
#[expect(clippy::needless_pass_by_value, reason = "it takes rows as those do that keep them")]
fn refuse_odd(row: String, error: StoreError) -> Result<(), StoreError> {
    match error {
        StoreError::Damaged(what) => Err(StoreError::Damaged(format!("{row}: {what}"))),
        error => Err(error),
    }
}

/// Takes in every row of another history, and keeps it if it reads back equal.
pub(super) fn fill(path: &Path, busy: Duration, from: &mut Inflow) -> Result<Inventory, StoreError> {
    let mut connection = open_writer(path, busy, Opening::AsItIs)?;
    let transaction = Transaction::new(&mut connection, TransactionBehavior::Immediate)?;
    if !empty(&transaction)? {
        return Err(not_empty());
    }
    let mut given = Inventory::default();
    loop {
        match from.0.blocking_recv() {
            // The source broke off, and says why itself.
            None => return Err(StoreError::Closed),
            Some(Page::End) => break,
            Some(Page::Rows(table, page)) => {
                page.iter().for_each(|row| given.add(table, row));
                insert(&transaction, table, &page)?;
            }
        }
    }
    let mut written = Inventory::default();
    for table in 0..TABLES.len() {
        rows(&transaction, table, false, PAGE_ROWS, &mut refuse_odd, &mut |page| {
            page.iter().for_each(|row| written.add(table, row));
            Ok(())
        })?;
    }
    if let Some(table) = given.difference(&written) {
        return Err(unequal(table));
    }
    transaction.commit()?;
    index(&mut connection)?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_copy_has_a_name_of_its_own() {
        let [partial, log, _] = unfinished(Path::new("a/history.db"));
        assert_eq!(partial, Path::new("a/history.db.partial"));
        assert_eq!(log, Path::new("a/history.db.partial-wal"));
    }
}
