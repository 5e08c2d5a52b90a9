//! Runs that stand still between two supersteps because somebody asked for it, and what equal
//! tasks did before.

use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, NodeName};

use super::{Engine, no_run};
use crate::hostcall::runs::RunRef;
use crate::ports::memory::MemoryScope;
use crate::task::cache;
use crate::view::store_failure;

impl Engine {
    /// Asks a run to stand still before its next superstep; what is under way is brought to its
    /// end. Resuming the thread without answers goes on. Not an error if the run has ended. If
    /// another host has the run, that one is asked.
    ///
    /// # Errors
    ///
    /// `not-found` if there is no such run.
    pub async fn drain(&self, run: &RunRef) -> Result<(), Failure> {
        self.pull_forward(&run.thread).await?;
        let active = self.active_run(run);
        if let Some(active) = active {
            active.drain.cancel();
            return Ok(());
        }
        let store = &self.0.ports.store;
        let record = store.run(&run.run).await.map_err(store_failure)?;
        if record.is_none_or(|record| record.thread != run.thread) {
            return Err(no_run(run));
        }
        if store.is_shared() { self.drain_elsewhere(run).await } else { Ok(()) }
    }

    /// Forgets what nodes did that have a cache: of one node, of a graph or of a whole app. Answers
    /// how many entries there were.
    ///
    /// # Errors
    ///
    /// Those of the memory.
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
