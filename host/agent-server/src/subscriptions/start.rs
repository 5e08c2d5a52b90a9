//! Finds the event at which the encoding of a log begins. The encoder of a run needs the log from
//! the first event of the run.

use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{RunRecord, Store, StoreError};

/// Maximum number of earlier runs that are searched for a completed run, because each searched run
/// takes two reads of the store. If the search finds no completed run, the encoding begins at the
/// first event of the thread.
const MAX_CONTINUED_RUNS: usize = 16;

/// Returns the sequence number of the first event of a run: the run of the event `seq`, or of the
/// next event if the event `seq` was deleted. If that event belongs to an edit and not to a run,
/// returns the sequence number of that event.
pub(crate) async fn run_start(
    store: &dyn Store,
    thread: &ThreadId,
    seq: u64,
) -> Result<u64, StoreError> {
    match event_from(store, thread, seq).await? {
        Some(event) => first_seq_of_run(store, thread, &event).await,
        // No event follows yet. The next event will begin a run or an edit.
        None => Ok(seq),
    }
}

async fn event_from(
    store: &dyn Store,
    thread: &ThreadId,
    seq: u64,
) -> Result<Option<Event>, StoreError> {
    Ok(store.events(thread, seq.saturating_sub(1), 1).await?.pop())
}

async fn first_seq_of_run(
    store: &dyn Store,
    thread: &ThreadId,
    event: &Event,
) -> Result<u64, StoreError> {
    let run = store.run(&event.run).await?.filter(|run| run.thread == *thread);
    Ok(run.filter(RunRecord::has_started).map_or(event.seq, |run| run.first_seq.min(event.seq)))
}

/// Returns the sequence number at which the encoding must begin so that the events after `seq` are
/// encoded as in a stream from the first event of the thread. The result is the first event of the
/// run of `seq`. If that run continues the open tasks, messages or tool calls of earlier runs, the
/// result is the first event of the first of these runs.
pub(super) async fn replay_start(
    store: &dyn Store,
    thread: &ThreadId,
    seq: u64,
) -> Result<u64, StoreError> {
    let mut first = run_start(store, thread, seq).await?;
    for _ in 0..MAX_CONTINUED_RUNS {
        let before = event_from(store, thread, first.saturating_sub(1)).await?;
        // If the events before were deleted, the state of the run before is unknown.
        let Some(before) = before.filter(|before| before.seq < first) else { break };
        if is_complete(&before) {
            return Ok(first);
        }
        first = first_seq_of_run(store, thread, &before).await?;
    }
    Ok(1)
}

/// Returns whether an event ends a run that leaves no task, message or tool call open for a later
/// run.
fn is_complete(event: &Event) -> bool {
    let EventKind::RunEnded(ended) = &event.kind else { return false };
    event.namespace.is_root() && ended.status == RunStatus::Completed
}
