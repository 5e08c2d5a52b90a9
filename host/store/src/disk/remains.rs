//! What is left of threads that are gone, and of attempts to write one anew that came to nothing:
//! it is deleted bit by bit, between the commits of others.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use redb::{Durability, Error, Key, ReadableTable, Table, TableError, Value, WriteTransaction};
use tokio::sync::oneshot;
use wattle_run::ports::store::{Compacted, StoreError};

use crate::disk::chain::walk;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{LOG, MARKS, MENTIONS, REMAINS, THREAD_RUNS};
use crate::disk::writer::Writer;
use crate::error::while_trying;
use crate::file::guarded;
use crate::file::handle::Source;

/// Entries of a table that one commit deletes: it takes some milliseconds, for which others wait.
const PART: usize = 512;

const DELETE: &str = "delete what is left of a thread";

/// Whoever waits until nothing is left of a thread.
pub(crate) type Cleared = oneshot::Receiver<Result<(), StoreError>>;

/// What is left of threads, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Remains(BTreeMap<u64, Remain>);

#[derive(Debug, Default)]
struct Remain {
    /// The newest frame that is left; 0 for none.
    frame: u64,
    waiting: Option<oneshot::Sender<Result<(), StoreError>>>,
}

impl Remains {
    /// What an earlier process left.
    pub(crate) fn read(source: &Source) -> Result<Self, StoreError> {
        let transaction = source.handle().begin_read().map_err(while_trying(DELETE))?;
        let table = match transaction.open_table(REMAINS) {
            Ok(table) => table,
            // No thread was deleted since files have this table.
            Err(TableError::TableDoesNotExist(_)) => return Ok(Self::default()),
            Err(error) => return Err(while_trying(DELETE)(error)),
        };
        let mut remains = BTreeMap::new();
        for entry in table.iter().map_err(while_trying(DELETE))? {
            let (number, frame) = entry.map_err(while_trying(DELETE))?;
            remains.insert(number.value(), Remain { frame: frame.value(), waiting: None });
        }
        Ok(Self(remains))
    }

    /// Adds what is left of a thread, which the file says already.
    pub(crate) fn add(&mut self, number: u64, frame: u64) -> Cleared {
        let (waiting, cleared) = oneshot::channel();
        self.0.insert(number, Remain { frame, waiting: Some(waiting) });
        cleared
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Deletes a part of what is left, if there is anything. What cannot be deleted now is left to
    /// the next opening of the file.
    pub(crate) fn clear_some(&mut self, source: &Source) {
        let Some(mut first) = self.0.first_entry() else {
            return;
        };
        let (number, frame) = (*first.key(), first.get().frame);
        let answer = match guarded(DELETE, || clear(source, number, frame)) {
            Ok(Some(left)) => {
                first.get_mut().frame = left;
                return;
            }
            Ok(None) => Ok(()),
            Err(error) => {
                tracing::error!(%error, "deleted threads still take space until the next start");
                Err(error)
            }
        };
        if let Some(waiting) = first.remove().waiting {
            // Whoever waited may be gone.
            let _ = waiting.send(answer);
        }
    }
}

impl Writer {
    /// Shrinks the file, with nothing left in it of deleted threads; `None` if a read does not end.
    pub(crate) fn compact(&mut self) -> Result<Option<Compacted>, StoreError> {
        while !self.remains.is_empty() {
            self.remains.clear_some(&self.source);
        }
        self.source.compact()
    }
}

/// Deletes a part of what is left of a thread; answers with its newest frame that is still left, 0
/// if only other entries are, `None` if nothing is.
fn clear(source: &Source, number: u64, frame: u64) -> Result<Option<u64>, StoreError> {
    let snapshot = Snapshot::newest(source)?;
    let (mut entries, mut left) = (Vec::new(), 0);
    for step in walk(&snapshot, frame) {
        let (number, header) = step?;
        entries.extend(number..number + u64::from(header.chunks));
        left = header.previous;
        if entries.len() >= PART {
            break;
        }
    }
    drop(snapshot);
    let handle = source.handle();
    let mut transaction = handle.writing()?.begin_write().map_err(while_trying(DELETE))?;
    transaction.set_durability(Durability::Immediate).map_err(while_trying(DELETE))?;
    let left = remove(&transaction, number, &entries, left).map_err(while_trying(DELETE))?;
    transaction.commit().map_err(while_trying(DELETE))?;
    Ok(left)
}

fn remove(
    transaction: &WriteTransaction,
    number: u64,
    entries: &[u64],
    left: u64,
) -> Result<Option<u64>, Error> {
    let mut log = transaction.open_table(LOG)?;
    for entry in entries.iter().rev() {
        log.remove(entry)?;
    }
    let mut remains = transaction.open_table(REMAINS)?;
    let is_cleared = left == 0 && entries.len() < PART && index_is_cleared(transaction, number)?;
    if is_cleared {
        remains.remove(number)?;
        return Ok(None);
    }
    remains.insert(number, left)?;
    Ok(Some(left))
}

/// Deletes some of the entries that have a thread's number in their keys; answers with whether
/// these were all.
fn index_is_cleared(transaction: &WriteTransaction, number: u64) -> Result<bool, Error> {
    let pairs = (number, 0)..=(number, u64::MAX);
    let digests = (number, [0; 32])..=(number, [u8::MAX; 32]);
    Ok(take(&mut transaction.open_table(THREAD_RUNS)?, pairs.clone())?
        && take(&mut transaction.open_table(MARKS)?, pairs)?
        && take(&mut transaction.open_table(MENTIONS)?, digests)?)
}

/// Deletes some entries of a range; answers with whether these were all.
fn take<K: Key + 'static, V: Value + 'static>(
    table: &mut Table<'_, K, V>,
    range: RangeInclusive<K::SelfType<'_>>,
) -> Result<bool, Error> {
    let mut taken = 0;
    for entry in table.extract_from_if(range, |_, _| true)?.take(PART) {
        entry?;
        taken += 1;
    }
    Ok(taken < PART)
}
