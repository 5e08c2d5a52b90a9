//! The checkpoint from which a run continues.

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind, RunReason};
use wattle_graph::id::{CheckpointId, Namespace};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{CheckpointParts, CheckpointQuery, RunRecord, StoreError};

/// Number of checkpoints in the first read of the search. A run that has just started has written
/// one checkpoint, and continues from the checkpoint before.
const INITIAL_PAGE_SIZE: usize = 2;

/// Maximum number of checkpoints in one read. Each read doubles the number until this limit.
const MAX_PAGE_SIZE: usize = 16;

/// Number of events at the start of a run that are searched for the `forked` event.
const SEARCHED_EVENTS: usize = 4;

/// Finds the checkpoint from which a run continues; `None` for the first run of its thread.
pub(super) async fn find_start_checkpoint(
    engine: &Engine,
    run: &RunRecord,
    started: &Event,
) -> Result<Option<CheckpointId>, StoreError> {
    let store = &engine.ports().store;
    let (thread, root) = (&run.thread, Namespace::root());
    let is_fork =
        matches!(&started.kind, EventKind::RunStarted(it) if it.reason == RunReason::Fork);
    if is_fork {
        let first = store.events(thread, started.seq, SEARCHED_EVENTS).await?;
        let from = first.iter().find_map(|event| match &event.kind {
            EventKind::Forked(forked) => Some(forked.from),
            _ => None,
        });
        if from.is_some() {
            return Ok(from);
        }
    }
    let parts = CheckpointParts::Meta;
    let mut query = CheckpointQuery { namespace: Some(root), parts, ..CheckpointQuery::default() };
    let mut limit = INITIAL_PAGE_SIZE;
    loop {
        query.limit = Some(limit);
        let page = store.checkpoints(thread, &query).await?;
        query.before = page.items.last().map(|tuple| tuple.checkpoint.meta.id);
        for tuple in page.items {
            if precedes_run(engine, run, &tuple.checkpoint).await? {
                return Ok(Some(tuple.checkpoint.meta.id));
            }
        }
        if page.is_last {
            return Ok(None);
        }
        limit = (limit * 2).min(MAX_PAGE_SIZE);
    }
}

/// Returns whether a checkpoint was written before a run started.
async fn precedes_run(
    engine: &Engine,
    run: &RunRecord,
    checkpoint: &Checkpoint,
) -> Result<bool, StoreError> {
    let meta = &checkpoint.meta;
    if meta.run == run.id {
        return Ok(false);
    }
    // An edit has no run record, so the time of its checkpoint is compared.
    let writer = engine.ports().store.run(&meta.run).await?;
    Ok(writer.map_or(meta.at_ms <= run.started_ms, |writer| writer.first_seq < run.first_seq))
}
