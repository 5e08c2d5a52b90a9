//! A copy of the file as of one commit, made during reads and writes.
//!
//! The copy is made in one read transaction. redb reuses no page of the transaction before the
//! transaction ends, so the file grows by the data that is written during the copy.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use redb::{
    Database, Durability, Key, ReadTransaction, ReadableTable, TableDefinition, TableError, Value,
};
use wattle_run::ports::store::StoreError;

use crate::disk::create::create;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{
    ASIDE, HEADS, LOG, MARKS, MENTIONS, META, ORPHANS, PENDING, RECORDS, RUNS, THREAD_RUNS,
};
use crate::error::{backend, redb_error};
use crate::file::create::create_filled_once;
use crate::file::guarded;
use crate::file::marker::sync_folder;
use crate::folders::BACKUPS_FOLDER;

const OP_BACK_UP: &str = "back up its file";

/// Number of table entries that one commit to the copy writes.
const ENTRIES_PER_COMMIT: usize = 4096;

/// Extension of the folder of a backup until the backup is complete.
const UNFINISHED: &str = "unfinished";

/// Returns the folder of the backups of a store.
pub(crate) fn backups_folder(store: &Path) -> PathBuf {
    store.parent().unwrap_or(Path::new("")).join(BACKUPS_FOLDER)
}

/// Creates a folder with an unused name in the folder `inside`. Creates `inside` if it does not
/// exist.
///
/// # Errors
///
/// [`StoreError::Backend`] if a folder cannot be created.
pub(crate) fn new_folder(inside: &Path) -> Result<PathBuf, StoreError> {
    let failed = |error: io::Error| backend(OP_BACK_UP, format!("`{}`: {error}", inside.display()));
    let mut builder = DirBuilder::new();
    // Threads contain private data, so only the owner has access.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(inside).map_err(failed)?;
    builder.recursive(false);
    for number in 1_u64.. {
        if inside.join(number.to_string()).exists() {
            continue;
        }
        let folder = inside.join(format!("{number}.{UNFINISHED}"));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(backend(OP_BACK_UP, "every folder name is in use"))
}

/// Gives the folder of a complete backup its final name. Returns the new path.
///
/// # Errors
///
/// [`StoreError::Backend`] if the folder cannot be renamed.
pub(crate) fn finish(folder: &Path) -> Result<PathBuf, StoreError> {
    let whole = folder.with_extension("");
    fs::rename(folder, &whole)
        .and_then(|()| sync_folder(&whole))
        .map_err(|error| backend(OP_BACK_UP, format!("`{}`: {error}", folder.display())))?;
    Ok(whole)
}

/// Deletes the folder of a failed backup.
///
/// # Errors
///
/// [`StoreError::Backend`] if a part of the folder cannot be deleted.
pub(crate) fn remove(folder: &Path) -> Result<(), StoreError> {
    let removed = fs::remove_dir_all(folder);
    removed.map_err(|error| backend(OP_BACK_UP, format!("`{}`: {error}", folder.display())))
}

/// Deletes the folders of backups that earlier processes did not complete.
pub(crate) fn delete_unfinished(inside: &Path) {
    let entries = fs::read_dir(inside).into_iter().flatten().flatten();
    let left = entries.map(|entry| entry.path());
    for folder in left.filter(|path| path.extension().is_some_and(|it| it == UNFINISHED)) {
        if let Err(error) = remove(&folder) {
            tracing::warn!(%error, "incomplete backup cannot be deleted");
        }
    }
}

/// Writes the content of a snapshot into a new file.
///
/// # Errors
///
/// Errors of reading the snapshot and of writing the new file. After an error, the new file is
/// incomplete.
pub(crate) fn copy(snapshot: &Snapshot, to: &Path) -> Result<(), StoreError> {
    guarded(OP_BACK_UP, || {
        let database = create_filled_once(to).map_err(redb_error(OP_BACK_UP))?;
        create(&database).map_err(redb_error(OP_BACK_UP))?;
        let from = &snapshot.transaction;
        copy_table(from, &database, META)?;
        copy_table(from, &database, LOG)?;
        copy_table(from, &database, HEADS)?;
        copy_table(from, &database, RECORDS)?;
        copy_table(from, &database, RUNS)?;
        copy_table(from, &database, PENDING)?;
        copy_table(from, &database, THREAD_RUNS)?;
        copy_table(from, &database, MARKS)?;
        copy_table(from, &database, MENTIONS)?;
        copy_table(from, &database, ORPHANS)?;
        copy_table(from, &database, ASIDE)?;
        make_durable(&database)?;
        database.close().map_err(redb_error(OP_BACK_UP))
    })
}

/// Writes a table of a transaction into a file.
pub(crate) fn copy_table<K, V>(
    from: &ReadTransaction,
    to: &Database,
    definition: TableDefinition<'_, K, V>,
) -> Result<(), StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let from = match from.open_table(definition) {
        Ok(table) => table,
        // The table is created when it is first needed.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(redb_error(OP_BACK_UP)(error)),
    };
    let mut entries = from.iter().map_err(redb_error(OP_BACK_UP))?.peekable();
    while entries.peek().is_some() {
        let mut transaction = to.begin_write().map_err(redb_error(OP_BACK_UP))?;
        transaction.set_durability(Durability::None).map_err(redb_error(OP_BACK_UP))?;
        let mut table = transaction.open_table(definition).map_err(redb_error(OP_BACK_UP))?;
        for entry in entries.by_ref().take(ENTRIES_PER_COMMIT) {
            let (key, value) = entry.map_err(redb_error(OP_BACK_UP))?;
            table.insert(key.value(), value.value()).map_err(redb_error(OP_BACK_UP))?;
        }
        drop(table);
        transaction.commit().map_err(redb_error(OP_BACK_UP))?;
    }
    Ok(())
}

/// Makes all earlier commits durable.
pub(crate) fn make_durable(database: &Database) -> Result<(), StoreError> {
    let mut transaction = database.begin_write().map_err(redb_error(OP_BACK_UP))?;
    transaction.set_durability(Durability::Immediate).map_err(redb_error(OP_BACK_UP))?;
    transaction.commit().map_err(redb_error(OP_BACK_UP))
}
