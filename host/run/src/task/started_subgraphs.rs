//! Subgraphs that a guest starts inside of a task. A subgraph runs when the guest waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    by_run: Mutex<BTreeMap<RunId, StartedSubgraph>>,
}

/// A subgraph that a task started.
#[derive(Clone)]
struct StartedSubgraph {
    graph_version: Arc<GraphVersion>,
    namespace: Namespace,
    request: StartRun,
}

impl StartedSubgraphs {
    /// Creates an empty set.
    pub(super) fn new(context: Arc<StepContext>, parent_heartbeat: Arc<TaskHeartbeat>) -> Self {
        Self { context, parent_heartbeat, by_run: Mutex::default() }
    }

    /// Returns the subgraph of a run id. No code that can panic runs under the lock.
    fn get(&self, run: &RunId) -> Option<StartedSubgraph> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
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
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner).insert(run, child);
        Ok(())
    }

    fn graph_of(&self, run: &RunId) -> Option<GraphName> {
        self.get(run).map(|child| child.graph_version.graph.name.clone())
    }

    async fn wait(&self, run: &RunId, call: &CallKey) -> Result<(RunOutcome, Value), CallError> {
        let child = self.get(run).ok_or_else(|| {
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
