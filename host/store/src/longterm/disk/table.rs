//! The tables of the file, and documents in them.

use std::ops::{Bound, Range};
use std::path::Path;

use redb::{
    AccessGuard, Database, Error, ReadOnlyTable, ReadTransaction, ReadableTable, StorageError,
    TableDefinition,
};
use wattle_graph::failure::Failure;
use wattle_run::ports::store::StoreError;

use crate::codec::checksum;
use crate::error::{backend, corrupt};
use crate::file::guarded;
use crate::file::kind::META_FORMAT;
use crate::longterm::disk::fault::{READ, cannot, failure};
use crate::longterm::list::Step;
use crate::longterm::path;
use crate::longterm::record::{Place, Record, stored_bytes};
use crate::longterm::shelf::{Shelf, Visit};

/// The format that this code writes, and the newest one that it reads.
pub(crate) const FORMAT: u64 = 2;

/// The format of files whose documents have no checksums.
pub(crate) const UNCHECKED_FORMAT: u64 = 1;

/// Properties of the file.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("memory");

/// Path and key.
pub(crate) type Key = (&'static [u8], &'static str);

/// Created, updated, expires, refresh, checksum, document.
pub(crate) type Row<'r> = (i64, i64, Option<i64>, Option<u64>, u64, &'r str);

/// A row of format 1: created, updated, expires, refresh, document.
pub(crate) type UncheckedRow<'r> = (i64, i64, Option<i64>, Option<u64>, &'r str);

/// Documents by path and key.
pub(crate) const DOCUMENTS: TableDefinition<'_, Key, Row<'_>> = TableDefinition::new("items");

/// Documents by path and key, in a file of format 1.
pub(crate) const UNCHECKED: TableDefinition<'_, Key, UncheckedRow<'_>> =
    TableDefinition::new("documents");

/// Expiry, path and key of the documents that expire.
pub(crate) const EXPIRIES: TableDefinition<'_, (i64, &[u8], &str), ()> =
    TableDefinition::new("expiries");

/// Losses of rebuilds: subject and reason, by the name of the damaged file and a number.
pub(crate) const LOST: TableDefinition<'_, (&str, u64), (&str, &str)> =
    TableDefinition::new("lost");

/// Creates the tables of a new file.
///
/// # Errors
///
/// Errors of the file.
pub(crate) fn create(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(DOCUMENTS)?;
    transaction.open_table(EXPIRIES)?;
    transaction.open_table(LOST)?;
    transaction.open_table(META)?.insert(META_FORMAT, FORMAT)?;
    transaction.commit()?;
    Ok(())
}

/// Returns the error for a file that a newer Wattle wrote.
pub(crate) fn newer(path: &Path, found: u64) -> StoreError {
    let path = path.display();
    let message = format!(
        "`{path}` has format {found}, newer than {FORMAT}, the newest that this version of wattle \
         reads; use a newer wattle"
    );
    backend("open its file", message)
}

impl From<UncheckedRow<'_>> for Record {
    fn from((created_ms, updated_ms, expires_ms, refresh_ms, document): UncheckedRow<'_>) -> Self {
        Self { created_ms, updated_ms, expires_ms, refresh_ms, document: document.to_owned() }
    }
}

/// Returns the row of a document.
pub(crate) fn row<'r>(place: (&[u8], &str), record: &'r Record) -> Row<'r> {
    let Record { created_ms, updated_ms, expires_ms, refresh_ms, document } = record;
    (*created_ms, *updated_ms, *expires_ms, *refresh_ms, row_checksum(place, record), document)
}

/// Reads a document from its row.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if it does not match its checksum.
pub(crate) fn read(place: (&[u8], &str), row: Row<'_>) -> Result<Record, StoreError> {
    let (created_ms, updated_ms, expires_ms, refresh_ms, written, document) = row;
    let record = Record::from((created_ms, updated_ms, expires_ms, refresh_ms, document));
    if row_checksum(place, &record) == written {
        return Ok(record);
    }
    Err(corrupt(path::named(place.0, place.1), "it does not match its checksum"))
}

/// Returns the checksum of a document. It covers path and key, so that a row under another key does
/// not match.
fn row_checksum((path, key): (&[u8], &str), record: &Record) -> u64 {
    let expires = record.expires_ms.map(i64::to_le_bytes);
    let refresh = record.refresh_ms.map(u64::to_le_bytes);
    u64::from_le_bytes(checksum(&[
        path,
        key.as_bytes(),
        &record.created_ms.to_le_bytes(),
        &record.updated_ms.to_le_bytes(),
        expires.as_ref().map(<[u8; 8]>::as_slice).unwrap_or_default(),
        refresh.as_ref().map(<[u8; 8]>::as_slice).unwrap_or_default(),
        record.document.as_bytes(),
    ]))
}

