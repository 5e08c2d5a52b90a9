//! Unpersisted supersteps.
//!
//! A run with durability `exit` persists only its last checkpoint, and some subgraphs persist no
//! checkpoint. The log has the events of these supersteps under the checkpoint at which the run or
//! the subgraph started. After a crash, the supersteps are executed again under the same numbers,
//! so their tasks have the same ids: finished tasks are applied from the log, and started tasks
//! find their journals.

use std::collections::{BTreeMap, VecDeque};

use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, TaskId, ThreadId};
use wattle_graph::lineage::Lineage;

use crate::ports::store::{CheckpointTuple, Store, StoreError, ThreadHead};
use crate::tail::range::EventRange;

/// A `checkpointed` event of the root graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedCheckpoint {
    /// Number of the checkpoint.
    pub checkpoint: CheckpointId,
    /// Sequence number of the event.
    pub seq: u64,
}

/// Events of supersteps whose checkpoints were not persisted. Each event is applied once, in the
/// superstep to which it belongs.
#[derive(Debug, Default)]
pub(crate) struct UnpersistedEvents {
    checkpoints: VecDeque<LoggedCheckpoint>,
    by_task: BTreeMap<TaskId, Vec<Event>>,
    newest_seq: u64,
}

impl UnpersistedEvents {
    /// Sorts the events of a graph by task.
    pub(crate) fn from_events<'e>(
        namespace: &Namespace,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Self {
        let mut unpersisted = Self::default();
        for event in events.into_iter().filter(|event| event.namespace == *namespace) {
            if let Some(task) = task_of(event) {
                unpersisted.by_task.entry(task.clone()).or_default().push(event.clone());
            }
            unpersisted.checkpoints.extend(logged_checkpoint(event));
        }
        unpersisted
    }

    /// Returns true if no events remain to be applied to the lineage.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_task.is_empty() && self.checkpoints.is_empty()
    }

    /// Returns the next checkpoint after `checkpoint`.
    pub(crate) fn next_checkpoint(&mut self, checkpoint: CheckpointId) -> Option<LoggedCheckpoint> {
        while self.checkpoints.front()?.checkpoint <= checkpoint {
            self.checkpoints.pop_front();
        }
        self.checkpoints.front().copied()
    }

    /// Applies the events of the given tasks to a lineage. Returns true if there were any such
    /// events.
    pub(crate) fn apply_to(&mut self, tasks: &[TaskId], lineage: &mut Lineage) -> bool {
        let mut was_any = false;
        for event in tasks.iter().filter_map(|task| self.by_task.remove(task)).flatten() {
            was_any = true;
            self.newest_seq = self.newest_seq.max(event.seq);
            lineage.apply(&event);
        }
        was_any
    }

    /// Returns any task whose events were not yet applied to the lineage; `None` if there is none.
    pub(crate) fn unapplied_task(&self) -> Option<&TaskId> {
        self.by_task.keys().next()
    }

    /// Returns the sequence number of the newest applied event.
    pub(crate) fn newest_seq(&self) -> u64 {
        self.newest_seq
    }
}

/// Returns the task of an event that changes the state of its graph.
fn task_of(event: &Event) -> Option<&TaskId> {
    match &event.kind {
        EventKind::TaskFinished(finished) => Some(&finished.task),
        EventKind::TaskFailed(failed) => Some(&failed.task),
        EventKind::InterruptRaised(raised) => Some(&raised.task),
        EventKind::Answered(answered) => Some(&answered.task),
        _ => None,
    }
}

/// Returns the events of unpersisted supersteps after a checkpoint; no events if a reopen has
/// discarded these supersteps.
pub(crate) fn unpersisted_since(tuple: &CheckpointTuple) -> UnpersistedEvents {
    let undone =
        |event: &Event| matches!(event.kind, EventKind::Reopened(_)) && event.namespace.is_root();
    let start = tuple.events.iter().rposition(undone).map_or(0, |place| place + 1);
    let mut unpersisted =
        UnpersistedEvents::from_events(&Namespace::root(), &tuple.events[start..]);
    match unpersisted.next_checkpoint(tuple.checkpoint.meta.id) {
        Some(_) => unpersisted,
        None => UnpersistedEvents::default(),
    }
}

/// Returns the highest checkpoint number that was assigned after a checkpoint.
pub(crate) fn highest_checkpoint_id(tuple: &CheckpointTuple) -> Option<CheckpointId> {
    tuple.events.iter().filter_map(logged_checkpoint).map(|made| made.checkpoint).max()
}

