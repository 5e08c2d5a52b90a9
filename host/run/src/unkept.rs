//! Checkpoints that runs of durability `exit` made and did not store, for who shows what a run did:
//! they are made again from the log, by the same steps.

use std::collections::BTreeMap;

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Checkpointed, Event};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_graph::step::{Position, advance, plugin_reductions};

use crate::app::{App, GraphPack};
use crate::driver::reduce;
use crate::ports::store::{CheckpointTuple, Store, StoreError};
use crate::view;

/// A checkpoint of a thread's own graph with all that happened on it, also if it was stored only
/// after that.
///
/// # Errors
///
/// Those of the store.
pub async fn stood(
    store: &dyn Store,
    thread: &ThreadId,
    checkpoint: CheckpointId,
) -> Result<Option<CheckpointTuple>, StoreError> {
    view::root(store, thread, checkpoint).await
}

/// The checkpoint of a thread's own graph that an event says was made from where the lineage
/// stands.
///
/// # Errors
///
/// Those of the superstep: the code is another than then, or a plugin's reducer fails.
pub async fn again(
    app: &App,
    pack: &GraphPack,
    lineage: &Lineage,
    event: &Event,
    made: &Checkpointed,
) -> Result<Checkpoint, Failure> {
    let reduced = reduce(app, plugin_reductions(&pack.graph, lineage)).await?;
    let at = Position {
        id: made.checkpoint,
        run: event.run.clone(),
        at_ms: event.at_ms,
        version: pack.version,
        parents: BTreeMap::new(),
        tasks: None,
    };
    advance(&pack.graph, lineage, &reduced, at).map_err(|error| error.to_failure())
}
