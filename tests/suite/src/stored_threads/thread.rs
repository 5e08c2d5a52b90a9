//! A thread as a test describes it.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::ThreadStatus;

/// A thread with one run.
#[derive(Clone, Debug)]
pub struct StoredThread {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Id of the run.
    pub run: RunId,
    /// App of the thread. It need not be loaded.
    pub app: AppName,
    /// Graph of the thread.
    pub graph: GraphName,
    /// Status of the thread, from which that of the run follows. A host recovers a thread with the
    /// status `Running`.
    pub status: ThreadStatus,
    /// Code of the failure.
    pub failure: Option<&'static str>,
    /// Tenant of the thread.
    pub tenant: Option<String>,
    /// Context of the thread.
    pub context: Value,
    /// Metadata of the thread.
    pub metadata: BTreeMap<String, Value>,
    /// Incarnation of the thread.
    pub incarnation: Option<RunId>,
    /// Time of the creation, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last update, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Number of host calls of the run, which one task makes. A run without host calls has no task
    /// and ends at the checkpoint of its input.
    pub calls: u32,
    /// Bytes of the result of each host call.
    pub result_bytes: usize,
    /// Number from which the texts of the messages are derived.
    pub seed: u32,
}

impl StoredThread {
    /// Creates a thread with a completed run that made no host calls.
    pub fn new(
        thread: ThreadId,
        run: RunId,
        (app, graph): (AppName, GraphName),
        updated_ms: i64,
    ) -> Self {
        Self {
            thread,
            run,
            app,
            graph,
            status: ThreadStatus::Idle,
            failure: None,
            tenant: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            incarnation: None,
            created_ms: updated_ms,
            updated_ms,
            calls: 0,
            result_bytes: 0,
            seed: 0,
        }
    }
}
