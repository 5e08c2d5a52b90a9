//! Migration of files of older formats to the newest one, in one commit.
//!
//! Format 2 added seals and list deltas. A thread whose current checkpoint belongs to a subgraph
//! goes back to the newest checkpoint of the root graph. Format 3 added checksums of frames, heads,
//! records and runs: the migration adds checksums to heads, records and runs, and does not change
//! old frames. Format 4 added pending runs.

use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, WriteTransaction};
use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::codec::{Packer, has_checksum, unpack, with_checksum};
use crate::disk::chain::{LogReader, missing_entry, walk_frames};
use crate::disk::head::Head;
use crate::disk::table::{
    FORMAT, HEADS, HEADS_NAME, LOG, META, PENDING, RECORDS, RECORDS_NAME, RUNS, RUNS_NAME,
};
use crate::error::{backend, redb_error};
use crate::file::kind::META_FORMAT;

/// The oldest format that can be migrated.
pub(crate) const FIRST_FORMAT: u64 = 1;

/// The last format without checksums.
pub(crate) const UNCHECKED_FORMAT: u64 = 2;

const OP_MIGRATE: &str = "migrate its file to the newest format";

/// Migrates a file of an older format to the newest one, in one commit.
pub(crate) fn migrate(database: &Database, found: u64) -> Result<(), StoreError> {
    let moved = if found == FIRST_FORMAT { subgraph_heads(database)? } else { Vec::new() };
    let transaction = database.begin_write().map_err(redb_error(OP_MIGRATE))?;
    let write = || -> Result<(), redb::Error> {
        let mut heads = transaction.open_table(HEADS)?;
        for (thread, packed) in &moved {
            heads.insert(thread.as_slice(), packed.as_slice())?;
        }
        drop(heads);
        add_checksums(&transaction)?;
        transaction.open_table(PENDING)?;
        transaction.open_table(META)?.insert(META_FORMAT, FORMAT)?;
        Ok(())
    };
    write().map_err(redb_error(OP_MIGRATE))?;
    transaction.commit().map_err(redb_error(OP_MIGRATE))?;
    tracing::info!(format = FORMAT, "checkpoint store was migrated to the newest format");
    Ok(())
}

/// Adds a checksum to every record that has none.
fn add_checksums(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    add_table_checksums(transaction.open_table(HEADS)?, HEADS_NAME)?;
    add_table_checksums(transaction.open_table(RECORDS)?, RECORDS_NAME)?;
    add_table_checksums(transaction.open_table(RUNS)?, RUNS_NAME)
}

fn add_table_checksums(
    mut table: Table<'_, &'static [u8], &'static [u8]>,
    name: &str,
) -> Result<(), redb::Error> {
    let mut keys = Vec::new();
    for entry in table.iter()? {
        let (key, stored) = entry?;
        if !has_checksum(stored.value()) {
            keys.push(key.value().to_vec());
        }
    }
    for key in keys {
        let stored = table.get(key.as_slice())?.map(|stored| stored.value().to_vec());
        if let Some(stored) = stored {
            table.insert(key.as_slice(), with_checksum(name, &key, &stored).as_slice())?;
        }
    }
    Ok(())
}

/// A key and its value.
type KeyValue = (Vec<u8>, Vec<u8>);

/// The log of a file that is being migrated.
struct OldLog(ReadOnlyTable<u64, &'static [u8]>);

impl LogReader for OldLog {
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let entry = self.0.get(number).map_err(redb_error(OP_MIGRATE))?;
        read(entry.ok_or_else(|| missing_entry(number))?.value())
    }
}

/// Returns the heads of threads whose current checkpoint belongs to a subgraph, moved to the root
/// graph.
fn subgraph_heads(database: &Database) -> Result<Vec<KeyValue>, StoreError> {
    let transaction = database.begin_read().map_err(redb_error(OP_MIGRATE))?;
    let log = OldLog(transaction.open_table(LOG).map_err(redb_error(OP_MIGRATE))?);
    let heads = transaction.open_table(HEADS).map_err(redb_error(OP_MIGRATE))?;
    let mut moved = Vec::new();
    for entry in heads.iter().map_err(redb_error(OP_MIGRATE))? {
        let (thread, packed) = entry.map_err(redb_error(OP_MIGRATE))?;
        let mut head: Head = unpack("thread head", packed.value())?;
        let root = newest_root(&log, &head)?;
        if root != head.current {
            head.current = root;
            let packed = Packer::default().pack(&head);
            let packed = packed.map_err(|message| backend(OP_MIGRATE, message))?;
            moved.push((thread.value().to_vec(), packed));
        }
    }
    Ok(moved)
}

/// Returns the newest checkpoint of the root graph up to the current checkpoint.
fn newest_root(log: &OldLog, head: &Head) -> Result<Option<CheckpointId>, StoreError> {
    let Some(current) = head.current else {
        return Ok(None);
    };
    for step in walk_frames(log, head.frame) {
        let (_, header) = step?;
        if header.namespace.is_empty()
            && let Some(id) = header.checkpoint.filter(|id| *id <= current)
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}
