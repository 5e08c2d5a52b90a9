//! Checks all documents of a file that may be damaged, and reports the documents that are lost.
//!
//! The table is read from its beginning and, if a page is damaged, also from its end. All documents
//! between the first and the last damaged page are lost.

use std::ops::Range;
use std::path::Path;

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, TableDefinition, TableError, Value};
use serde::de::IgnoredAny;
use wattle_run::ports::store::{Damage, StoreError};

use crate::error::{corrupt, redb_error};
use crate::file::guarded;
use crate::file::scan::scan_table;
use crate::memory::disk::table::{self, DOCUMENTS, Key, LOST, UNCHECKED, UncheckedRow};
use crate::memory::document::{DocumentKey, StoredDocument};
use crate::memory::path;

const OP_READ: &str = "read its documents";

/// Receives each intact document.
pub(super) type IntactVisitor<'k> =
    dyn FnMut(&DocumentKey, StoredDocument) -> Result<(), StoreError> + 'k;

/// The result of a check of all documents.
#[derive(Debug, Default)]
pub(super) struct SurveyResult {
    /// Number of intact documents.
    pub(super) intact: u64,
    /// Damaged documents, each with the reason.
    damaged: Vec<(DocumentKey, String)>,
    /// The part of the table that cannot be read.
    gap: Option<Gap>,
}

/// A part of the table that cannot be read.
#[derive(Debug)]
struct Gap {
    /// The last document before the gap; `None` if the gap starts at the beginning of the table.
    last_before: Option<DocumentKey>,
    /// The first document after the gap; `None` if the gap reaches the end of the table.
    first_after: Option<DocumentKey>,
    /// Number of missing documents; `None` if the table's document count cannot be read.
    missing: Option<u64>,
    reason: String,
}

impl Gap {
    fn damage(&self) -> Damage {
        let named = |doc_key: Option<&DocumentKey>, end: &str| {
            doc_key.map_or_else(|| end.to_owned(), |(path, key)| path::document_name(path, key))
        };
        let after = named(self.last_before.as_ref(), "the beginning");
        let before = named(self.first_after.as_ref(), "the end");
        let missing = self.missing.map_or_else(|| "some".to_owned(), |missing| missing.to_string());
        Damage {
            subject: "documents of the long-term memory".to_owned(),
            reason: format!(
                "{missing} cannot be read between {after} and {before}: {}",
                self.reason
            ),
        }
    }

    /// Returns true if the gap may contain documents of a range of paths.
    fn overlaps(&self, paths: &Range<Vec<u8>>) -> bool {
        self.last_before.as_ref().is_none_or(|(last, _)| *last < paths.end)
            && self.first_after.as_ref().is_none_or(|(first, _)| *first >= paths.start)
    }
}

impl SurveyResult {
    /// Returns true if nothing is lost.
    pub(super) fn is_intact(&self) -> bool {
        self.damaged.is_empty() && self.gap.is_none()
    }

    /// Returns true if documents of a range of paths may be lost.
    pub(super) fn may_lack(&self, paths: &Range<Vec<u8>>) -> bool {
        self.damaged.iter().any(|((path, _), _)| paths.contains(path))
            || self.gap.as_ref().is_some_and(|gap| gap.overlaps(paths))
    }

    /// Returns the damage that the check found.
    pub(super) fn damage(&self) -> Vec<Damage> {
        let damage = |((path, key), reason): &(DocumentKey, String)| Damage {
            subject: path::document_name(path, key),
            reason: reason.clone(),
        };
        self.damaged.iter().map(damage).chain(self.gap.as_ref().map(Gap::damage)).collect()
    }
}

/// Checks all documents, and adds the losses of earlier rebuilds.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the documents cannot be listed, [`StoreError::Backend`] if the file
/// cannot be read.
pub(super) fn survey(
    path: &Path,
    transaction: &ReadTransaction,
) -> Result<Vec<Damage>, StoreError> {
    let mut damaged = survey_documents(transaction, &mut |_, _| Ok(()))?.damage();
    match earlier_losses(transaction) {
        Ok(lost) => damaged.extend(lost.into_iter().filter_map(|lost| lost.damage(path))),
        Err(error) => {
            damaged
                .push(Damage { subject: "table `lost`".to_owned(), reason: damage_reason(error)? });
        }
    }
    Ok(damaged)
}

/// One loss of an earlier rebuild.
pub(super) struct EarlierLoss {
    /// The name of the damaged file.
    pub(super) file: String,
    pub(super) subject: String,
    pub(super) reason: String,
}

