//! Where the encoding of a log begins: an encoder of a run needs the log from the first event of
//! the run.

use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{RunRecord, Store, StoreError};

/// Maximum number of earlier runs that are searched for a run that leaves nothing open. Each
/// searched run takes two reads, and a thread whose runs all continue one another is encoded from
/// its first event anyway.
const MAX_CONTINUED_RUNS: usize = 16;

/// Returns the sequence number of the first event of the run that an event belongs to: the event
/// with the sequence number `seq`, or the next one if that was deleted. An edit belongs to no run,
/// and begins with itself.
pub(crate) async fn run_start(
    store: &dyn Store,
    thread: &ThreadId,
    seq: u64,
) -> Result<u64, StoreError> {
    match event_from(store, thread, seq).await? {
        Some(event) => first_seq_of_run(store, thread, &event).await,
        // The next event begins a run or an edit.
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

/// Returns the sequence number from which the events of a thread after `seq` are encoded as in a
/// stream from its first event: the first event of the run of `seq`, or of an earlier run, if runs
/// between them continue what it left open.
pub(super) async fn replay_start(
    store: &dyn Store,
    thread: &ThreadId,
    seq: u64,
) -> Result<u64, StoreError> {
    let mut first = run_start(store, thread, seq).await?;
    for _ in 0..MAX_CONTINUED_RUNS {
        let before = event_from(store, thread, first.saturating_sub(1)).await?;
        // What was before a deleted event is unknown.
        let Some(before) = before.filter(|before| before.seq < first) else { break };
        if is_complete(&before) {
            return Ok(first);
        }
        first = first_seq_of_run(store, thread, &before).await?;
    }
    Ok(1)
}

/// Returns whether an event ends a run that leaves nothing open: no task, message or tool call that
/// a later run continues.
fn is_complete(event: &Event) -> bool {
    let EventKind::RunEnded(ended) = &event.kind else { return false };
    event.namespace.is_root() && ended.status == RunStatus::Completed
}
