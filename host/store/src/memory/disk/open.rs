//! Opens the file: checks pages and format, migrates old formats, and creates the tables of a new
//! file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{Database, Error, ReadableTable as _};
use wattle_run::ports::store::{Damage, StoreError};

use crate::error::redb_error;
use crate::file::kind::{FileKind, META_FORMAT};
use crate::file::marker;
use crate::file::open::{
    CHECKED_AT_START_BYTES, find_damage, is_filled, lock_file, open_or_rebuild,
};
use crate::memory::disk::rebuild::{self, DamagedFile, EssentialDocuments};
use crate::memory::disk::survey;
use crate::memory::disk::table::{
    DOCUMENTS, FORMAT, LOST, META, UNCHECKED, UNCHECKED_FORMAT, create, newer_format_error, to_row,
};
use crate::memory::document::StoredDocument;

/// The kind of the file.
pub(super) static FILE: FileKind = FileKind {
    name: "long-term memory",
    without_file: "start with an empty memory",
    // Room for a few thousand documents.
    cache_bytes: 16 * 1024 * 1024,
    meta_table: META,
};

const OP_MIGRATE: &str = "migrate its file to the newest format";

/// Opens or creates the file. Waits at most `lock_wait` for another process that has the file open.
/// Rebuilds a damaged file without the documents that cannot be read, unless all essential
/// documents may be lost.
///
/// # Errors
///
/// [`StoreError::Corrupt`], with the remedy, if the file is damaged and not rebuilt.
/// [`StoreError::Backend`] if the file cannot be opened.
pub(super) fn open(
    path: &Path,
    essential: Option<&EssentialDocuments>,
    lock_wait: Duration,
) -> Result<Database, StoreError> {
    let rebuild = |damage: &str| {
        rebuild::at_start(path, damage, essential)
            .map_err(|error| FILE.not_rebuilt_error(path, damage, error))
    };
    open_or_rebuild(path, lock_wait, CHECKED_AT_START_BYTES, rebuild, |_| open_or_create(path))
}

/// Checks all pages and documents of a file that no process has open, without changing it. A file
/// that was never created has no damage.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the file was created before and is missing, or if its documents
/// cannot be listed; [`StoreError::Backend`] if a process has the file open.
pub(super) fn survey(path: &Path) -> Result<Vec<Damage>, StoreError> {
    marker::ensure_not_lost(path)?;
    if !is_filled(path) {
        return Ok(Vec::new());
    }
    let _lock = lock_file(path, Duration::ZERO)?;
    let damage = file_damage(path)?;
    let found = table_damage(path, damage.is_none()).map_err(|error| with_remedy(path, error))?;
    Ok(damage.into_iter().chain(found).collect())
}

/// Returns the damage in the tables of a file. A new file has none.
fn table_damage(path: &Path, may_be_new: bool) -> Result<Vec<Damage>, StoreError> {
    let file = DamagedFile::open(path)?;
    if may_be_new && file.is_new()? {
        return Ok(Vec::new());
    }
    survey::survey(path, &file.transaction)
}

/// Rebuilds a file that no process has open, if it is damaged.
///
/// # Errors
///
/// The errors of [`survey()`], and [`StoreError::Corrupt`] if none of its documents can be read.
pub(super) fn repair(path: &Path) -> Result<Option<(Vec<Damage>, PathBuf)>, StoreError> {
    marker::ensure_not_lost(path)?;
    if !is_filled(path) {
        return Ok(None);
    }
    let _lock = lock_file(path, Duration::ZERO)?;
    rebuild::repair(path, file_damage(path)?).map_err(|error| with_remedy(path, error))
}

/// Adds the remedy to the error of a file whose documents cannot be listed.
fn with_remedy(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt { message, .. } => FILE.unusable_error(path, message),
        error => error,
    }
}

fn file_damage(path: &Path) -> Result<Option<Damage>, StoreError> {
    let named = |reason| Damage { subject: format!("file `{}`", path.display()), reason };
    Ok(find_damage(path, u64::MAX)?.map(named))
}

fn open_or_create(path: &Path) -> Result<Database, StoreError> {
    let database = FILE.open(path)?;
    match FILE.format(path, &database)? {
        Some(FORMAT) => {}
        Some(UNCHECKED_FORMAT) => migrate(&database).map_err(redb_error(OP_MIGRATE))?,
        Some(found) if found > FORMAT => return Err(newer_format_error(path, found)),
        Some(found) => {
            return Err(FILE.unusable_error(path, format!("it has the unknown format {found}")));
        }
        None => create(&database).map_err(redb_error("create its tables"))?,
    }
    Ok(database)
}

/// Adds checksums to the documents of a file of format 1, in one commit.
fn migrate(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    {
        let old = transaction.open_table(UNCHECKED)?;
        let mut new = transaction.open_table(DOCUMENTS)?;
        for entry in old.iter()? {
            let (doc_key, unchecked) = entry?;
            let stored = StoredDocument::from(unchecked.value());
            new.insert(doc_key.value(), to_row(doc_key.value(), &stored))?;
        }
    }
    transaction.delete_table(UNCHECKED)?;
    transaction.open_table(LOST)?;
    transaction.open_table(META)?.insert(META_FORMAT, FORMAT)?;
    transaction.commit()?;
    tracing::info!(format = FORMAT, "long-term memory was migrated to the newest format");
    Ok(())
}