impl EarlierLoss {
    /// Returns the loss as damage; `None` once an operator has deleted the damaged file.
    fn damage(self, path: &Path) -> Option<Damage> {
        let Self { file, subject, reason } = self;
        path.with_file_name(&file).exists().then(|| Damage {
            subject,
            reason: format!("lost in an earlier rebuild; `{file}` is the damaged file: {reason}"),
        })
    }
}

/// Returns the losses of earlier rebuilds.
///
/// # Errors
///
/// Errors of the file.
pub(super) fn earlier_losses(
    transaction: &ReadTransaction,
) -> Result<Vec<EarlierLoss>, StoreError> {
    guarded(OP_READ, || {
        let table = match transaction.open_table(LOST) {
            Ok(table) => table,
            // Files have this table since format 2.
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(redb_error(OP_READ)(error)),
        };
        let mut all = Vec::new();
        for entry in table.iter().map_err(redb_error(OP_READ))? {
            let (key, lost) = entry.map_err(redb_error(OP_READ))?;
            let ((file, _), (subject, reason)) = (key.value(), lost.value());
            let (subject, reason) = (subject.to_owned(), reason.to_owned());
            all.push(EarlierLoss { file: file.to_owned(), subject, reason });
        }
        Ok(all)
    })
}

/// Checks all documents, and passes the intact documents to `visit`.
///
/// # Errors
///
/// The errors of `visit` and of [`survey`].
pub(super) fn survey_documents(
    transaction: &ReadTransaction,
    visit: &mut IntactVisitor<'_>,
) -> Result<SurveyResult, StoreError> {
    if let Some(table) = open_if_exists(transaction, DOCUMENTS)? {
        return survey_table(
            &table,
            |(path, key), row| table::from_row((path.as_slice(), key.as_str()), row),
            visit,
        );
    }
    match open_if_exists(transaction, UNCHECKED)? {
        Some(table) => survey_table(&table, |_, row| unchecked(row), visit),
        None => Err(corrupt("long-term memory", "its table of documents is missing")),
    }
}

/// Reads a document that has no checksum. Text that is not JSON is damaged.
fn unchecked(row: UncheckedRow<'_>) -> Result<StoredDocument, StoreError> {
    let stored = StoredDocument::from(row);
    let read = serde_json::from_str::<IgnoredAny>(&stored.document);
    read.map(|_| stored).map_err(|error| corrupt("document", error))
}

fn open_if_exists<V: Value + 'static>(
    transaction: &ReadTransaction,
    table: TableDefinition<'_, Key, V>,
) -> Result<Option<ReadOnlyTable<Key, V>>, StoreError> {
    guarded(OP_READ, || match transaction.open_table(table) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(redb_error(OP_READ)(error)),
    })
}

/// Checks all documents of a table.
fn survey_table<V: Value + 'static>(
    table: &ReadOnlyTable<Key, V>,
    read: impl Fn(&DocumentKey, V::SelfType<'_>) -> Result<StoredDocument, StoreError>,
    visit: &mut IntactVisitor<'_>,
) -> Result<SurveyResult, StoreError> {
    let mut found = SurveyResult::default();
    let scan = scan_table(OP_READ, table, |(path, key), row| {
        let doc_key: DocumentKey = (path.to_vec(), key.to_owned());
        match guarded(OP_READ, || read(&doc_key, row.value())) {
            Ok(stored) => {
                visit(&doc_key, stored)?;
                found.intact += 1;
            }
            Err(error) => found.damaged.push((doc_key, damage_reason(error)?)),
        }
        Ok(())
    })?;
    let missing = scan.claimed.map(|claimed| claimed.saturating_sub(scan.visited));
    let miscount = scan.miscount().map(|claimed| {
        let reason = format!("the table counts {claimed} documents and contains {}", scan.visited);
        Gap { last_before: None, first_after: None, missing, reason }
    });
    found.gap = match scan.gap {
        Some(gap) => Some(Gap {
            last_before: gap.last_before.as_deref().map(to_doc_key),
            first_after: gap.first_after.as_deref().map(to_doc_key),
            missing,
            reason: damage_reason(gap.damage)?,
        }),
        None => miscount,
    };
    Ok(found)
}

/// Converts a key of the table.
fn to_doc_key(key: &[u8]) -> DocumentKey {
    let (path, key) = Key::from_bytes(key);
    (path.to_vec(), key.to_owned())
}

/// Returns the reason of a damage.
///
/// # Errors
///
/// Any error that is not damage, unchanged.
fn damage_reason(error: StoreError) -> Result<String, StoreError> {
    match error {
        StoreError::Corrupt { message, .. } => Ok(message),
        error => Err(error),
    }
}
