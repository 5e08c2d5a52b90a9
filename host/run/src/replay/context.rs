//! What the tasks of a replay can read about their run.

use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;

use crate::app::{App, GraphVersion};
use crate::caller_id::CallerId;
use crate::driver::SubgraphDriver;
use crate::log::ThreadLog;
use crate::ports::Ports;
use crate::ports::store::ThreadRecord;
use crate::run_memory::RunMemory;
use crate::stop_flag::StopFlag;
use crate::task::GraphContext;

/// Returns the context of a graph at a checkpoint, without stop signals and without limits of the
/// host. The run is the one that made the checkpoint, with default options.
pub(super) fn graph_context(
    app: Arc<App>,
    graph_version: Arc<GraphVersion>,
    log: Arc<ThreadLog>,
    record: ThreadRecord,
    run_context: Value,
    ports: Arc<Ports>,
    checkpoint: &Checkpoint,
) -> GraphContext {
    let meta = &checkpoint.meta;
    GraphContext {
        caller: CallerId::of_app(&app.name),
        app,
        graph_version,
        parent_graph: None,
        log,
        record: Arc::new(record),
        run_context: Arc::new(run_context.into()),
        run: meta.run.clone(),
        options: Arc::default(),
        ports,
        quotas: Arc::default(),
        schemas: Arc::default(),
        cancel: StopFlag::default(),
        drain: StopFlag::default(),
        handover: StopFlag::default(),
        tasks: Arc::default(),
        memory: RunMemory::default(),
        parents: Arc::new(meta.parent_graphs.clone()),
        reusable_results: Arc::default(),
        root_superstep: Arc::default(),
        parent_heartbeat: None,
        is_awaited_by_guest: false,
        error: None,
        subgraph_runner: &SubgraphDriver,
    }
}
