//! Graphs of the app that a guest starts inside of its task. The engine runs them.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::{GraphName, Namespace, RunId, TaskId};

use crate::gate::unwind::Stop;
use crate::hostcall::runs::{RunOutcome, StartRun};

/// The graphs that a task started in its present attempt.
#[async_trait]
pub(crate) trait StartedGraphs: Send + Sync {
    /// The graph of the app that has a name; the only one without it.
    ///
    /// # Errors
    ///
    /// `not-found` if there is none.
    fn graph(&self, name: Option<&GraphName>) -> Result<GraphName, Failure>;

    /// Notes what is to run, and in which namespace. It begins when it is waited for.
    ///
    /// # Errors
    ///
    /// As [`Self::graph`].
    fn start(
        &self,
        run: RunId,
        graph: &GraphName,
        namespace: Namespace,
        request: StartRun,
    ) -> Result<(), Failure>;

    /// The graph that was started under an id.
    fn name(&self, run: &RunId) -> Option<GraphName>;

    /// Runs a graph to its end, or goes on with it. Answers how it ended, and its state.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] if it could not begin; [`Stop::Unwind`] if the guest must end, since the
    /// graph waits for a person.
    async fn wait(&self, run: &RunId, call: CallPlace<'_>) -> Result<(RunOutcome, Value), Stop>;
}

/// Names a host call among all of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlace<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// Which tool calls of the task the call is inside of.
    pub scope: &'a [u32],
    /// Its number there.
    pub number: u32,
}
