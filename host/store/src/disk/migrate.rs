//! From format 1 to format 2: new frames may have seals and ends of lists, old ones stay as they
//! are. A thread that stands at a checkpoint of a nested graph goes back to the root's newest.

use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable};
use wattle_graph::id::CheckpointId;
use wattle_run::ports::store::StoreError;

use crate::codec::{Packer, unpack};
use crate::disk::chain::walk;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{FACT_FORMAT, FACTS, FORMAT, HEADS};
use crate::error::{backend, while_trying};

/// The format that this reads.
pub(crate) const FIRST_FORMAT: u64 = 1;

const MIGRATE: &str = "bring its file to the newest format";

/// Brings a file of format 1 to the newest, in one commit.
pub(crate) fn migrate(database: &Arc<Database>) -> Result<(), StoreError> {
    let moved = nested(database)?;
    let transaction = database.begin_write().map_err(while_trying(MIGRATE))?;
    let write = || -> Result<(), redb::Error> {
        let mut heads = transaction.open_table(HEADS)?;
        for (thread, packed) in &moved {
            heads.insert(thread.as_slice(), packed.as_slice())?;
        }
        transaction.open_table(FACTS)?.insert(FACT_FORMAT, FORMAT)?;
        Ok(())
    };
    write().map_err(while_trying(MIGRATE))?;
    transaction.commit().map_err(while_trying(MIGRATE))?;
    tracing::info!(format = FORMAT, "checkpoint store was brought to the newest format");
    Ok(())
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// Heads of threads that stand at a checkpoint of a nested graph, moved to the root.
fn nested(database: &Arc<Database>) -> Result<Vec<Entry>, StoreError> {
    let snapshot = Snapshot::take(database.clone())?;
    let transaction = database.begin_read().map_err(while_trying(MIGRATE))?;
    let heads = transaction.open_table(HEADS).map_err(while_trying(MIGRATE))?;
    let mut moved = Vec::new();
    for entry in heads.iter().map_err(while_trying(MIGRATE))? {
        let (thread, packed) = entry.map_err(while_trying(MIGRATE))?;
        let mut head: Head = unpack("thread head", packed.value())?;
        let root = root(&snapshot, &head)?;
        if root != head.current {
            head.current = root;
            let packed = Packer::default().pack(&head);
            let packed = packed.map_err(|message| backend(MIGRATE, message))?;
            moved.push((thread.value().to_vec(), packed));
        }
    }
    Ok(moved)
}

/// The checkpoint a thread stands at if it is one of the root, otherwise the root's newest before
/// it.
fn root(snapshot: &Snapshot, head: &Head) -> Result<Option<CheckpointId>, StoreError> {
    let Some(current) = head.current else { return Ok(None) };
    for step in walk(snapshot, head.frame) {
        let (_, header) = step?;
        if header.namespace.is_empty()
            && let Some(id) = header.checkpoint.filter(|id| *id <= current)
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}
