//! Replays consecutive supersteps, from a stored checkpoint to the next one.
//!
//! A run with durability `exit` stores only its last checkpoint. The checkpoints in between are
//! rebuilt, each from the one before, and compared with the log.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta};
use wattle_graph::event::Checkpointed;
use wattle_graph::id::CheckpointId;
use wattle_graph::lineage::Lineage;
use wattle_graph::step::CheckpointStamp;

use super::record::{Made, Next, Segment};
use super::step::{Happened, Superstep};
use super::{Counts, Divergence, Replay, World};
use crate::app::GraphPack;

impl World<'_> {
    /// Executes the superstep of a stored checkpoint, and the supersteps after it whose checkpoints
    /// were not persisted.
    pub(super) async fn chain(
        &self,
        segment: &Segment<'_>,
        pack: Arc<GraphPack>,
        replay: &mut Replay,
    ) {
        let namespace = &segment.checkpoint.meta.namespace;
        let above = namespace
            .parent()
            .and_then(|above| self.record.graph_of(&self.app, &self.root, &above));
        let mut checkpoint = Cow::Borrowed(&segment.checkpoint);
        let mut events = segment.events;
        loop {
            let mut lineage = Lineage::new(checkpoint.as_ref().clone());
            for event in events {
                lineage.apply(event);
            }
            let happened = Happened::of(events);
            let superstep = Superstep {
                world: self,
                pack: pack.clone(),
                above: above.clone(),
                happened: &happened,
                lineage: &lineage,
                steps: None,
            };
            superstep.tasks(replay).await;
            match self.record.next(&checkpoint.meta) {
                Next::Nothing => return,
                Next::Stored(stored) => {
                    let at = position(stored, &pack);
                    if let Some(now) = superstep.make(at, replay).await {
                        let stored = self.record.whole(stored);
                        compare(&checkpoint.meta, &stored, &now, true, replay);
                    }
                    return;
                }
                Next::Logged(made) => {
                    let at = CheckpointStamp {
                        id: made.facts.checkpoint,
                        run: made.run.clone(),
                        at_ms: made.at_ms,
                        version: pack.version,
                        parents: checkpoint.meta.parent_graphs.clone(),
                        tasks: None,
                    };
                    let now = superstep.make(at, replay).await;
                    let now = now.filter(|now| self.is_as_logged(&checkpoint, made, now, replay));
                    let Some(now) = now else {
                        return self.leave_rest(made.facts.checkpoint, &checkpoint.meta, replay);
                    };
                    if self.record.is_stored(now.meta.id) {
                        return;
                    }
                    events = self.record.since(now.meta.id);
                    checkpoint = Cow::Owned(now);
                }
            }
        }
    }

    /// Compares a rebuilt checkpoint with the event in the log, or with the stored checkpoint if it
    /// was the last one of its run.
    fn is_as_logged(
        &self,
        from: &Checkpoint,
        made: &Made,
        now: &Checkpoint,
        replay: &mut Replay,
    ) -> bool {
        if let Some(stored) = self.record.checkpoint(now.meta.id) {
            return compare(&from.meta, &stored, now, false, replay);
        }
        let facts = Checkpointed::from(&now.meta);
        if facts == made.facts {
            replay.checkpoints += 1;
            return true;
        }
        let message = "the writes lead to another checkpoint than the log records";
        let (recorded, now) = (json!(made.facts), json!(facts));
        replay.differ(Divergence::of(&from.meta, message, recorded, now));
        false
    }

    /// Counts the supersteps after a divergence as skipped, up to the next stored checkpoint.
    fn leave_rest(&self, from: CheckpointId, meta: &CheckpointMeta, replay: &mut Replay) {
        let mut id = from;
        while !self.record.is_stored(id) {
            let events = self.record.since(id);
            let at = CheckpointMeta { id, ..meta.clone() };
            let Next::Logged(made) = self.record.next(&at) else { return };
            let left_out = Counts::of_superstep(events);
            let reason = "an earlier superstep differs";
            replay.skip((&meta.namespace, id), None, reason, left_out);
            id = made.facts.checkpoint;
        }
    }
}

fn position(meta: &CheckpointMeta, pack: &GraphPack) -> CheckpointStamp {
    CheckpointStamp {
        id: meta.id,
        run: meta.run.clone(),
        at_ms: meta.at_ms,
        version: pack.version,
        parents: meta.parent_graphs.clone(),
        tasks: Some(meta.tasks),
    }
}

/// Compares a checkpoint with the stored one. `versions` is false if the stored checkpoint is the
/// last of several supersteps: it is then stored as if it had made the writes of all of them.
fn compare(
    from: &CheckpointMeta,
    stored: &Checkpoint,
    now: &Checkpoint,
    versions: bool,
    replay: &mut Replay,
) -> bool {
    let leads = |checkpoint: &Checkpoint| leads(&checkpoint.meta, versions);
    if now.values == stored.values && leads(now) == leads(stored) {
        replay.checkpoints += 1;
        return true;
    }
    let message = "the writes lead to another checkpoint";
    replay.differ(Divergence::of(from, message, shown(stored), shown(now)));
    false
}

/// Returns the part of a checkpoint that decides what runs next.
fn leads(meta: &CheckpointMeta, versions: bool) -> Value {
    let versions = versions.then_some(&meta.versions);
    json!([meta.next, meta.deferred, meta.barriers, versions])
}

/// Returns the part of a checkpoint that a divergence shows.
pub(super) fn shown(checkpoint: &Checkpoint) -> Value {
    json!({ "state": checkpoint.state(), "next": checkpoint.meta.next })
}
