//! The deferred checkpoint of a run that persists only its last checkpoint (durability `exit`).
//!
//! Intermediate checkpoints exist in memory and can be rebuilt from the event log. The persisted
//! checkpoint must not refer to them.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::id::CheckpointId;

/// The newest checkpoint of a run while it is not persisted.
#[derive(Debug, Default)]
pub(super) struct UnpersistedCheckpoint {
    /// Persisted checkpoints of the run; the first is the one at which the run started.
    persisted: BTreeSet<CheckpointId>,
    newest: Option<Checkpoint>,
}

impl UnpersistedCheckpoint {
    /// Creates the state of a run that starts at checkpoint `base`.
    pub(super) fn at(base: Option<CheckpointId>) -> Self {
        Self { persisted: base.into_iter().collect(), newest: None }
    }

    /// Records that a checkpoint is persisted.
    pub(super) fn mark_persisted(&mut self, checkpoint: CheckpointId) {
        self.persisted.insert(checkpoint);
    }

    /// Replaces the deferred checkpoint, and returns the one before it.
    pub(super) fn replace(&mut self, checkpoint: Checkpoint) -> Option<Checkpoint> {
        self.newest.replace(checkpoint)
    }

    /// Takes the checkpoint to persist, if any. Its parent is the last persisted checkpoint.
    /// Channels that were written since that checkpoint have the version of the taken checkpoint.
    pub(super) fn take(&mut self) -> Option<Checkpoint> {
        let mut checkpoint = self.newest.take()?;
        let meta = &mut checkpoint.meta;
        for version in meta.versions.values_mut() {
            *version = self.persisted_version(*version).unwrap_or(meta.id);
        }
        meta.parent = self.persisted.last().copied();
        // List suffixes refer to versions that may not be persisted.
        checkpoint.list_deltas = BTreeMap::new();
        self.persisted.insert(meta.id);
        Some(checkpoint)
    }

    /// Returns the persisted checkpoint that contains the write of a version.
    fn persisted_version(&self, version: CheckpointId) -> Option<CheckpointId> {
        match self.persisted.first() {
            Some(first) if version <= *first => Some(version),
            _ => self.persisted.range(version..).next().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a checkpoint whose channels `a`, `b` and `c` have these versions.
    fn checkpoint(id: u64, versions: &[u64]) -> Checkpoint {
        let channels = ["a", "b", "c"].into_iter();
        let versions: BTreeMap<&str, u64> = channels.zip(versions.iter().copied()).collect();
        let meta = json!({
            "id": id, "parent": id - 1, "step": id, "source": "loop", "run": "r", "at_ms": 0,
            "next": [], "versions": versions,
        });
        let checkpoint = json!({ "meta": meta, "values": {} });
        serde_json::from_value(checkpoint).unwrap()
    }

    fn taken(held: &mut UnpersistedCheckpoint) -> (u64, Vec<u64>) {
        let meta = held.take().unwrap().meta;
        (meta.parent.unwrap().0, meta.versions.values().map(|version| version.0).collect())
    }

    #[test]
    fn persisted_checkpoint_refers_only_to_persisted_checkpoints() {
        let mut held = UnpersistedCheckpoint::at(Some(CheckpointId(4)));
        assert!(held.take().is_none());
        for (id, versions) in [(5, [5, 2, 4]), (6, [5, 6, 4])] {
            held.replace(checkpoint(id, &versions));
        }
        assert_eq!(taken(&mut held), (4, vec![6, 6, 4]));
        held.replace(checkpoint(9, &[5, 9, 4]));
        assert_eq!(taken(&mut held), (6, vec![6, 9, 4]));
    }
}
