//! The open commit group, and the threads that the writer caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_graph::id::{ChannelName, CheckpointId, RunId};
use wattle_run::ports::store::StoreError;

use crate::disk::delta::ChainStats;
use crate::disk::frame::FrameIndex;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::write_set::{Overlay, WriteSet};
use crate::file::handle::Handle;

/// A cached thread, staged batches included.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedThread {
    pub(crate) head: Head,
    /// The frame index of the newest checkpoint, if that checkpoint was written recently.
    pub(crate) frame_index: FrameIndex,
    /// How the lists of the newest checkpoint are stored.
    pub(crate) lists: BTreeMap<ChannelName, ListState>,
}

/// How a version of a list is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListState {
    pub(crate) version: CheckpointId,
    pub(crate) frame_no: u64,
    pub(crate) chain: ChainStats,
}

/// An open commit group.
pub(crate) struct CommitGroup {
    handle: Arc<Handle>,
    /// Snapshot of the file. Opened for the first thread that is not cached.
    snapshot: Option<Snapshot>,
    pub(crate) write_set: WriteSet,
}

impl CommitGroup {
    /// Creates an empty group.
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, snapshot: None, write_set: WriteSet::default() }
    }

    /// Stages the deletion of a run from the thread with a number.
    pub(crate) fn delete_run(&mut self, number: u64, run: &RunId) -> Result<(), StoreError> {
        let staged =
            self.write_set.thread_runs.iter().find(|(key, id)| key.0 == number && *id == run);
        let key = match staged.map(|(key, _)| *key) {
            Some(key) => Some(key),
            None => self.overlay()?.snapshot.run_key(number, run)?,
        };
        if let Some(key) = key {
            self.write_set.thread_runs.remove(&key);
            self.write_set.deleted_thread_runs.push(key);
        }
        self.write_set.runs.remove(run);
        self.write_set.deleted.1.push(run.clone());
        Ok(())
    }

    /// Returns the log, staged entries included.
    pub(crate) fn overlay(&mut self) -> Result<Overlay<'_>, StoreError> {
        let snapshot = match self.snapshot.take() {
            Some(snapshot) => snapshot,
            None => Snapshot::open(self.handle.clone())?,
        };
        Ok(Overlay { write_set: &self.write_set, snapshot: self.snapshot.insert(snapshot) })
    }
}