/// Reads a document from its row. A panic of redb on a damaged page becomes an error.
fn checked(
    place: (&[u8], &str),
    row: &AccessGuard<'_, Row<'static>>,
) -> Result<Record, StoreError> {
    guarded(READ, || read(place, row.value()))
}

/// The documents as of one transaction.
pub(crate) struct Documents(ReadOnlyTable<Key, Row<'static>>);

impl Documents {
    /// Opens the documents of a transaction.
    ///
    /// # Errors
    ///
    /// `broken` or `unavailable` if the file cannot be read.
    pub(crate) fn open(transaction: &ReadTransaction) -> Result<Self, Failure> {
        transaction.open_table(DOCUMENTS).map(Self).map_err(cannot(READ))
    }

    /// Returns a document, expired or not.
    ///
    /// # Errors
    ///
    /// `broken` if it is damaged, and those of [`Documents::open`].
    pub(crate) fn get(&self, place: &Place) -> Result<Option<Record>, Failure> {
        let found = get(&self.0, place).map_err(cannot(READ))?;
        found.transpose().map_err(failure)
    }

    /// Returns the bytes of all documents in a range of paths, damaged ones included.
    ///
    /// # Errors
    ///
    /// Those of [`Documents::open`].
    pub(crate) fn bytes_in(&self, paths: &Range<Vec<u8>>) -> Result<u64, Failure> {
        let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
        let mut bytes = 0;
        for entry in self.0.range(range).map_err(cannot(READ))? {
            let (place, row) = entry.map_err(cannot(READ))?;
            bytes += bytes_of(place.value(), row.value());
        }
        Ok(bytes)
    }
}

/// Returns the bytes that a document counts.
pub(crate) fn bytes_of((path, key): (&[u8], &str), row: Row<'_>) -> u64 {
    let (.., document) = row;
    stored_bytes(path, key, document)
}

/// Returns a document from a table of a read or a write transaction, or its damage.
///
/// # Errors
///
/// Errors of the file.
pub(crate) fn get(
    table: &impl ReadableTable<Key, Row<'static>>,
    (path, key): &Place,
) -> Result<Option<Result<Record, StoreError>>, StorageError> {
    let place = (path.as_slice(), key.as_str());
    Ok(table.get(place)?.map(|row| checked(place, &row)))
}

impl Shelf for Documents {
    fn walk(&self, mut paths: Range<Vec<u8>>, visit: &mut Visit<'_>) -> Result<(), Failure> {
        'part: while paths.start < paths.end {
            let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
            for entry in self.0.range(range).map_err(cannot(READ))? {
                let (place, row) = entry.map_err(cannot(READ))?;
                let (path, key) = place.value();
                match visit(path, key, checked((path, key), &row).map_err(failure)?)? {
                    Step::Next => {}
                    Step::Done => return Ok(()),
                    Step::Skip(next) => {
                        paths.start = next;
                        continue 'part;
                    }
                }
            }
            return Ok(());
        }
        Ok(())
    }

    fn walk_behind(&self, place: &Place, visit: &mut Visit<'_>) -> Result<(), Failure> {
        let place = (place.0.as_slice(), place.1.as_str());
        let behind = (Bound::Excluded(place), Bound::Unbounded);
        for entry in self.0.range::<(&[u8], &str)>(behind).map_err(cannot(READ))? {
            let (place, row) = entry.map_err(cannot(READ))?;
            let (path, key) = place.value();
            let record = checked((path, key), &row).map_err(failure)?;
            if matches!(visit(path, key, record)?, Step::Done) {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_covers_the_document_and_its_key() {
        let record = Record {
            created_ms: 1,
            updated_ms: 2,
            expires_ms: Some(3),
            refresh_ms: None,
            document: "{}".to_owned(),
        };
        let place = (&b"path"[..], "key");
        let whole = row(place, &record);
        assert_eq!(read(place, whole).unwrap(), record);
        let (created_ms, updated_ms, expires_ms, refresh_ms, check, document) = whole;
        for damaged in [
            (created_ms + 1, updated_ms, expires_ms, refresh_ms, check, document),
            (created_ms, updated_ms + 1, expires_ms, refresh_ms, check, document),
            (created_ms, updated_ms, None, refresh_ms, check, document),
            // The same number, but as `refresh_ms`.
            (created_ms, updated_ms, None, Some(3), check, document),
            (created_ms, updated_ms, expires_ms, Some(0), check, document),
            (created_ms, updated_ms, expires_ms, refresh_ms, check ^ 1, document),
            (created_ms, updated_ms, expires_ms, refresh_ms, check, "[]"),
        ] {
            let error = read(place, damaged).unwrap_err().to_string();
            assert!(error.contains("document \"key\""), "{error}");
        }
        assert!(read((place.0, "other"), whole).is_err());
        assert!(read((&b"other"[..], "key"), whole).is_err());
    }
}
