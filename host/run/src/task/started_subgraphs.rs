//! Subgraphs that a guest starts inside of a task. A subgraph runs when the guest waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::definition::SubgraphState;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CallKey, GraphName, Namespace, RunId};

use crate::app::GraphVersion;
use crate::driver::LoopExit;
use crate::gate::TaskSubgraphs;
use crate::gate::unwind::{CallError, GuestError, Unwind};
use crate::hostcall::runs::{RunOutcome, StartRun};
use crate::task::context::{StepContext, SubgraphCall};
use crate::task::task_heartbeat::TaskHeartbeat;

/// Subgraphs that a task started in its current attempt.
pub(super) struct StartedSubgraphs {
    context: Arc<StepContext>,
    parent_heartbeat: Arc<TaskHeartbeat>,
    by_run: SubgraphsByRun,
}

/// Subgraphs by their run ids.
#[derive(Default)]
struct SubgraphsByRun(Mutex<BTreeMap<RunId, StartedSubgraph>>);

/// A subgraph that a task started.
#[derive(Clone)]
struct StartedSubgraph {
    graph_version: Arc<GraphVersion>,
    namespace: Namespace,
    request: StartRun,
}

impl SubgraphsByRun {
    /// Locks the map. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, StartedSubgraph>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the graph that was started under a run id, without a copy of its input and context.
    fn graph_of(&self, run: &RunId) -> Option<GraphName> {
        self.lock().get(run).map(|child| child.graph_version.graph.name.clone())
    }
}

impl StartedSubgraphs {
    /// Creates an empty set.
    pub(super) fn new(context: Arc<StepContext>, parent_heartbeat: Arc<TaskHeartbeat>) -> Self {
        Self { context, parent_heartbeat, by_run: SubgraphsByRun::default() }
    }

    fn find_graph(&self, name: Option<&GraphName>) -> Result<Arc<GraphVersion>, Failure> {
        let graphs = &self.context.app.graphs;
        let found = match name {
            Some(name) => graphs.get(name),
            None if graphs.len() == 1 => graphs.values().next(),
            None => None,
        };
        found.cloned().ok_or_else(|| {
            let known: Vec<String> = graphs.keys().map(|name| format!("`{name}`")).collect();
            let (app, known) = (&self.context.app.name, known.join(", "));
            let text = match name {
                Some(name) => {
                    format!("app `{app}` has no graph `{name}`; name one of {known}")
                }
                None => format!("app `{app}` has several graphs; name one of {known}"),
            };
            Failure::new(code::NOT_FOUND, text)
        })
    }
}

#[async_trait]
impl TaskSubgraphs for StartedSubgraphs {
    fn graph(&self, name: Option<&GraphName>) -> Result<GraphName, Failure> {
        Ok(self.find_graph(name)?.graph.name.clone())
    }

    fn start(
        &self,
        run: RunId,
        graph: &GraphName,
        namespace: Namespace,
        request: StartRun,
    ) -> Result<(), Failure> {
        let child =
            StartedSubgraph { graph_version: self.find_graph(Some(graph))?, namespace, request };
        self.by_run.lock().insert(run, child);
        Ok(())
    }

    fn graph_of(&self, run: &RunId) -> Option<GraphName> {
        self.by_run.graph_of(run)
    }

    async fn wait(&self, run: &RunId, call: &CallKey) -> Result<(RunOutcome, Value), CallError> {
        let child = self.by_run.lock().get(run).cloned();
        let child = child.ok_or_else(|| {
            let text = format!("the node did not start run `{run}`, so it cannot wait for it");
            Failure::new(code::NOT_FOUND, text)
        })?;
        let context = self.context.as_ref();
        let nested = SubgraphCall {
            graph_version: child.graph_version,
            namespace: child.namespace,
            state: SubgraphState::Inherit,
            input: child.request.input,
            run_context: match child.request.context {
                Value::Null => context.run_context.clone(),
                own => Arc::new(own.into()),
            },
            parent_graph: None,
            parent_heartbeat: Some(self.parent_heartbeat.clone()),
            is_awaited_by_guest: true,
            started_seq: context.root_superstep.wait_seq(call),
            error: None,
        };
        let ran = context.subgraph_runner.run(context, nested).await.map_err(into_call_error)?;
        let outcome = match ran.end {
            LoopExit::Completed => RunOutcome::Completed,
            LoopExit::Failed(failure) => RunOutcome::Failed { failure },
            // The interrupt, if there is one, is in the log. This id only names the suspended call.
            LoopExit::Interrupted => {
                return Err(Unwind::Suspended(call.interrupt_id()).into());
            }
            LoopExit::Cancelled => return Err(Unwind::Cancelled.into()),
            LoopExit::Drained => return Err(Unwind::Drained.into()),
            LoopExit::LogLost(failure) => return Err(Unwind::LogLost(failure).into()),
            LoopExit::ParentOutcome(_) => {
                return Err(
                    Failure::internal("a subgraph that a node starts has no parent graph").into()
                );
            }
        };
        Ok((outcome, ran.checkpoint.state()))
    }
}

fn into_call_error(ended: GuestError) -> CallError {
    match ended {
        GuestError::Unwound(unwind) => unwind.into(),
        GuestError::Failure(failure)
        | GuestError::Trap(failure)
        | GuestError::Limit(failure)
        | GuestError::Host(failure) => failure.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::check::{AnyPlugin, check_toml};
    use wattle_graph::id::{AppName, Digest};

    use super::*;
    use crate::allocation::allocated_bytes;

    #[test]
    fn graph_of_a_run_is_found_without_a_copy_of_its_input() {
        let text = "[graphs.g]\nentry = 'a'\nnodes.a = {}";
        let graph = check_toml("graph.toml", text, &AnyPlugin).unwrap().remove(0);
        let graph_version = Arc::new(GraphVersion { graph, version: Digest::of(b"") });
        let input = json!({ "text": "x".repeat(1 << 20) });
        let request = StartRun::new(AppName::new("app").unwrap(), input);
        let child = StartedSubgraph { graph_version, namespace: Namespace::root(), request };
        let run = RunId::new("task.0").unwrap();
        let started = SubgraphsByRun::default();
        started.lock().insert(run.clone(), child);
        let (graph, bytes) = allocated_bytes(|| started.graph_of(&run));
        assert_eq!(graph.unwrap().as_str(), "g");
        assert!(bytes < 1 << 10, "{bytes} bytes");
        assert_eq!(started.graph_of(&RunId::new("task.1").unwrap()), None);
    }
}
