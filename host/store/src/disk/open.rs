//! Opens the file: checks its pages and its format, and creates the tables of a new file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{
    Database, DatabaseError, Error, Key, ReadOnlyDatabase, ReadTransaction, ReadableDatabase as _,
    ReadableTable as _, TableDefinition, Value,
};
use wattle_run::ports::store::{Damage, DamageReport, StoreError};

use crate::disk::create::{FILE, create};
use crate::disk::migrate::{FIRST_FORMAT, migrate};
use crate::disk::rebuild;
use crate::disk::stager::Stager;
use crate::disk::table::{
    FORMAT, LOG, META, META_OPENINGS, META_THREADS, ORPHANS, PENDING, RECORDS,
};
use crate::error::redb_error;
use crate::file::guarded;
use crate::file::kind::FileKind;
use crate::file::marker;
use crate::file::open::{
    CHECKED_AT_START_BYTES, ensure_not_in_use, find_damage, lock_file, open_or_rebuild,
};
use crate::file::view::{Integrity, check_integrity};

const OP_OPEN: &str = "open its file";

/// An open file.
pub(crate) struct OpenedFile {
    pub(crate) database: Database,
    pub(crate) stager: Stager,
    /// Number of openings of the file, including this opening.
    pub(crate) opening: u64,
}

/// Opens the file, and creates it if it does not exist. Waits at most `lock_wait` for another
/// process that has the file open. Rebuilds a damaged file without the damaged threads, if the ids
/// of all damaged threads can be read. `kind` is [`FILE`] with any page cache.
pub(crate) fn open(
    path: &Path,
    kind: &FileKind,
    lock_wait: Duration,
) -> Result<OpenedFile, StoreError> {
    open_checked(path, kind, lock_wait, CHECKED_AT_START_BYTES)
}

/// Opens the file. The pages of a file of more than `checked_bytes` bytes are compared with their
/// checksums only if it cannot be opened.
fn open_checked(
    path: &Path,
    kind: &FileKind,
    lock_wait: Duration,
    checked_bytes: u64,
) -> Result<OpenedFile, StoreError> {
    let rebuild = |damage: &str| {
        rebuild::at_start(path, damage).map_err(|error| FILE.not_rebuilt_error(path, damage, error))
    };
    open_or_rebuild(path, lock_wait, checked_bytes, rebuild, |is_intact| {
        open_or_create(path, kind, is_intact)
    })
}

fn open_or_create(path: &Path, kind: &FileKind, is_intact: bool) -> Result<OpenedFile, StoreError> {
    let database = kind.open(path)?;
    match kind.format(path, &database)? {
        Some(FORMAT) => {}
        Some(found @ FIRST_FORMAT..FORMAT) => migrate(&database, found)?,
        Some(found) => return Err(unsupported_format_error(path, found)),
        None => create(&database).map_err(redb_error("create its tables"))?,
    }
    if !is_intact {
        read_tables(&database).map_err(redb_error(OP_OPEN))?;
    }
    let opening = bump_openings(&database).map_err(redb_error(OP_OPEN))?;
    let (entry, threads) = counters(&database).map_err(redb_error(OP_OPEN))?;
    Ok(OpenedFile { database, stager: Stager::new(entry + 1, threads), opening })
}

/// Reads the tables that every start reads completely, so that damage that would prevent a start is
/// found while the file can still be rebuilt.
fn read_tables(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_read()?;
    read_table(&transaction, RECORDS)?;
    read_table(&transaction, PENDING)?;
    match read_table(&transaction, ORPHANS) {
        // Older files get this table when a thread is first deleted.
        Err(Error::TableDoesNotExist(_)) => Ok(()),
        read => read,
    }
}

fn read_table<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), Error> {
    for entry in transaction.open_table(table)?.iter()? {
        entry?;
    }
    Ok(())
}

/// Reads a whole file that no process has open, and returns the damage.
pub(crate) fn survey(path: &Path) -> Result<DamageReport, StoreError> {
    marker::ensure_not_lost(path)?;
    if !path.exists() {
        return Ok(DamageReport::default());
    }
    let _lock = lock_file(path, Duration::ZERO)?;
    let integrity = check_integrity(path)?;
    if rebuild::is_new(path)? {
        return Ok(DamageReport::default());
    }
    let mut survey =
        rebuild::survey_file(path).map_err(|error| FILE.unusable_error(path, error))?;
    if let Integrity::Damaged(reason) = integrity {
        survey.damaged.push(Damage { subject: format!("file `{}`", path.display()), reason });
    }
    Ok(survey)
}

/// Rebuilds a damaged file from its readable parts. No process may have the file open. Returns the
/// damage and the new path of the damaged file.
pub(crate) fn repair(path: &Path) -> Result<(DamageReport, PathBuf), StoreError> {
    marker::ensure_not_lost(path)?;
    let _lock = lock_file(path, Duration::ZERO)?;
    rebuild::repair(path)
}

