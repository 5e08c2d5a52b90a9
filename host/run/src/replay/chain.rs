//! Replays consecutive supersteps, from a stored checkpoint to the next one.
//!
//! A run with durability `exit` stores only its last checkpoint. The checkpoints in between are
//! rebuilt, each from the checkpoint before, and compared with the log.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta};
use wattle_graph::event::Checkpointed;
use wattle_graph::id::CheckpointId;
use wattle_graph::lineage::Lineage;
use wattle_graph::step::CheckpointStamp;

use super::recording::{RecordedCheckpoint, RecordedSuperstep, Successor};
use super::step::{LoggedTasks, Superstep};
use super::{Counts, Divergence, Replay, ReplayContext};
use crate::app::GraphVersion;

impl ReplayContext<'_> {
    /// Executes the superstep of a stored checkpoint, and the supersteps after it whose checkpoints
    /// were not persisted.
    pub(super) async fn replay_chain(
        &self,
        segment: &RecordedSuperstep<'_>,
        graph_version: Arc<GraphVersion>,
        replay: &mut Replay,
    ) {
        let namespace = &segment.checkpoint.meta.namespace;
        let parent_graph = namespace
            .parent()
            .and_then(|parent| self.recording.graph_of(&self.app, &self.root, &parent));
        let mut checkpoint = Cow::Borrowed(&segment.checkpoint);
        let mut events = segment.events;
        loop {
            let mut lineage = Lineage::new(checkpoint.as_ref().clone());
            for event in events {
                lineage.apply(event);
            }
            let logged = LoggedTasks::of(events);
            let superstep = Superstep {
                replay_context: self,
                graph_version: graph_version.clone(),
                parent_graph: parent_graph.clone(),
                logged: &logged,
                lineage: &lineage,
                steps: None,
            };
            superstep.replay_tasks(replay).await;
            match self.recording.successor(&checkpoint.meta) {
                Successor::Missing => return,
                Successor::Stored(stored) => {
                    let at = checkpoint_stamp(stored, &graph_version);
                    if let Some(now) = superstep.make_checkpoint(at, replay).await {
                        let stored = self.recording.with_values(stored);
                        compare(&checkpoint.meta, &stored, &now, true, replay);
                    }
                    return;
                }
                Successor::Logged(made) => {
                    let at = CheckpointStamp {
                        id: made.event.checkpoint,
                        run: made.run.clone(),
                        at_ms: made.at_ms,
                        version: graph_version.version,
                        parents: checkpoint.meta.parent_graphs.clone(),
                        tasks: None,
                    };
                    let now = superstep.make_checkpoint(at, replay).await;
                    let now = now.filter(|now| self.matches_log(&checkpoint, made, now, replay));
                    let Some(now) = now else {
                        return self.skip_rest(made.event.checkpoint, &checkpoint.meta, replay);
                    };
                    if self.recording.is_stored(now.meta.id) {
                        return;
                    }
                    events = self.recording.events_since(now.meta.id);
                    checkpoint = Cow::Owned(now);
                }
            }
        }
    }

    /// Compares a rebuilt checkpoint with the event in the log, or with the stored checkpoint if
    /// the checkpoint was the last one of its run.
    fn matches_log(
        &self,
        from: &Checkpoint,
        made: &RecordedCheckpoint,
        now: &Checkpoint,
        replay: &mut Replay,
    ) -> bool {
        if let Some(stored) = self.recording.checkpoint(now.meta.id) {
            return compare(&from.meta, &stored, now, false, replay);
        }
        // The indexes of cases are those of the recorded version of the graph. What the cases led to
        // is in the next nodes.
        let recorded = Checkpointed { taken: Vec::new(), ..made.event.clone() };
        let facts = Checkpointed::from(&now.meta);
        if facts == recorded {
            replay.checkpoints += 1;
            return true;
        }
        let message = "the writes lead to another checkpoint than the log records";
        let (recorded, now) = (json!(recorded), json!(facts));
        replay.add_divergence(Divergence::of(&from.meta, message, recorded, now));
        false
    }

    /// Counts the supersteps after a divergence as skipped, up to the next stored checkpoint.
    fn skip_rest(&self, from: CheckpointId, meta: &CheckpointMeta, replay: &mut Replay) {
        let mut id = from;
        while !self.recording.is_stored(id) {
            let events = self.recording.events_since(id);
            let at = CheckpointMeta { id, ..meta.clone() };
            let Successor::Logged(made) = self.recording.successor(&at) else { return };
            let left_out = Counts::of_superstep(events);
            let reason = "an earlier superstep differs";
            replay.skip((&meta.namespace, id), None, reason, left_out);
            id = made.event.checkpoint;
        }
    }
}

fn checkpoint_stamp(meta: &CheckpointMeta, graph_version: &GraphVersion) -> CheckpointStamp {
    CheckpointStamp {
        id: meta.id,
        run: meta.run.clone(),
        at_ms: meta.at_ms,
        version: graph_version.version,
        parents: meta.parent_graphs.clone(),
        tasks: Some(meta.tasks),
    }
}

/// Compares a checkpoint with the stored one. `versions` is false if the stored checkpoint is the
/// last of several supersteps: such a checkpoint is stored as if it had made the writes of all of
/// these supersteps.
fn compare(
    from: &CheckpointMeta,
    stored: &Checkpoint,
    now: &Checkpoint,
    versions: bool,
    replay: &mut Replay,
) -> bool {
    let leads = |checkpoint: &Checkpoint| next_work(&checkpoint.meta, versions);
    if now.values == stored.values && leads(now) == leads(stored) {
        replay.checkpoints += 1;
        return true;
    }
    let message = "the writes lead to another checkpoint";
    replay.add_divergence(Divergence::of(from, message, summary_json(stored), summary_json(now)));
    false
}

/// Returns the part of a checkpoint that decides what runs next.
fn next_work(meta: &CheckpointMeta, versions: bool) -> Value {
    let versions = versions.then_some(&meta.versions);
    json!([meta.next, meta.deferred, meta.barriers, versions])
}

/// Returns the part of a checkpoint that a divergence shows.
pub(super) fn summary_json(checkpoint: &Checkpoint) -> Value {
    json!({ "state": checkpoint.state(), "next": checkpoint.meta.next })
}
