//! The selecting fields of the records of a table.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use redb::{ReadableTable as _, TableDefinition};
use serde::de::DeserializeOwned;
use wattle_run::ports::store::StoreError;

use crate::codec::read;
use crate::disk::snapshot::{READ, RECORD, RUN, Snapshot};
use crate::disk::table::{RECORDS, RECORDS_NAME, RUNS, RUNS_NAME};
use crate::error::redb_error;
use crate::query::ThreadFields;
use crate::run_search::RunFields;

/// The selecting fields of one record.
pub(crate) trait Fields: DeserializeOwned {
    /// The table of the records.
    const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]>;
    /// Name of the table, for checksums.
    const TABLE_NAME: &'static str;
    /// Kind of the records, for messages.
    const KIND: &'static str;

    /// Returns the id, which is the key of the record.
    fn id(&self) -> &str;

    /// Returns the length of all texts, in bytes.
    fn text_bytes(&self) -> usize;
}

impl Fields for ThreadFields {
    const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = RECORDS;
    const TABLE_NAME: &'static str = RECORDS_NAME;
    const KIND: &'static str = RECORD;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn text_bytes(&self) -> usize {
        let names = self.id.as_str().len() + self.app.as_str().len() + self.graph.as_str().len();
        let tenant = self.tenant.as_ref().map_or(0, String::len);
        let failure = self.failure.as_ref().map_or(0, |failure| failure.code.len());
        names + tenant + failure
    }
}

impl Fields for RunFields {
    const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = RUNS;
    const TABLE_NAME: &'static str = RUNS_NAME;
    const KIND: &'static str = RUN;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn text_bytes(&self) -> usize {
        let failure = self.failure.as_ref().map_or(0, |failure| failure.code.len());
        self.id.as_str().len() + self.thread.as_str().len() + failure
    }
}

/// Fields that a set finds by their id.
struct ById<F>(F);

impl<F: Fields> Borrow<str> for ById<F> {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl<F: Fields> Hash for ById<F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl<F: Fields> PartialEq for ById<F> {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl<F: Fields> Eq for ById<F> {}

impl<F: Fields> ById<F> {
    /// Returns the approximate size in memory, in bytes. After a set has grown, about half of its
    /// slots are free.
    fn memory_bytes(&self) -> usize {
        2 * size_of::<F>() + self.0.text_bytes()
    }
}

/// The selecting fields of all records of a table, as of one snapshot. A damaged record is logged
/// and left out, so that it does not hide the others.
pub(crate) struct FieldSet<F> {
    fields: HashSet<ById<F>>,
    /// Approximate size in memory, in bytes.
    bytes: usize,
}

impl<F: Fields> FieldSet<F> {
    /// Reads the records of a snapshot. Returns `None` if their fields take more than `max_bytes`.
    pub(crate) fn read(snapshot: &Snapshot, max_bytes: usize) -> Result<Option<Self>, StoreError> {
        let table = snapshot.transaction.open_table(F::TABLE).map_err(redb_error(READ))?;
        let mut set = Self { fields: HashSet::new(), bytes: 0 };
        for entry in table.iter().map_err(redb_error(READ))? {
            let (key, stored) = entry.map_err(redb_error(READ))?;
            set.insert(key.value(), stored.value());
            if set.bytes > max_bytes {
                return Ok(None);
            }
        }
        Ok(Some(set))
    }

    /// Moves the set to a later snapshot. `keys` has at least the keys whose records the later
    /// snapshot has changed. Returns `None` if the fields take more than `max_bytes`.
    pub(crate) fn moved_to<'k>(
        mut self,
        snapshot: &Snapshot,
        keys: impl IntoIterator<Item = &'k str>,
        max_bytes: usize,
    ) -> Result<Option<Self>, StoreError> {
        let table = snapshot.transaction.open_table(F::TABLE).map_err(redb_error(READ))?;
        for key in keys {
            if let Some(old) = self.fields.take(key) {
                self.bytes -= old.memory_bytes();
            }
            if let Some(stored) = table.get(key.as_bytes()).map_err(redb_error(READ))? {
                self.insert(key.as_bytes(), stored.value());
            }
        }
        Ok((self.bytes <= max_bytes).then_some(self))
    }

    /// Returns the fields of the record with an id.
    pub(crate) fn get(&self, id: &str) -> Option<&F> {
        self.fields.get(id).map(|fields| &fields.0)
    }

    /// Returns the fields of all records, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &F> {
        self.fields.iter().map(|fields| &fields.0)
    }

    fn insert(&mut self, key: &[u8], stored: &[u8]) {
        let fields: Option<F> = listed_fields(F::KIND, (F::TABLE_NAME, key), stored);
        let Some(fields) = fields.map(ById) else { return };
        self.bytes += fields.memory_bytes();
        if let Some(old) = self.fields.replace(fields) {
            self.bytes -= old.memory_bytes();
        }
    }
}

/// Decodes the selecting fields of a stored record. Logs a damaged record, so that it does not hide
/// the others.
pub(crate) fn listed_fields<T: DeserializeOwned>(
    what: &str,
    location: (&str, &[u8]),
    stored: &[u8],
) -> Option<T> {
    let fields = read(what, location, stored);
    fields.inspect_err(|error| tracing::error!(%error, "damaged {what} is not listed")).ok()
}