/// Checks that a file can be opened, without changing it. A file that does not exist passes. A file
/// that was not closed passes too, since opening the file repairs it.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    marker::ensure_not_lost(path)?;
    if !path.exists() {
        return Ok(());
    }
    ensure_not_in_use(path)?;
    if let Some(damage) = find_damage(path, CHECKED_AT_START_BYTES)? {
        return Err(FILE.unusable_error(path, damage));
    }
    guarded(OP_OPEN, || {
        let database = match ReadOnlyDatabase::open(path) {
            Ok(database) => database,
            Err(DatabaseError::RepairAborted) => return Ok(()),
            Err(error) => return Err(FILE.open_error(path, error)),
        };
        match FILE.format(path, &database)? {
            None | Some(FIRST_FORMAT..=FORMAT) => Ok(()),
            Some(found) => Err(unsupported_format_error(path, found)),
        }
    })
}

/// Builds the error for a format that this version of Wattle can neither read nor migrate.
fn unsupported_format_error(path: &Path, found: u64) -> StoreError {
    if found < FORMAT {
        return FILE.unusable_error(path, format!("its format {found} is unknown"));
    }
    StoreError::NewerFormat {
        path: path.display().to_string(),
        found: u32::try_from(found).unwrap_or(u32::MAX),
        known: FORMAT as u32,
    }
}

/// Increments the number of openings and returns it.
fn bump_openings(database: &Database) -> Result<u64, Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let opening = meta.get(META_OPENINGS)?.map_or(0, |openings| openings.value()) + 1;
    meta.insert(META_OPENINGS, opening)?;
    drop(meta);
    transaction.commit()?;
    Ok(opening)
}

/// Returns the number of the last log entry and the highest thread number.
pub(crate) fn read_counters(database: &Database) -> Result<(u64, u64), StoreError> {
    guarded(OP_OPEN, || counters(database).map_err(redb_error(OP_OPEN)))
}

fn counters(database: &Database) -> Result<(u64, u64), Error> {
    let transaction = database.begin_read()?;
    let last_entry = transaction.open_table(LOG)?.last()?.map_or(0, |(number, _)| number.value());
    let threads = transaction.open_table(META)?.get(META_THREADS)?;
    Ok((last_entry, threads.map_or(0, |threads| threads.value())))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use wattle_graph::id::ThreadId;
    use wattle_kit::damage::{change, wipe};
    use wattle_run::ports::Store as _;
    use wattle_run::ports::store::{Batch, ThreadQuery, ThreadRecord};

    use super::*;
    use crate::RedbStore;
    use crate::disk::snapshot::Snapshot;
    use crate::file::handle::SharedFile;

    const THREADS: usize = 200;

    async fn fill(path: &Path) {
        let store = RedbStore::open(path).unwrap();
        for number in 0..THREADS {
            let id = ThreadId::new(format!("thread-{number:03}")).unwrap();
            let record = Some(ThreadRecord::unbound(id.clone(), 1));
            store.append(&id, Batch { record, ..Batch::default() }).await.await.unwrap();
        }
    }

    #[tokio::test]
    async fn list_of_pinned_versions_without_a_damaged_record_is_incomplete() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("wattle.redb");
        fill(&path).await;
        change(&path, r#"id":"thread-007""#).unwrap();
        let OpenedFile { database, .. } = open_checked(&path, &FILE, Duration::ZERO, 0).unwrap();
        let file = SharedFile::new(path, FILE, database);
        let pinned = Snapshot::newest(&file).unwrap().pinned().unwrap();
        assert_eq!((pinned.versions.len(), pinned.is_complete), (1, false));
    }

    #[tokio::test]
    async fn damaged_file_is_rebuilt_with_and_without_a_page_check() {
        for checked_bytes in [CHECKED_AT_START_BYTES, 0] {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("wattle.redb");
            fill(&path).await;
            wipe(&path, r#""id":"thread-007""#).unwrap();
            drop(open_checked(&path, &FILE, Duration::ZERO, checked_bytes).unwrap());
            assert!(dir.path().join("wattle.redb.damaged-1").exists());
            let store = RedbStore::open(&path).unwrap();
            let whole = store.threads(&ThreadQuery::default()).await.unwrap().items.len();
            let damaged = store.find_damage().await.unwrap().damaged;
            assert_eq!(whole + damaged.len(), THREADS, "{damaged:?}");
            assert!(damaged.iter().any(|damage| damage.subject == "thread `thread-007`"));
            drop(store);
            drop(open_checked(&path, &FILE, Duration::ZERO, checked_bytes).unwrap());
            assert!(!dir.path().join("wattle.redb.damaged-2").exists());
        }
    }
}
