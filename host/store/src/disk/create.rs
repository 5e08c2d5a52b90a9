//! The kind of the file, and the tables of a new file.

use redb::{Database, Error};
use wattle_run::memory_budget::DEFAULT_BUDGET;

use crate::disk::table::{
    FORMAT, HEADS, LOG, MARKS, MENTIONS, META, ORPHANS, PENDING, RECORDS, RUNS, THREAD_RUNS,
};
use crate::file::kind::{FileKind, META_FORMAT};

/// The kind of the file, with the page cache of the default budget of memory.
pub(crate) static FILE: FileKind = FileKind {
    name: "checkpoint store",
    without_file: "create a new store",
    cache_bytes: DEFAULT_BUDGET.caches.file_pages_bytes as usize,
    meta_table: META,
};

/// Creates the tables of a new file.
pub(crate) fn create(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(LOG)?;
    transaction.open_table(HEADS)?;
    transaction.open_table(RECORDS)?;
    transaction.open_table(RUNS)?;
    transaction.open_table(PENDING)?;
    transaction.open_table(THREAD_RUNS)?;
    transaction.open_table(MARKS)?;
    transaction.open_table(MENTIONS)?;
    transaction.open_table(ORPHANS)?;
    transaction.open_table(META)?.insert(META_FORMAT, FORMAT)?;
    transaction.commit()?;
    Ok(())
}
