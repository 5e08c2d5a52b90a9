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
use crate::memory::disk::failure::{OP_READ, failure, redb_failure};
use crate::memory::document::{DocumentKey, StoredDocument, stored_bytes};
use crate::memory::namespaces::ScanStep;
use crate::memory::path;
use crate::memory::scan::{DocumentScan, Visitor};

/// The format that this code writes, and the newest one that it reads.
pub(crate) const FORMAT: u64 = 2;

/// The format of files whose documents have no checksums.
pub(crate) const UNCHECKED_FORMAT: u64 = 1;

/// Properties of the file.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("memory");

/// The key of a row: the path and the key of the document.
pub(crate) type Key = (&'static [u8], &'static str);

/// A row: created, updated, expires, refresh, checksum, document.
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
pub(crate) fn newer_format_error(path: &Path, found: u64) -> StoreError {
    let path = path.display();
    let message = format!(
        "`{path}` has format {found}, newer than {FORMAT}, the newest that this version of wattle \
         reads; use a newer wattle"
    );
    backend("open its file", message)
}

impl From<UncheckedRow<'_>> for StoredDocument {
    fn from((created_ms, updated_ms, expires_ms, refresh_ms, document): UncheckedRow<'_>) -> Self {
        Self { created_ms, updated_ms, expires_ms, refresh_ms, document: document.to_owned() }
    }
}

/// Returns the row of a document.
pub(crate) fn to_row<'r>(doc_key: (&[u8], &str), stored: &'r StoredDocument) -> Row<'r> {
    let StoredDocument { created_ms, updated_ms, expires_ms, refresh_ms, document } = stored;
    (*created_ms, *updated_ms, *expires_ms, *refresh_ms, row_checksum(doc_key, stored), document)
}

/// Reads a document from its row.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the row does not match its checksum.
pub(crate) fn from_row(doc_key: (&[u8], &str), row: Row<'_>) -> Result<StoredDocument, StoreError> {
    let (created_ms, updated_ms, expires_ms, refresh_ms, written, document) = row;
    let stored = StoredDocument::from((created_ms, updated_ms, expires_ms, refresh_ms, document));
    if row_checksum(doc_key, &stored) == written {
        return Ok(stored);
    }
    Err(corrupt(path::document_name(doc_key.0, doc_key.1), "it does not match its checksum"))
}

/// Returns the checksum of a document. The checksum also covers the path and the key, so a row
/// under another key does not match.
fn row_checksum((path, key): (&[u8], &str), stored: &StoredDocument) -> u64 {
    let expires = stored.expires_ms.map(i64::to_le_bytes);
    let refresh = stored.refresh_ms.map(u64::to_le_bytes);
    u64::from_le_bytes(checksum(&[
        path,
        key.as_bytes(),
        &stored.created_ms.to_le_bytes(),
        &stored.updated_ms.to_le_bytes(),
        expires.as_ref().map(<[u8; 8]>::as_slice).unwrap_or_default(),
        refresh.as_ref().map(<[u8; 8]>::as_slice).unwrap_or_default(),
        stored.document.as_bytes(),
    ]))
}

/// Reads a document from its row. A panic of redb on a damaged page becomes an error.
fn read_checked(
    doc_key: (&[u8], &str),
    row: &AccessGuard<'_, Row<'static>>,
) -> Result<StoredDocument, StoreError> {
    guarded(OP_READ, || from_row(doc_key, row.value()))
}

/// The documents as of one transaction.
pub(crate) struct DocumentSnapshot(ReadOnlyTable<Key, Row<'static>>);

impl DocumentSnapshot {
    /// Opens the documents of a transaction.
    ///
    /// # Errors
    ///
    /// `broken` or `unavailable` if the file cannot be read.
    pub(crate) fn open(transaction: &ReadTransaction) -> Result<Self, Failure> {
        transaction.open_table(DOCUMENTS).map(Self).map_err(redb_failure(OP_READ))
    }

    /// Returns a document, expired or not.
    ///
    /// # Errors
    ///
    /// `broken` if the document is damaged, and the errors of [`DocumentSnapshot::open`].
    pub(crate) fn get(&self, doc_key: &DocumentKey) -> Result<Option<StoredDocument>, Failure> {
        let found = get(&self.0, doc_key).map_err(redb_failure(OP_READ))?;
        found.transpose().map_err(failure)
    }

    /// Returns the bytes of all documents in a range of paths, including damaged documents.
    ///
    /// # Errors
    ///
    /// The errors of [`DocumentSnapshot::open`].
    pub(crate) fn bytes_in(&self, paths: &Range<Vec<u8>>) -> Result<u64, Failure> {
        let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
        let mut bytes = 0;
        for entry in self.0.range(range).map_err(redb_failure(OP_READ))? {
            let (doc_key, row) = entry.map_err(redb_failure(OP_READ))?;
            bytes += bytes_of(doc_key.value(), row.value());
        }
        Ok(bytes)
    }
}

/// Returns the number of bytes of a document that the usage of the memory counts.
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
    (path, key): &DocumentKey,
) -> Result<Option<Result<StoredDocument, StoreError>>, StorageError> {
    let doc_key = (path.as_slice(), key.as_str());
    Ok(table.get(doc_key)?.map(|row| read_checked(doc_key, &row)))
}

impl DocumentScan for DocumentSnapshot {
    fn scan(&self, mut paths: Range<Vec<u8>>, visit: &mut Visitor<'_>) -> Result<(), Failure> {
        'part: while paths.start < paths.end {
            let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
            for entry in self.0.range(range).map_err(redb_failure(OP_READ))? {
                let (doc_key, row) = entry.map_err(redb_failure(OP_READ))?;
                let (path, key) = doc_key.value();
                match visit(path, key, read_checked((path, key), &row).map_err(failure)?)? {
                    ScanStep::Next => {}
                    ScanStep::Stop => return Ok(()),
                    ScanStep::SeekTo(next) => {
                        paths.start = next;
                        continue 'part;
                    }
                }
            }
            return Ok(());
        }
        Ok(())
    }

    fn scan_after(&self, doc_key: &DocumentKey, visit: &mut Visitor<'_>) -> Result<(), Failure> {
        let doc_key = (doc_key.0.as_slice(), doc_key.1.as_str());
        let after = (Bound::Excluded(doc_key), Bound::Unbounded);
        for entry in self.0.range::<(&[u8], &str)>(after).map_err(redb_failure(OP_READ))? {
            let (doc_key, row) = entry.map_err(redb_failure(OP_READ))?;
            let (path, key) = doc_key.value();
            let stored = read_checked((path, key), &row).map_err(failure)?;
            if matches!(visit(path, key, stored)?, ScanStep::Stop) {
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
        let stored = StoredDocument {
            created_ms: 1,
            updated_ms: 2,
            expires_ms: Some(3),
            refresh_ms: None,
            document: "{}".to_owned(),
        };
        let doc_key = (&b"path"[..], "key");
        let whole = to_row(doc_key, &stored);
        assert_eq!(from_row(doc_key, whole).unwrap(), stored);
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
            let error = from_row(doc_key, damaged).unwrap_err().to_string();
            assert!(error.contains("document \"key\""), "{error}");
        }
        assert!(from_row((doc_key.0, "other"), whole).is_err());
        assert!(from_row((&b"other"[..], "key"), whole).is_err());
    }
}
