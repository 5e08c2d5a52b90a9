//! The tables of the file, and documents in them.

use std::ops::{Bound, Range};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, StorageError, TableDefinition};
use wattle_graph::failure::Failure;

use crate::longterm::disk::{READ, cannot};
use crate::longterm::list::Step;
use crate::longterm::record::{Place, Record};
use crate::longterm::shelf::{Shelf, Visit};

/// The number of the format that this code writes, and the newest it reads.
pub(crate) const FORMAT: u64 = 1;

/// Key in [`FACTS`]: format number of the file.
pub(crate) const FACT_FORMAT: &str = "format";

/// Facts about the file.
pub(crate) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("memory");

/// Created, updated, expires, refresh, document.
pub(crate) type Row<'r> = (i64, i64, Option<i64>, Option<u64>, &'r str);

/// Path and key to the document.
pub(crate) const DOCUMENTS: TableDefinition<'_, (&[u8], &str), Row<'_>> =
    TableDefinition::new("documents");

/// When documents expire, with path and key.
pub(crate) const EXPIRIES: TableDefinition<'_, (i64, &[u8], &str), ()> =
    TableDefinition::new("expiries");

impl From<Row<'_>> for Record {
    fn from((created_ms, updated_ms, expires_ms, refresh_ms, document): Row<'_>) -> Self {
        Self { created_ms, updated_ms, expires_ms, refresh_ms, document: document.to_owned() }
    }
}

/// A document as the file holds it.
pub(crate) fn row(record: &Record) -> Row<'_> {
    let Record { created_ms, updated_ms, expires_ms, refresh_ms, document } = record;
    (*created_ms, *updated_ms, *expires_ms, *refresh_ms, document)
}

/// The documents at one time.
pub(crate) struct Documents(ReadOnlyTable<(&'static [u8], &'static str), Row<'static>>);

impl Documents {
    /// Those of a transaction.
    ///
    /// # Errors
    ///
    /// A fault of the host if the file cannot be read.
    pub(crate) fn open(transaction: &ReadTransaction) -> Result<Self, Failure> {
        transaction.open_table(DOCUMENTS).map(Self).map_err(cannot(READ))
    }

    /// A document, expired or not.
    ///
    /// # Errors
    ///
    /// A fault of the host if the file cannot be read.
    pub(crate) fn get(&self, place: &Place) -> Result<Option<Record>, Failure> {
        get(&self.0, place).map_err(cannot(READ))
    }
}

/// A document of either kind of table.
///
/// # Errors
///
/// Those of the file.
pub(crate) fn get(
    table: &impl ReadableTable<(&'static [u8], &'static str), Row<'static>>,
    (path, key): &Place,
) -> Result<Option<Record>, StorageError> {
    Ok(table.get((path.as_slice(), key.as_str()))?.map(|row| row.value().into()))
}

impl Shelf for Documents {
    fn walk(&self, mut paths: Range<Vec<u8>>, visit: &mut Visit<'_>) -> Result<(), Failure> {
        'part: while paths.start < paths.end {
            let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
            for entry in self.0.range(range).map_err(cannot(READ))? {
                let (place, row) = entry.map_err(cannot(READ))?;
                let (path, key) = place.value();
                match visit(path, key, row.value().into())? {
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
            if matches!(visit(path, key, row.value().into())?, Step::Done) {
                return Ok(());
            }
        }
        Ok(())
    }
}
