//! Opens the file: checks its format, and makes the tables of a new one.

use std::path::Path;
use std::sync::Arc;

use redb::{
    Builder, Database, DatabaseError, Error, ReadOnlyDatabase, ReadableDatabase, ReadableTable,
    StorageError, TableError,
};
use wattle_run::ports::store::StoreError;

use crate::disk::intake::Intake;
use crate::disk::migrate::{FIRST_FORMAT, migrate};
use crate::disk::table::{
    FACT_FORMAT, FACT_OPENINGS, FACT_THREADS, FACTS, FORMAT, HEADS, LOG, MARKS, MENTIONS, RECORDS,
    REMAINS, RUNS, THREAD_RUNS,
};
use crate::error::{backend, corrupt, while_trying};

/// Memory for pages of the file: enough for the hot part of a large store, and small beside what
/// guests take.
const CACHE_BYTES: usize = 128 * 1024 * 1024;

const OPEN: &str = "open its file";

/// An open file.
pub(crate) struct Opened {
    pub(crate) database: Arc<Database>,
    pub(crate) intake: Intake,
    /// How often it was opened so far, this time included.
    pub(crate) opening: u64,
}

/// Opens or creates the file, and finds out where its log goes on.
pub(crate) fn open(path: &Path) -> Result<Opened, StoreError> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let database = builder.create(path).map_err(|error| refusal(path, error))?;
    let database = Arc::new(database);
    match format_of(path, &*database)? {
        Some(FORMAT) => {}
        Some(FIRST_FORMAT) => migrate(&database)?,
        Some(found) => return Err(unknown(path, found)),
        None => create(&database).map_err(while_trying("create its tables"))?,
    }
    let opening = count(&database).map_err(while_trying(OPEN))?;
    let (entry, threads) = ends(&database)?;
    Ok(Opened { database, intake: Intake::new(entry + 1, threads), opening })
}

/// Checks that a file could be opened, without changing it. One that is not there will be made, and
/// one that was not closed will be repaired, when it is opened.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    if !path.exists() {
        return Ok(());
    }
    let database = match ReadOnlyDatabase::open(path) {
        Ok(database) => database,
        Err(DatabaseError::RepairAborted) => return Ok(()),
        Err(error) => return Err(refusal(path, error)),
    };
    match format_of(path, &database)? {
        None | Some(FORMAT | FIRST_FORMAT) => Ok(()),
        Some(found) => Err(unknown(path, found)),
    }
}

/// Refuses a format that this Wattle neither has nor can bring up.
fn unknown(path: &Path, found: u64) -> StoreError {
    if found < FORMAT {
        return foreign(path, format!("it says it has format {found}"));
    }
    StoreError::NewerFormat {
        path: path.display().to_string(),
        found: u32::try_from(found).unwrap_or(u32::MAX),
        known: FORMAT as u32,
    }
}

/// Counts this opening; answers with its number.
fn count(database: &Database) -> Result<u64, Error> {
    let transaction = database.begin_write()?;
    let mut facts = transaction.open_table(FACTS)?;
    let opening = facts.get(FACT_OPENINGS)?.map_or(0, |openings| openings.value()) + 1;
    facts.insert(FACT_OPENINGS, opening)?;
    drop(facts);
    transaction.commit()?;
    Ok(opening)
}

/// The format number in the file; `None` if the file is new.
fn format_of(path: &Path, database: &impl ReadableDatabase) -> Result<Option<u64>, StoreError> {
    let transaction = database.begin_read().map_err(while_trying(OPEN))?;
    match transaction.open_table(FACTS) {
        Ok(facts) => {
            let format = facts.get(FACT_FORMAT).map_err(while_trying(OPEN))?;
            let format = format.map(|format| format.value());
            format.map(Some).ok_or_else(|| foreign(path, "it has no format number"))
        }
        Err(TableError::TableDoesNotExist(_)) => {
            let mut tables = transaction.list_tables().map_err(while_trying(OPEN))?;
            match tables.next() {
                None => Ok(None),
                Some(_) => Err(foreign(path, "it has tables of another program")),
            }
        }
        Err(error @ TableError::Storage(_)) => Err(while_trying(OPEN)(error)),
        Err(error) => Err(foreign(path, error)),
    }
}

fn create(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(LOG)?;
    transaction.open_table(HEADS)?;
    transaction.open_table(RECORDS)?;
    transaction.open_table(RUNS)?;
    transaction.open_table(THREAD_RUNS)?;
    transaction.open_table(MARKS)?;
    transaction.open_table(MENTIONS)?;
    transaction.open_table(REMAINS)?;
    transaction.open_table(FACTS)?.insert(FACT_FORMAT, FORMAT)?;
    transaction.commit()?;
    Ok(())
}

/// The last entry of the log and the highest thread number.
pub(crate) fn ends(database: &Database) -> Result<(u64, u64), StoreError> {
    read_ends(database).map_err(while_trying(OPEN))
}

fn read_ends(database: &Database) -> Result<(u64, u64), Error> {
    let transaction = database.begin_read()?;
    let last_entry = transaction.open_table(LOG)?.last()?.map_or(0, |(number, _)| number.value());
    let threads = transaction.open_table(FACTS)?.get(FACT_THREADS)?;
    Ok((last_entry, threads.map_or(0, |threads| threads.value())))
}

fn refusal(path: &Path, error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            let path = path.display();
            backend(OPEN, format!("`{path}` is in use; stop the other wattle that has it open"))
        }
        DatabaseError::Storage(StorageError::Corrupted(message)) => foreign(path, message),
        DatabaseError::Storage(StorageError::Io(error))
            if matches!(
                error.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
            ) =>
        {
            foreign(path, error)
        }
        DatabaseError::UpgradeRequired(version) => {
            foreign(path, format!("it is a redb file of the old version {version}"))
        }
        error => backend(OPEN, format!("`{}`: {error}", path.display())),
    }
}

fn foreign(path: &Path, message: impl std::fmt::Display) -> StoreError {
    corrupt(
        format!("checkpoint store `{}`", path.display()),
        format!("{message}; restore it from a backup, or move it away to start anew"),
    )
}
