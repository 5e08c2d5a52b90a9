//! Drains runs, and clears the cache of task results.

use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, NodeName};

use super::{Engine, run_not_found};
use crate::hostcall::runs::RunRef;
use crate::ports::memory::MemoryScope;
use crate::task::cache;

impl Engine {
    /// Requests that a run stops before its next superstep. The superstep in progress completes. A
    /// resume without answers continues the thread. Does nothing if the run has ended. If another
    /// host executes the run, the request is sent to that host.
    ///
    /// # Errors
    ///
    /// `not-found` if the run does not exist; errors of the store.
    pub async fn drain(&self, run: &RunRef) -> Result<(), Failure> {
        self.recover_before_use(&run.thread).await?;
        let active = self.active_run(run);
        if let Some(active) = active {
            active.drain.set();
            return Ok(());
        }
        let store = &self.0.ports.store;
        let record = store.run(&run.run).await?;
        if record.is_none_or(|record| record.thread != run.thread) {
            return Err(run_not_found(run));
        }
        if store.is_shared() { self.drain_remote(run).await } else { Ok(()) }
    }

    /// Clears the cached results of a node, of a graph or of an app. Returns the number of removed
    /// entries.
    ///
    /// # Errors
    ///
    /// Errors of the long-term memory.
    pub async fn clear_cache(
        &self,
        tenant: Option<&str>,
        app: &AppName,
        graph: Option<&GraphName>,
        node: Option<&NodeName>,
    ) -> Result<usize, Failure> {
        let scope = MemoryScope::Host(tenant.map(str::to_owned));
        self.0.ports.memory.clear(&scope, &cache::namespace(app, graph, node)).await
    }
}
