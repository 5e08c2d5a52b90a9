//! Rebuilds the unpersisted checkpoints of a run with durability `exit` from the event log.
//! Projections use them to show every superstep.

use std::collections::BTreeMap;

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Checkpointed, Event};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_graph::step::{CheckpointStamp, advance, plugin_reductions};

use crate::app::{App, GraphVersion};
use crate::blocking::{block_in_place_in_turn, is_long_superstep};
use crate::caller_id::CallerId;
use crate::driver::reduce;
use crate::ports::store::{CheckpointTuple, StoreError};
use crate::state_cache::StateCache;
use crate::view;

/// Reads a checkpoint of the root graph with all events that followed it, including the events from
/// before the checkpoint was persisted.
///
/// # Errors
///
/// Errors of the store.
pub async fn root_checkpoint(
    states: &StateCache,
    thread: &ThreadId,
    checkpoint: CheckpointId,
) -> Result<Option<CheckpointTuple>, StoreError> {
    view::root_checkpoint(states, thread, checkpoint).await
}

/// Rebuilds the checkpoint of the root graph that a `checkpointed` event describes, from the state
/// before it.
///
/// # Errors
///
/// Errors of the superstep: the code differs from the code at that time, or a plugin's reducer
/// fails.
pub async fn rebuild_checkpoint(
    app: &App,
    graph_version: &GraphVersion,
    lineage: &Lineage,
    event: &Event,
    made: &Checkpointed,
) -> Result<Checkpoint, Failure> {
    let graph = &graph_version.graph;
    let reduced = reduce(app, plugin_reductions(graph, lineage)).await?;
    let at = CheckpointStamp {
        id: made.checkpoint,
        run: event.run.clone(),
        at_ms: event.at_ms,
        version: graph_version.version,
        parents: BTreeMap::new(),
        tasks: None,
    };
    let (owner, is_long) = (CallerId::of_app(&app.name), is_long_superstep(graph, lineage));
    let made = block_in_place_in_turn(owner, is_long, || advance(graph, lineage, &reduced, at));
    made.await.map_err(|error| error.to_failure())
}
