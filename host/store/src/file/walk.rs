//! Walks tables of which pages may be damaged.
//!
//! A table is read from its beginning; where a page is damaged, also from its end. What stands
//! between the first and the last damaged page of the table is not seen.

use std::cmp::Ordering;

use redb::{
    AccessGuard, Key, ReadOnlyTable, ReadableTable as _, ReadableTableMetadata as _, StorageError,
    Value,
};
use wattle_run::ports::store::StoreError;

use crate::error::{corrupt, while_trying};
use crate::file::guarded;

/// An entry of a table, or why it cannot be read.
type Entry<'t, K, V> = Result<(AccessGuard<'t, K>, AccessGuard<'t, V>), StorageError>;

/// How much of a table was seen.
pub(crate) struct Walked {
    /// How many entries were seen, each once.
    pub(crate) seen: u64,
    /// How many the table says it has, if that can be read.
    pub(crate) says: Option<u64>,
    /// Where entries cannot be read.
    pub(crate) gap: Option<Gap>,
}

impl Walked {
    /// How many entries the table says it has, if all could be read and are another number.
    pub(crate) fn miscount(&self) -> Option<u64> {
        self.says.filter(|says| self.gap.is_none() && *says != self.seen)
    }
}

/// A part of a table that cannot be read.
pub(crate) struct Gap {
    /// The key of the last entry before it.
    pub(crate) after: Option<Vec<u8>>,
    /// The key of the first entry behind it.
    pub(crate) before: Option<Vec<u8>>,
    /// What ended the walk from the beginning.
    pub(crate) damage: StoreError,
}

/// Walks a table from its beginning; where a page is damaged, also from its end. Damage that `see`
/// reports ends the walk from that side as well.
///
/// # Errors
///
/// [`StoreError::Backend`] if the file cannot be read, and errors of `see` that are no damage.
pub(crate) fn walk<K: Key + 'static, V: Value + 'static>(
    operation: &'static str,
    table: &ReadOnlyTable<K, V>,
    mut see: impl FnMut(K::SelfType<'_>, &AccessGuard<'_, V>) -> Result<(), StoreError>,
) -> Result<Walked, StoreError> {
    let mut forwards = Pass::new(operation, Ordering::Greater);
    let mut backwards = Pass::new(operation, Ordering::Less);
    let damage = damage_of(guarded(operation, || {
        let entries = table.iter().map_err(while_trying(operation))?;
        forwards.run(entries, None, &mut see)
    }))?;
    if damage.is_some() {
        // Why it ends is known.
        damage_of(guarded(operation, || {
            let entries = table.iter().map_err(while_trying(operation))?;
            backwards.run(entries.rev(), forwards.last.as_deref(), &mut see)
        }))?;
    }
    let says = guarded(operation, || table.len().map_err(while_trying(operation))).ok();
    let seen = forwards.seen + backwards.seen;
    let (after, before) = (forwards.last, backwards.last);
    let gap = damage.map(|damage| Gap { after, before, damage });
    Ok(Walked { seen, says, gap })
}

/// The damage that ended a pass.
///
/// # Errors
///
/// What is no damage.
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
    /// How each key compares to the one before.
    order: Ordering,
    /// Entries that it saw.
    seen: u64,
    /// The key of the last of these.
    last: Option<Vec<u8>>,
}

impl Pass {
    fn new(operation: &'static str, order: Ordering) -> Self {
        Self { operation, order, seen: 0, last: None }
    }

    /// Sees all entries up to the one whose key is `stop`, which another pass saw.
    fn run<'t, K: Key + 'static, V: Value + 'static>(
        &mut self,
        entries: impl Iterator<Item = Entry<'t, K, V>>,
        stop: Option<&[u8]>,
        see: &mut impl FnMut(K::SelfType<'_>, &AccessGuard<'_, V>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for entry in entries {
            let (key, value) = entry.map_err(while_trying(self.operation))?;
            let bytes = K::as_bytes(&key.value()).as_ref().to_vec();
            if self.last.as_ref().is_some_and(|last| K::compare(&bytes, last) != self.order) {
                return Err(corrupt("table", "its keys are not in order"));
            }
            if stop.is_some_and(|stop| K::compare(&bytes, stop) != Ordering::Greater) {
                return Ok(());
            }
            see(key.value(), &value)?;
            (self.seen, self.last) = (self.seen + 1, Some(bytes));
        }
        Ok(())
    }
}
