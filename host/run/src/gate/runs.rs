//! Graphs of the app that a task starts by itself and waits for.
//!
//! A web handler starts runs on threads of their own. Inside a node a graph runs in place: in a
//! namespace below the task's graph, as a part of its run, when it is waited for. So it is as
//! durable as the node: a question inside of it unwinds the node, and a crash loses nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_graph::definition::SubgraphState;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Digest, GraphName, InterruptId, Namespace, RunId};

use crate::app::GraphPack;
use crate::call::HostCall;
use crate::call::runs::{EndedRun, RunOutcome, RunRef, StartRun};
use crate::driver::{End, Nested, Ran, run_nested};
use crate::gate::journal::Known;
use crate::gate::task::{Answered, TaskSide};
use crate::gate::unwind::{Stop, Unwind};
use crate::gate::{Gate, Site};
use crate::grant::Grants;
use crate::json::check_depth;
use crate::limit::Limits;
use crate::ports::Caller;
use crate::ports::sandbox::Ended;
use crate::ports::store::ThreadRecord;
use crate::task::RunContext;
use crate::task::idle::Alive;

const START: &str = "runs.start";

/// What a task started in its present attempt.
pub(crate) struct Started {
    context: RunContext,
    alive: Arc<Alive>,
    runs: Mutex<BTreeMap<RunId, Child>>,
}

/// One graph that a task started.
#[derive(Clone)]
struct Child {
    pack: Arc<GraphPack>,
    namespace: Namespace,
    request: StartRun,
}

impl Started {
    /// Nothing yet.
    pub(crate) fn new(context: RunContext, alive: Arc<Alive>) -> Self {
        Self { context, alive, runs: Mutex::default() }
    }

    /// No code that can panic runs under this lock.
    fn child(&self, run: &RunId) -> Option<Child> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    fn keep(&self, run: RunId, child: Child) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run, child);
    }

    fn graph(&self, name: Option<&GraphName>) -> Result<Arc<GraphPack>, Failure> {
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

    /// Runs a graph to its end, or goes on with it.
    async fn run(&self, child: Child, begun: Option<u64>) -> Result<Ran, Ended> {
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
            begun,
            error: None,
        };
        Box::pin(run_nested(&context, nested)).await
    }
}

impl Gate {
    /// Starts a run: of a web handler on a thread, of a node inside of its task. The latter begins
    /// when it is waited for.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] if there is no such graph, or the request asks for what the caller cannot
    /// have; those of the engine for a web handler.
    pub async fn start_run(&self, request: StartRun) -> Result<RunRef, Stop> {
        match &self.task {
            None => Ok(self.runs()?.start(request).await?),
            Some(task) => task.start_run(request, self.limits()),
        }
    }

    /// Waits until a run ends or, of a web handler, stands still.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] if there is no such run; [`Stop::Unwind`] if the guest must end, since the
    /// graph that it started waits for a person.
    pub async fn wait_run(&self, run: &RunRef) -> Result<EndedRun, Stop> {
        match &self.task {
            None => Ok(self.runs()?.wait(run).await?),
            Some(task) => {
                let child = task.started.child(&run.run).ok_or_else(|| not_started(run))?;
                let graph = child.pack.graph.name.clone();
                self.call(WaitRun { run: run.run.clone(), graph }).await
            }
        }
    }
}

impl TaskSide {
    /// Notes what is to run. Its place in the task names it, the same in every re-execution.
    fn start_run(&self, request: StartRun, limits: &Limits) -> Result<RunRef, Stop> {
        check_start(&request)?;
        let pack = self.started.graph(request.graph.as_ref())?;
        let call = self.take_numbers(1, limits)?;
        let shown = json!({
            "graph": pack.graph.name, "input": request.input, "context": request.context,
        });
        let digest = Digest::of(shown.to_string().as_bytes());
        let known = self.journal.look_up(call, START, digest, || shown.clone())?;
        let place = self.place_of(call);
        let namespace = self.log.namespace().of_call(&self.node, &self.task, &place);
        if let Known::Answered(Ok(reference)) = known {
            // In a fork the task has another id, but the guest is to see what it saw before, and
            // its requests are to be those that the journal has.
            let reference: RunRef = serde_json::from_value(reference).map_err(|error| {
                Failure::internal(format!("cannot read a journaled run: {error}"))
            })?;
            self.started.keep(reference.run.clone(), Child { pack, namespace, request });
            return Ok(reference);
        }
        let run = RunId::new(format!("{}.{place}", self.task))
            .map_err(|error| Failure::internal(error.to_string()))?;
        let reference = RunRef { thread: self.log.thread().clone(), run: run.clone() };
        self.write_down(Answered {
            call,
            batch: call,
            function: START,
            digest,
            request: shown,
            result: Ok(json!(reference)),
            started_ms: self.clock.now_ms(),
            started: Instant::now(),
            summary: pack.graph.name.to_string(),
            tokens: None,
            reused: None,
        });
        self.started.keep(run, Child { pack, namespace, request });
        Ok(reference)
    }
}

fn check_start(request: &StartRun) -> Result<(), Failure> {
    if request.thread.is_some() || !request.metadata.is_empty() {
        return Err(Failure::new(
            code::UNSUPPORTED,
            "a graph that a node starts runs inside of its task, so it has no thread and no \
             metadata of its own; leave them out, or start it from a web handler",
        ));
    }
    check_depth("the input", &request.input)?;
    check_depth("the context", &request.context)
}

fn not_started(run: &RunRef) -> Failure {
    Failure::new(
        code::NOT_FOUND,
        format!("the node did not start run `{}`; it can wait only for its own", run.run),
    )
}

/// Waits for a graph that the task started: runs it, or goes on with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WaitRun {
    run: RunId,
    graph: GraphName,
}

impl HostCall for WaitRun {
    type Answer = EndedRun;
    const FUNCTION: &'static str = EndedRun::FUNCTION;
    const SLOW: bool = true;

    fn summary(&self) -> String {
        self.graph.to_string()
    }

    /// It was allowed when it was started.
    fn allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, site: &Site<'_>) -> Result<EndedRun, Stop> {
        let reference =
            |task: &TaskSide| RunRef { thread: task.log.thread().clone(), run: self.run.clone() };
        let Some(entry) = &site.entry else {
            return Err(Failure::internal("a graph was waited for outside of a task").into());
        };
        let task = entry.task;
        let child = task.started.child(&self.run);
        let child = child.ok_or_else(|| not_started(&reference(task)))?;
        let past = &task.started.context.past;
        let begun = past.wait_begun(&task.task, &task.scope, entry.number);
        let ran = task.started.run(child, begun).await.map_err(stop)?;
        let outcome = match ran.end {
            End::Completed => RunOutcome::Completed,
            End::Failed(failure) => RunOutcome::Failed { failure },
            // The question, if there is one, is in the log; this names the call that waits for it.
            End::Interrupted => {
                let place = InterruptId::derive(&task.task, &task.scope, entry.number);
                return Err(Unwind::Suspended(place).into());
            }
            End::Cancelled => return Err(Unwind::Cancelled.into()),
            End::Drained => return Err(Unwind::Drained.into()),
            End::LogLost(failure) => return Err(Unwind::Log(failure).into()),
            End::ToParent(_) => {
                return Err(
                    Failure::internal("there is no graph above one that a node starts").into()
                );
            }
        };
        Ok(EndedRun { run: reference(task), outcome, state: ran.checkpoint.state() })
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
