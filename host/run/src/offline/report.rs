//! What a replay came to.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId};

use crate::json::weight;
use crate::limit;

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Supersteps that led to the same again: to a checkpoint, or on in a graph that makes none.
    pub checkpoints: usize,
    /// Tasks that were executed once more and did the same.
    pub tasks: usize,
    /// Host calls that were answered from the journal.
    pub calls: usize,
    /// How much was not compared.
    pub left_out: Counts,
    /// What was not compared, and why.
    pub skipped: Vec<Skipped>,
    /// What differs.
    pub divergences: Vec<Divergence>,
    /// About how many bytes of values the differences show.
    #[serde(skip)]
    shown: u64,
}

/// How much of something there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Supersteps.
    pub checkpoints: usize,
    /// Tasks.
    pub tasks: usize,
    /// Host calls.
    pub calls: usize,
}

impl Counts {
    /// A superstep that is over, with everything that happened in it.
    pub(super) fn of_superstep(events: &[Event]) -> Self {
        let ended = |event: &&Event| matches!(event.kind, EventKind::TaskFinished(_));
        let called = |event: &&Event| matches!(event.kind, EventKind::Called(_));
        Self {
            checkpoints: 1,
            tasks: events.iter().filter(ended).count(),
            calls: events.iter().filter(called).count(),
        }
    }

    /// One task.
    pub(super) fn task(calls: usize) -> Self {
        Self { checkpoints: 0, tasks: 1, calls }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.checkpoints += other.checkpoints;
        self.tasks += other.tasks;
        self.calls += other.calls;
    }
}

/// Something that a replay does not compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The graph, by its place in the thread's own.
    pub namespace: Namespace,
    /// The checkpoint from which it started.
    pub checkpoint: CheckpointId,
    /// The node, if it is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Why.
    pub reason: String,
    /// How much it is.
    pub left_out: Counts,
}

/// A difference between what was recorded and what happens now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The graph, by its place in the thread's own.
    pub namespace: Namespace,
    /// The checkpoint from which it started.
    pub checkpoint: CheckpointId,
    /// The node, if it is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// The task, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The host call, if one differs: its number in the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// What differs, in a sentence.
    pub message: String,
    /// What was recorded.
    pub recorded: Value,
    /// What happens now.
    pub now: Value,
}

impl Divergence {
    /// A difference of a superstep.
    pub(super) fn of(meta: &CheckpointMeta, message: &str, recorded: Value, now: Value) -> Self {
        Self {
            namespace: meta.namespace.clone(),
            checkpoint: meta.id,
            node: None,
            task: None,
            call: None,
            message: message.to_owned(),
            recorded,
            now,
        }
    }
}

impl Replay {
    /// Notes a difference. Its values are left out if those before it were large: each may be all
    /// of the state, and a small file may have very many.
    pub(super) fn differ(&mut self, mut divergence: Divergence) {
        if self.shown > limit::REPLAY_SHOWN_BYTES {
            divergence.message.push_str("; too much differs to show what");
            (divergence.recorded, divergence.now) = (Value::Null, Value::Null);
        }
        self.shown += weight(&divergence.recorded) + weight(&divergence.now);
        self.divergences.push(divergence);
    }

    /// Notes that something is not compared.
    pub(super) fn skip(
        &mut self,
        (namespace, checkpoint): (&Namespace, CheckpointId),
        node: Option<&NodeName>,
        reason: &str,
        left_out: Counts,
    ) {
        self.left_out += left_out;
        self.skipped.push(Skipped {
            namespace: namespace.clone(),
            checkpoint,
            node: node.cloned(),
            reason: reason.to_owned(),
            left_out,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_until_they_are_too_much() {
        let at = json!({
            "id": 1, "parent": null, "step": 0, "source": "input", "run": "r", "at_ms": 0,
            "next": [], "versions": {}
        });
        let at: CheckpointMeta = serde_json::from_value(at).unwrap();
        let large = json!("x".repeat(limit::REPLAY_SHOWN_BYTES as usize / 2));
        let mut replay = Replay::default();
        for _ in 0..3 {
            replay.differ(Divergence::of(&at, "it differs", large.clone(), json!("now")));
        }
        let shown: Vec<bool> = replay.divergences.iter().map(|it| !it.now.is_null()).collect();
        assert_eq!(shown, [true, true, false]);
        assert!(replay.divergences[2].message.ends_with("to show what"));
    }
}
