//! Iteration over tables whose pages may be damaged.
//!
//! A table is read from its beginning, and if a page is damaged also from its end. Entries between
//! the first and the last damaged page of the table are not visited.

use std::cmp::Ordering;

use redb::{
    AccessGuard, Key, ReadOnlyTable, ReadableTable as _, ReadableTableMetadata as _, StorageError,
    Value,
};
use wattle_run::ports::store::StoreError;

use crate::error::{corrupt, redb_error};
use crate::file::guarded;

/// An entry of a table, or the error of reading it.
type Entry<'t, K, V> = Result<(AccessGuard<'t, K>, AccessGuard<'t, V>), StorageError>;

/// Result of the iteration over a table.
pub(crate) struct TableScan {
    /// Number of visited entries, each counted once.
    pub(crate) visited: u64,
    /// Number of entries according to the metadata of the table, if the metadata can be read.
    pub(crate) claimed: Option<u64>,
    /// The part that cannot be read.
    pub(crate) gap: Option<Gap>,
}

impl TableScan {
    /// Returns the number of entries according to the metadata of the table, if all entries were
    /// read and their number differs.
    pub(crate) fn miscount(&self) -> Option<u64> {
        self.claimed.filter(|claimed| self.gap.is_none() && *claimed != self.visited)
    }
}

/// A part of a table that cannot be read.
pub(crate) struct Gap {
    /// Key of the last entry before the gap.
    pub(crate) last_before: Option<Vec<u8>>,
    /// Key of the first entry after the gap.
    pub(crate) first_after: Option<Vec<u8>>,
    /// Damage that ended the pass from the beginning.
    pub(crate) damage: StoreError,
}

/// Visits the entries of a table from its beginning, and if a page is damaged also from its end.
/// Damage that `visit` returns ends the pass in that direction.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read, and errors of `visit` other than damage.
pub(crate) fn scan_table<K: Key + 'static, V: Value + 'static>(
    operation: &'static str,
    table: &ReadOnlyTable<K, V>,
    mut visit: impl FnMut(K::SelfType<'_>, &AccessGuard<'_, V>) -> Result<(), StoreError>,
) -> Result<TableScan, StoreError> {
    let mut forwards = Pass::new(operation, Ordering::Greater);
    let mut backwards = Pass::new(operation, Ordering::Less);
    let damage = damage_of(guarded(operation, || {
        let entries = table.iter().map_err(redb_error(operation))?;
        forwards.run(entries, None, &mut visit)
    }))?;
    if damage.is_some() {
        // The damage that ends the pass from the end is not needed.
        damage_of(guarded(operation, || {
            let entries = table.iter().map_err(redb_error(operation))?;
            backwards.run(entries.rev(), forwards.last.as_deref(), &mut visit)
        }))?;
    }
    let claimed = guarded(operation, || table.len().map_err(redb_error(operation))).ok();
    let visited = forwards.visited + backwards.visited;
    let (last_before, first_after) = (forwards.last, backwards.last);
    let gap = damage.map(|damage| Gap { last_before, first_after, damage });
    Ok(TableScan { visited, claimed, gap })
}

/// Returns the damage that ended a pass.
///
/// # Errors
///
/// Errors other than damage.
fn damage_of(ended: Result<(), StoreError>) -> Result<Option<StoreError>, StoreError> {
    match ended {
        Ok(()) => Ok(None),
        Err(error @ StoreError::Corrupt { .. }) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// One pass over a table.
struct Pass {
    operation: &'static str,
    /// How each key compares to the previous one.
    order: Ordering,
    /// Number of visited entries.
    visited: u64,
    /// Key of the last visited entry.
    last: Option<Vec<u8>>,
}

impl Pass {
    fn new(operation: &'static str, order: Ordering) -> Self {
        Self { operation, order, visited: 0, last: None }
    }

    /// Visits all entries before the entry with the key `stop`, which another pass has visited.
    fn run<'t, K: Key + 'static, V: Value + 'static>(
        &mut self,
        entries: impl Iterator<Item = Entry<'t, K, V>>,
        stop: Option<&[u8]>,
        visit: &mut impl FnMut(K::SelfType<'_>, &AccessGuard<'_, V>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for entry in entries {
            let (key, value) = entry.map_err(redb_error(self.operation))?;
            let bytes = K::as_bytes(&key.value()).as_ref().to_vec();
            if self.last.as_ref().is_some_and(|last| K::compare(&bytes, last) != self.order) {
                return Err(corrupt("table", "the keys of the table are not in order"));
            }
            if stop.is_some_and(|stop| K::compare(&bytes, stop) != Ordering::Greater) {
                return Ok(());
            }
            visit(key.value(), &value)?;
            (self.visited, self.last) = (self.visited + 1, Some(bytes));
        }
        Ok(())
    }
}
