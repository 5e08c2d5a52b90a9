//! Checkpoints of a run that stores only its last one (durability `exit`).
//!
//! The checkpoints between are there in memory and in the log of events, from which they can be
//! made again. What is stored in the end must not mention them.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::id::CheckpointId;

/// The newest checkpoint of a run, as long as it is not stored.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Checkpoints of the run that are stored, the one that it began with first.
    stored: BTreeSet<CheckpointId>,
    newest: Option<Checkpoint>,
}

impl Held {
    /// Nothing held yet by a run that begins at `base`.
    pub(super) fn at(base: Option<CheckpointId>) -> Self {
        Self { stored: base.into_iter().collect(), newest: None }
    }

    /// Notes that a checkpoint is stored.
    pub(super) fn note(&mut self, checkpoint: CheckpointId) {
        self.stored.insert(checkpoint);
    }

    /// Holds a checkpoint in place of the one before.
    pub(super) fn hold(&mut self, checkpoint: Checkpoint) {
        self.newest = Some(checkpoint);
    }

    /// The newest checkpoint to be stored, if it is not: its parent is the last that was, and
    /// channels that were written in between count as written by it.
    pub(super) fn take(&mut self) -> Option<Checkpoint> {
        let mut checkpoint = self.newest.take()?;
        let meta = &mut checkpoint.meta;
        for version in meta.versions.values_mut() {
            *version = self.stored_as(*version).unwrap_or(meta.id);
        }
        meta.parent = self.stored.last().copied();
        // The ends of lists go on from versions that may be missing.
        checkpoint.tails = BTreeMap::new();
        self.stored.insert(meta.id);
        Some(checkpoint)
    }

    /// The stored checkpoint that wrote what a version did.
    fn stored_as(&self, version: CheckpointId) -> Option<CheckpointId> {
        match self.stored.first() {
            Some(first) if version <= *first => Some(version),
            _ => self.stored.range(version..).next().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A checkpoint whose channels `a`, `b` and so on were written last by these.
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

    fn taken(held: &mut Held) -> (u64, Vec<u64>) {
        let meta = held.take().unwrap().meta;
        (meta.parent.unwrap().0, meta.versions.values().map(|version| version.0).collect())
    }

    #[test]
    fn what_is_stored_mentions_only_what_is_stored() {
        let mut held = Held::at(Some(CheckpointId(4)));
        assert!(held.take().is_none());
        for (id, versions) in [(5, [5, 2, 4]), (6, [5, 6, 4])] {
            held.hold(checkpoint(id, &versions));
        }
        assert_eq!(taken(&mut held), (4, vec![6, 6, 4]));
        held.hold(checkpoint(9, &[5, 9, 4]));
        assert_eq!(taken(&mut held), (6, vec![6, 9, 4]));
    }
}
