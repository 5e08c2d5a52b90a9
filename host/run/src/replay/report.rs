//! The result of a replay.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId};

use crate::json::approx_bytes;
use crate::limit;

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Supersteps with the recorded result: the same checkpoint or, in a subgraph without
    /// checkpoints, writes that still apply.
    pub checkpoints: usize,
    /// Tasks with the recorded outcome, failure or question.
    pub tasks: usize,
    /// Host calls of these tasks, whose results came from the journal.
    pub calls: usize,
    /// Numbers of supersteps, tasks and host calls that were not compared.
    pub left_out: Counts,
    /// Parts that were not compared, with reasons.
    pub skipped: Vec<Skipped>,
    /// Differences.
    pub divergences: Vec<Divergence>,
    /// Approximate bytes of the values in the differences.
    #[serde(skip)]
    shown_bytes: u64,
}

/// Numbers of supersteps, tasks and host calls.
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
    /// Counts a finished superstep with its tasks and calls.
    pub(super) fn of_superstep(events: &[Event]) -> Self {
        let ended = |event: &&Event| matches!(event.kind, EventKind::TaskFinished(_));
        let called = |event: &&Event| matches!(event.kind, EventKind::Called(_));
        Self {
            checkpoints: 1,
            tasks: events.iter().filter(ended).count(),
            calls: events.iter().filter(called).count(),
        }
    }

    /// Counts one task.
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

/// A part that was not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Namespace of the graph.
    pub namespace: Namespace,
    /// The checkpoint at which the superstep starts.
    pub checkpoint: CheckpointId,
    /// The node, if the part is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Why the part was not compared, as a clause after "since".
    pub reason: String,
    /// Size of the part.
    pub left_out: Counts,
}

/// A difference between the record and the replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// Namespace of the graph.
    pub namespace: Namespace,
    /// The checkpoint at which the superstep starts.
    pub checkpoint: CheckpointId,
    /// The node, if a task differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// The task, if a task differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Number of the host call, if a call differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// Description of the difference.
    pub message: String,
    /// The recorded value.
    pub recorded: Value,
    /// The value of the replay.
    pub now: Value,
}

impl Divergence {
    /// Creates the difference of a superstep.
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
    /// Returns true if nothing was compared, so that the replay shows nothing about the code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.checkpoints == 0 && self.tasks == 0 && self.divergences.is_empty()
    }

    /// Adds a difference. Its values are omitted if earlier values were large: each value may be as
    /// large as the state, and a small file may contain very many.
    pub(super) fn add_divergence(&mut self, mut divergence: Divergence) {
        if self.shown_bytes > limit::REPLAY_DIFF_BYTES {
            divergence.message.push_str("; its values are omitted, since the report is too large");
            (divergence.recorded, divergence.now) = (Value::Null, Value::Null);
        }
        self.shown_bytes += approx_bytes(&divergence.recorded) + approx_bytes(&divergence.now);
        self.divergences.push(divergence);
    }

    /// Adds a part that was not compared.
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
    fn large_replay_reports_omit_values() {
        let at = json!({
            "id": 1, "parent": null, "step": 0, "source": "input", "run": "r", "at_ms": 0,
            "next": [], "versions": {}
        });
        let at: CheckpointMeta = serde_json::from_value(at).unwrap();
        let large = json!("x".repeat(limit::REPLAY_DIFF_BYTES as usize / 2));
        let mut replay = Replay::default();
        for _ in 0..3 {
            replay.add_divergence(Divergence::of(&at, "it differs", large.clone(), json!("now")));
        }
        let shown: Vec<bool> = replay.divergences.iter().map(|it| !it.now.is_null()).collect();
        assert_eq!(shown, [true, true, false]);
        assert!(replay.divergences[2].message.ends_with("report is too large"));
    }
}
