//! Supersteps that a run took and did not store (durability `exit`).
//!
//! Their events stand in the log below the checkpoint that the run began with. After a crash they
//! are taken again under the same numbers, so their tasks have the same ids: what has finished is
//! taken over, and what had begun finds its journal.

use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, ThreadId};

use crate::ports::store::{CheckpointTuple, Durability, Store, StoreError, ThreadHead};

/// What the log holds of supersteps that were taken from a checkpoint and are not stored; nothing
/// if they were undone since.
pub(crate) fn since(tuple: &CheckpointTuple) -> Vec<Event> {
    let undone =
        |event: &Event| matches!(event.kind, EventKind::Reopened(_)) && event.namespace.is_root();
    let start = tuple.events.iter().rposition(undone).map_or(0, |place| place + 1);
    let events = &tuple.events[start..];
    let made = made_after(tuple.checkpoint.meta.id, events);
    if made.is_some() { events.to_vec() } else { Vec::new() }
}

/// The number of the checkpoint that was made after this one.
pub(crate) fn made_after(checkpoint: CheckpointId, events: &[Event]) -> Option<CheckpointId> {
    events.iter().filter_map(made_by).find(|made| *made > checkpoint)
}

/// The highest number that was given out since a checkpoint.
pub(crate) fn newest(tuple: &CheckpointTuple) -> Option<CheckpointId> {
    tuple.events.iter().filter_map(made_by).max()
}

/// The number of a thread's next checkpoint. It stands at `current`, in whose events are numbers
/// that were given out by a run that did not store their checkpoints.
pub(crate) fn free_number(head: &ThreadHead, current: Option<&CheckpointTuple>) -> CheckpointId {
    let last = head.last_checkpoint.max(current.and_then(newest));
    CheckpointId(last.map_or(1, |id| id.0 + 1))
}

/// The checkpoint of the root graph that an event says was made.
fn made_by(event: &Event) -> Option<CheckpointId> {
    match &event.kind {
        EventKind::Checkpointed(made) if event.namespace.is_root() => Some(made.checkpoint),
        _ => None,
    }
}

/// Adds what happened on a checkpoint before it was stored, which stands in the log below the
/// checkpoint that its run began with.
pub(crate) async fn complete(
    store: &dyn Store,
    mut tuple: CheckpointTuple,
    thread: &ThreadId,
) -> Result<CheckpointTuple, StoreError> {
    let meta = &tuple.checkpoint.meta;
    // Of a thread at its end nothing is pending.
    if meta.next.is_empty() {
        return Ok(tuple);
    }
    let run = store.run(&meta.run).await?;
    let Some(run) = run.filter(|run| run.options.durability == Durability::Exit) else {
        return Ok(tuple);
    };
    let log = store.events(thread, run.first_seq.saturating_sub(1), usize::MAX).await?;
    let Some(made) = log.iter().position(|event| made_by(event) == Some(meta.id)) else {
        return Ok(tuple);
    };
    let known = tuple.events.first().map_or(u64::MAX, |event| event.seq);
    let earlier = log.into_iter().skip(made + 1).take_while(|event| event.seq < known);
    tuple.events = earlier.chain(tuple.events).collect();
    Ok(tuple)
}
