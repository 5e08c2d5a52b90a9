//! Opens the file: checks that it is whole, and its format, and makes the tables of a new one.

use std::path::{Path, PathBuf};

use redb::{
    Builder, Database, DatabaseError, Error, ReadableDatabase as _, ReadableTable as _, TableError,
};
use wattle_run::ports::store::{Damage, StoreError};

use crate::error::{backend, while_trying};
use crate::file::look::is_damage;
use crate::file::mark;
use crate::file::open::{CHECKED_AT_START_BYTES, checked, damage, is_filled, turn, with_damage};
use crate::longterm::disk::fault::foreign;
use crate::longterm::disk::rebuild::{self, Damaged, EssentialDocuments};
use crate::longterm::disk::survey;
use crate::longterm::disk::table::{
    DOCUMENTS, FACT_FORMAT, FACTS, FORMAT, LOST, UNCHECKED, UNCHECKED_FORMAT, create, newer, row,
};
use crate::longterm::record::Record;

/// Memory for pages of the file: a few thousand documents that are in use.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

const OPEN: &str = "open its file";

const MIGRATE: &str = "bring its file to the newest format";

/// Opens or creates the file. A damaged one is rebuilt without the documents that cannot be read,
/// unless none of the essential ones may be left.
///
/// # Errors
///
/// [`StoreError::Corrupt`] that says what to do, and [`StoreError::Backend`] if it cannot be opened.
pub(super) fn open(
    path: &Path,
    essential: Option<&EssentialDocuments>,
) -> Result<Database, StoreError> {
    let rebuild = |damage: &str| {
        let refusal = |message: String| foreign(path, message);
        rebuild::at_start(path, damage, essential)
            .map_err(|error| with_damage(error, damage, refusal))
    };
    checked(path, CHECKED_AT_START_BYTES, rebuild, |_| open_whole(path))
}

/// Looks at everything in a file that no process has open, without changing it; in one that is not
/// there, nothing is damaged.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if it is missing though it was made, or if no document can be looked for;
/// [`StoreError::Backend`] if a process has it open.
pub(super) fn survey(path: &Path) -> Result<Vec<Damage>, StoreError> {
    mark::refuse_lost(path)?;
    if !is_filled(path) {
        return Ok(Vec::new());
    }
    let _turn = turn(path)?;
    let damage = file_damage(path)?;
    let found =
        looked_at(path, damage.is_none()).map_err(|error| damaged_as_a_whole(path, error))?;
    Ok(damage.into_iter().chain(found).collect())
}

/// What the tables of a file have, if it has any.
fn looked_at(path: &Path, may_be_new: bool) -> Result<Vec<Damage>, StoreError> {
    let file = Damaged::open(path)?;
    if may_be_new && file.is_new()? {
        return Ok(Vec::new());
    }
    survey::survey(path, &file.transaction)
}

/// Rebuilds a file that no process has open, if it is damaged.
///
/// # Errors
///
/// As of [`survey()`], and [`StoreError::Corrupt`] if none of its documents can be read.
pub(super) fn repair(path: &Path) -> Result<Option<(Vec<Damage>, PathBuf)>, StoreError> {
    mark::refuse_lost(path)?;
    if !is_filled(path) {
        return Ok(None);
    }
    let _turn = turn(path)?;
    rebuild::repair(path, file_damage(path)?).map_err(|error| damaged_as_a_whole(path, error))
}

/// Says what to do about a file in which nothing can be looked for.
fn damaged_as_a_whole(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt { message, .. } => foreign(path, message),
        error => error,
    }
}

fn file_damage(path: &Path) -> Result<Option<Damage>, StoreError> {
    let named = |reason| Damage { subject: format!("file `{}`", path.display()), reason };
    Ok(damage(path, u64::MAX)?.map(named))
}

/// Opens a file again that this process had open and that failed.
pub(super) fn open_again(path: &Path) -> Result<Database, StoreError> {
    mark::refuse_lost(path)?;
    open_file(path)
}

fn open_whole(path: &Path) -> Result<Database, StoreError> {
    let database = open_file(path)?;
    match format_of(path, &database)? {
        Some(FORMAT) => {}
        Some(UNCHECKED_FORMAT) => migrate(&database).map_err(while_trying(MIGRATE))?,
        Some(found) if found > FORMAT => return Err(newer(path, found)),
        Some(found) => return Err(foreign(path, format!("it says it has format {found}"))),
        None => create(&database).map_err(while_trying("create its tables"))?,
    }
    Ok(database)
}

fn open_file(path: &Path) -> Result<Database, StoreError> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder.create(path).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => mark::in_use(path),
        error if is_damage(&error) => foreign(path, error),
        DatabaseError::UpgradeRequired(version) => {
            foreign(path, format!("it is a redb file of the old version {version}"))
        }
        error => backend(OPEN, format!("`{}`: {error}", path.display())),
    })
}

/// The format number in the file; `None` if the file is new.
fn format_of(path: &Path, database: &Database) -> Result<Option<u64>, StoreError> {
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

/// Gives the documents of a file of format 1 their checksums, in one commit.
fn migrate(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    {
        let old = transaction.open_table(UNCHECKED)?;
        let mut new = transaction.open_table(DOCUMENTS)?;
        for entry in old.iter()? {
            let (place, unchecked) = entry?;
            let record = Record::from(unchecked.value());
            new.insert(place.value(), row(place.value(), &record))?;
        }
    }
    transaction.delete_table(UNCHECKED)?;
    transaction.open_table(LOST)?;
    transaction.open_table(FACTS)?.insert(FACT_FORMAT, FORMAT)?;
    transaction.commit()?;
    tracing::info!(format = FORMAT, "long-term memory was brought to the newest format");
    Ok(())
}