/// Returns the number of a thread's next checkpoint. The events of the current checkpoint contain
/// the numbers of unpersisted checkpoints.
pub(crate) fn next_checkpoint_id(
    head: &ThreadHead,
    current: Option<&CheckpointTuple>,
) -> CheckpointId {
    let last = head.last_checkpoint.max(current.and_then(highest_checkpoint_id));
    CheckpointId(last.map_or(1, |id| id.0 + 1))
}

/// Returns the checkpoint of the root graph that an event reports.
fn logged_checkpoint(event: &Event) -> Option<LoggedCheckpoint> {
    match &event.kind {
        EventKind::Checkpointed(made) if event.namespace.is_root() => {
            Some(LoggedCheckpoint { checkpoint: made.checkpoint, seq: event.seq })
        }
        _ => None,
    }
}

/// Prepends the events between the creation of the checkpoint and its persistence. The log has
/// these events under the checkpoint at which the run started.
///
/// Earlier events are not read, since the checkpoint records the sequence number of its
/// `checkpointed` event. There are rarely events in between, since a run persists its last
/// checkpoint when no task is left to run.
pub(crate) async fn with_earlier_events(
    store: &dyn Store,
    mut tuple: CheckpointTuple,
    thread: &ThreadId,
) -> Result<CheckpointTuple, StoreError> {
    let meta = &tuple.checkpoint.meta;
    // At the end of a graph nothing is pending.
    let Some(after) = meta.event_seq.filter(|_| !meta.next.is_empty()) else {
        return Ok(tuple);
    };
    let (id, known) = (meta.id, tuple.events.first().map_or(u64::MAX, |event| event.seq));
    let is_over = |event: &Event| {
        event.seq >= known || logged_checkpoint(event).is_some_and(|made| made.checkpoint > id)
    };
    let mut earlier = Vec::new();
    let mut events = EventRange::new(store, thread, after, known - 1);
    while let Some(page) = events.next().await? {
        let is_last = page.iter().any(is_over);
        earlier.extend(page.into_iter().take_while(|event| !is_over(event)));
        if is_last {
            break;
        }
    }
    tuple.events.splice(..0, earlier);
    Ok(tuple)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(seq: u64, kind: &serde_json::Value) -> Event {
        let mut event = json!({ "seq": seq, "at_ms": 0, "run": "r" });
        let fields = kind.as_object().into_iter().flatten();
        for (name, value) in fields {
            event[name] = value.clone();
        }
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn each_event_is_applied_once_in_its_superstep() {
        let failed = |seq, task: &str| {
            let failure = json!({ "code": "unavailable", "message": "away", "retryable": true });
            let fields = json!({
                "type": "task_failed", "task": task, "node": "n", "attempt": 1,
                "fault": "failure", "failure": failure,
            });
            event(seq, &fields)
        };
        let made = |seq, id: u64| {
            let fields = json!({
                "type": "checkpointed", "checkpoint": id, "step": id, "source": "loop",
                "changed": [], "next": ["n"],
            });
            event(seq, &fields)
        };
        let events = [failed(4, "a"), failed(5, "b"), made(6, 2), failed(7, "c"), made(8, 3)];
        let mut unpersisted = UnpersistedEvents::from_events(&Namespace::root(), &events);
        let meta = json!({
            "id": 1, "parent": null, "step": 0, "source": "input", "run": "r", "at_ms": 0,
            "next": [], "versions": {},
        });
        let checkpoint = json!({ "meta": meta, "values": {} });
        let mut lineage = Lineage::new(serde_json::from_value(checkpoint).unwrap());
        let task = |name: &str| TaskId::new(name).unwrap();
        assert!(unpersisted.apply_to(&[task("a"), task("b")], &mut lineage));
        assert_eq!((lineage.failed.len(), unpersisted.newest_seq()), (2, 5));
        assert!(!unpersisted.apply_to(&[task("a"), task("b")], &mut lineage));
        let place =
            |checkpoint, seq| Some(LoggedCheckpoint { checkpoint: CheckpointId(checkpoint), seq });
        assert_eq!(unpersisted.next_checkpoint(CheckpointId(1)), place(2, 6));
        assert_eq!(unpersisted.next_checkpoint(CheckpointId(2)), place(3, 8));
        assert_eq!(unpersisted.next_checkpoint(CheckpointId(3)), None);
        assert_eq!(unpersisted.unapplied_task(), Some(&task("c")));
    }
}
