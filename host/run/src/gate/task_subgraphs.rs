//! Interface to subgraphs that a guest starts inside of its task. The engine runs them.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::{CallKey, GraphName, Namespace, RunId};

use crate::gate::unwind::CallError;
use crate::hostcall::runs::{RunOutcome, StartRun};

/// The subgraphs that a task started in its current attempt.
#[async_trait]
pub(crate) trait TaskSubgraphs: Send + Sync {
    /// Returns the name of a graph of the app. If `name` is `None`, the app must have only one
    /// graph.
    ///
    /// # Errors
    ///
    /// `not-found` if the graph does not exist.
    fn graph(&self, name: Option<&GraphName>) -> Result<GraphName, Failure>;

    /// Registers a subgraph and its namespace. The subgraph starts with [`Self::wait`].
    ///
    /// # Errors
    ///
    /// See [`Self::graph`].
    fn start(
        &self,
        run: RunId,
        graph: &GraphName,
        namespace: Namespace,
        request: StartRun,
    ) -> Result<(), Failure>;

    /// Returns the graph that was started under a run id.
    fn graph_of(&self, run: &RunId) -> Option<GraphName>;

    /// Runs or continues a subgraph until it ends. Returns its outcome and its state.
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] if the subgraph cannot start; [`CallError::Unwind`] if the guest must
    /// be unwound because the subgraph is interrupted.
    async fn wait(&self, run: &RunId, call: &CallKey) -> Result<(RunOutcome, Value), CallError>;
}
