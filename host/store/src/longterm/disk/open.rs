//! Opens the file: checks its format, and makes the tables of a new one.

use std::path::Path;

use redb::{
    Builder, Database, DatabaseError, Error, ReadOnlyDatabase, ReadableDatabase, StorageError,
    TableError,
};
use wattle_graph::failure::Failure;
use wattle_run::ports::store::StoreError;

use crate::disk::CHECKED_AT_START_BYTES;
use crate::error::{self, while_trying};
use crate::file::look::{Soundness, soundness};
use crate::file::{guarded, mark};
use crate::longterm::disk::closed;
use crate::longterm::disk::table::{DOCUMENTS, EXPIRIES, FACT_FORMAT, FACTS, FORMAT};

/// Memory for pages of the file: a few thousand documents that are in use.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Opens or creates the file.
///
/// # Errors
///
/// A fault of the host that says what to do.
pub(crate) fn open(path: &Path) -> Result<Database, Failure> {
    let refused = |error: StoreError| Failure::internal(error.to_string());
    mark::refuse_lost(path).map_err(refused)?;
    let bytes = std::fs::metadata(path).map_or(0, |facts| facts.len());
    if bytes <= CHECKED_AT_START_BYTES {
        check(path)?;
    }
    let mut opened = Err(closed());
    let panicked = guarded("open its file", || {
        opened = open_whole(path);
        Ok(())
    });
    if let Err(error) = panicked {
        return Err(foreign(path, &error.to_string()));
    }
    let database = opened?;
    mark::make(path).map_err(refused)?;
    Ok(database)
}

/// Compares all pages of a file with their checksums, without changing it. One that is not there
/// will be made when it is opened, and one that is in use says so then.
///
/// # Errors
///
/// A fault of the host that says what to do.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let refused = |error: StoreError| Failure::internal(error.to_string());
    mark::refuse_lost(path).map_err(refused)?;
    let bytes = std::fs::metadata(path).map_or(0, |facts| facts.len());
    if bytes == 0 || is_in_use(path) {
        return Ok(());
    }
    match soundness(path).map_err(refused)? {
        Soundness::Sound => Ok(()),
        Soundness::Damaged(reason) => Err(foreign(path, &reason)),
    }
}

/// Opens a file again that this process had open and that failed.
pub(crate) fn open_again(path: &Path) -> Result<Database, StoreError> {
    mark::refuse_lost(path)?;
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder.create(path).map_err(while_trying("open its file again"))
}

/// A look for the lock of redb, which leaves the file as it is.
fn is_in_use(path: &Path) -> bool {
    let opened = guarded("open its file", || {
        Ok(matches!(ReadOnlyDatabase::open(path), Err(DatabaseError::DatabaseAlreadyOpen)))
    });
    opened.unwrap_or(false)
}

fn open_whole(path: &Path) -> Result<Database, Failure> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let database = builder.create(path).map_err(|error| refusal(path, &error))?;
    let failed = |error: Error| fault(path, "cannot be opened", &error.to_string());
    match format_of(path, &database)? {
        Some(FORMAT) => Ok(database),
        Some(found) if found > FORMAT => {
            let reason = format!(
                "has format {found}, newer than {FORMAT}, the newest this version of wattle \
                 reads; use a newer wattle"
            );
            Err(fault(path, &reason, ""))
        }
        Some(found) => Err(foreign(path, &format!("it says it has format {found}"))),
        None => create(&database).map(|()| database).map_err(failed),
    }
}

/// The format number in the file; `None` if the file is new.
fn format_of(path: &Path, database: &Database) -> Result<Option<u64>, Failure> {
    let failed = |error: Error| fault(path, "cannot be read", &error.to_string());
    let transaction = database.begin_read().map_err(|error| failed(error.into()))?;
    match transaction.open_table(FACTS) {
        Ok(facts) => {
            let format = facts.get(FACT_FORMAT).map_err(|error| failed(error.into()))?;
            let format = format.map(|format| format.value());
            format.map(Some).ok_or_else(|| foreign(path, "it has no format number"))
        }
        Err(TableError::TableDoesNotExist(_)) => {
            let mut tables = transaction.list_tables().map_err(|error| failed(error.into()))?;
            match tables.next() {
                None => Ok(None),
                Some(_) => Err(foreign(path, "it has tables of another program")),
            }
        }
        Err(error @ TableError::Storage(_)) => Err(failed(error.into())),
        Err(error) => Err(foreign(path, &error.to_string())),
    }
}

pub(crate) fn create(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(DOCUMENTS)?;
    transaction.open_table(EXPIRIES)?;
    transaction.open_table(FACTS)?.insert(FACT_FORMAT, FORMAT)?;
    transaction.commit()?;
    Ok(())
}

fn refusal(path: &Path, error: &DatabaseError) -> Failure {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            fault(path, "is in use; stop the other wattle that has it open", "")
        }
        DatabaseError::Storage(StorageError::Io(io)) if !error::is_damage(io.kind()) => {
            fault(path, "cannot be opened", &io.to_string())
        }
        error => foreign(path, &error.to_string()),
    }
}

fn foreign(path: &Path, reason: &str) -> Failure {
    let hint = format!("{reason}; restore it from a backup, or move it away to start anew");
    fault(path, "cannot be read", &hint)
}

fn fault(path: &Path, what: &str, reason: &str) -> Failure {
    let colon = if reason.is_empty() { "" } else { ": " };
    Failure::internal(format!("long-term memory `{}` {what}{colon}{reason}", path.display()))
}
