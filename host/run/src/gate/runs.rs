//! Graphs of the app that a task starts by itself and waits for.
//!
//! A web handler starts runs on threads of their own. Inside a node a graph runs in place: in a
//! namespace below the task's graph, as a part of its run, when it is waited for. So it is as
//! durable as the node: a question inside of it unwinds the node, and a crash loses nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{GraphName, RunId};

use crate::gate::entry::LookedUp;
use crate::gate::path::read;
use crate::gate::task::TaskSide;
use crate::gate::unwind::Stop;
use crate::gate::{CallPlace, Effect, Gate, Site};
use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::hostcall::request::Request;
use crate::hostcall::runs::{EndedRun, RunRef, StartRun};
use crate::json::check_depth;
use crate::ports::Caller;

const START: &str = "runs.start";

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
            Some(task) => self.start_nested(task, request),
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
                let graph = task.started.name(&run.run).ok_or_else(|| not_started(run))?;
                self.call(WaitRun { run: run.run.clone(), graph }).await
            }
        }
    }
}

impl Gate {
    /// Notes what is to run. Its place in the task names it, the same in every re-execution.
    fn start_nested(&self, task: &Arc<TaskSide>, request: StartRun) -> Result<RunRef, Stop> {
        check_start(&request)?;
        let graph = task.started.graph(request.graph.as_ref())?;
        let call = self.take_numbers(1)?;
        let shown = json!({
            "graph": graph, "input": request.input, "context": request.context,
        });
        let shown = Request::small(START, shown).with_summary(graph.to_string());
        let place = task.place_of(call);
        let namespace = task.log.namespace().of_call(&task.node, &task.task, &place);
        let reference = match task.look_up(call, call, shown)? {
            // In a fork the task has another id, but the guest is to see what it saw before, and
            // its requests are to be those that the journal has.
            LookedUp::Answered(reference) => read(START, reference?)?,
            LookedUp::Unanswered(entry) => {
                let run = RunId::new(format!("{}.{place}", task.task))
                    .map_err(|error| Failure::internal(error.to_string()))?;
                let reference = RunRef { thread: task.log.thread().clone(), run };
                entry.record(Ok(json!(reference)));
                reference
            }
        };
        task.started.start(reference.run.clone(), &graph, namespace, request)?;
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
}

impl Effect for WaitRun {
    async fn perform(&self, site: &Site<'_>) -> Result<EndedRun, Stop> {
        let Some(entry) = site.entry else {
            return Err(Failure::internal("a graph was waited for outside of a task").into());
        };
        let task = &entry.task;
        let call = CallPlace { task: &task.task, scope: &task.scope, number: entry.number };
        let (outcome, state) = task.started.wait(&self.run, call).await?;
        let run = RunRef { thread: task.log.thread().clone(), run: self.run.clone() };
        Ok(EndedRun { run, outcome, state })
    }
}
