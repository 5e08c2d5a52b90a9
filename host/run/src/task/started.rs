//! Subgraphs that a guest starts inside of a task, and that run when it waits for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::definition::SubgraphState;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{GraphName, InterruptId, Namespace, RunId};

use crate::app::GraphPack;
use crate::driver::End;
use crate::gate::unwind::{Ended, Stop, Unwind};
use crate::gate::{CallPlace, StartedGraphs};
use crate::hostcall::runs::{RunOutcome, StartRun};
use crate::ports::store::ThreadRecord;
use crate::task::context::{Nested, RunContext};
use crate::task::idle::Alive;

/// Subgraphs that a task started in its current attempt.
pub(super) struct Started {
    context: RunContext,
    alive: Arc<Alive>,
    runs: Mutex<BTreeMap<RunId, Child>>,
}

/// A subgraph that a task started.
#[derive(Clone)]
struct Child {
    pack: Arc<GraphPack>,
    namespace: Namespace,
    request: StartRun,
}

impl Started {
    /// Creates an empty set.
    pub(super) fn new(context: RunContext, alive: Arc<Alive>) -> Self {
        Self { context, alive, runs: Mutex::default() }
    }

    /// No code that can panic runs under this lock.
    fn child(&self, run: &RunId) -> Option<Child> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    fn pack(&self, name: Option<&GraphName>) -> Result<Arc<GraphPack>, Failure> {
        let graphs = &self.context.app.graphs;
        let found = match name {
            Some(name) => graphs.get(name),
            None if graphs.len() == 1 => graphs.values().next(),
            None => None,
        };
        found.cloned().ok_or_else(|| {
            let known: Vec<String> = graphs.keys().map(|name| format!("`{name}`")).collect();
            let wanted = name.map_or_else(|| "to start".to_owned(), |name| format!("`{name}`"));
            let text = format!(
                "there is no graph {wanted}; name one of app `{}`: {}",
                self.context.app.name,
                known.join(", ")
            );
            Failure::new(code::NOT_FOUND, text)
        })
    }
}

#[async_trait]
impl StartedGraphs for Started {
    fn graph(&self, name: Option<&GraphName>) -> Result<GraphName, Failure> {
        Ok(self.pack(name)?.graph.name.clone())
    }

    fn start(
        &self,
        run: RunId,
        graph: &GraphName,
        namespace: Namespace,
        request: StartRun,
    ) -> Result<(), Failure> {
        let child = Child { pack: self.pack(Some(graph))?, namespace, request };
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run, child);
        Ok(())
    }

    fn name(&self, run: &RunId) -> Option<GraphName> {
        self.child(run).map(|child| child.pack.graph.name.clone())
    }

    async fn wait(&self, run: &RunId, call: CallPlace<'_>) -> Result<(RunOutcome, Value), Stop> {
        let child = self.child(run).ok_or_else(|| {
            let text = format!("the node did not start run `{run}`, so it cannot wait for it");
            Failure::new(code::NOT_FOUND, text)
        })?;
        let mut context = self.context.clone();
        if !child.request.context.is_null() {
            let record = ThreadRecord::clone(&context.record);
            context.record = Arc::new(ThreadRecord { context: child.request.context, ..record });
        }
        let nested = Nested {
            pack: child.pack,
            namespace: child.namespace,
            state: SubgraphState::Inherit,
            input: child.request.input,
            above: None,
            alive: Some(self.alive.clone()),
            begun: context.past.wait_begun(call.task, call.scope, call.number),
            error: None,
        };
        let ran = context.subgraphs.run(&context, nested).await.map_err(stop)?;
        let outcome = match ran.end {
            End::Completed => RunOutcome::Completed,
            End::Failed(failure) => RunOutcome::Failed { failure },
            // The interrupt, if there is one, is in the log. This id only names the suspended call.
            End::Interrupted => {
                let place = InterruptId::derive(call.task, call.scope, call.number);
                return Err(Unwind::Suspended(place).into());
            }
            End::Cancelled => return Err(Unwind::Cancelled.into()),
            End::Drained => return Err(Unwind::Drained.into()),
            End::LogLost(failure) => return Err(Unwind::Log(failure).into()),
            End::ToParent(_) => {
                return Err(
                    Failure::internal("a subgraph that a node starts has no parent graph").into()
                );
            }
        };
        Ok((outcome, ran.checkpoint.state()))
    }
}

fn stop(ended: Ended) -> Stop {
    match ended {
        Ended::Unwound(unwind) => unwind.into(),
        Ended::Failure(failure)
        | Ended::Trap(failure)
        | Ended::Limit(failure)
        | Ended::Host(failure) => failure.into(),
    }
}
