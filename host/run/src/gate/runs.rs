//! Threads and runs of web handlers, and subgraphs that a task starts and waits for.
//!
//! A web handler starts runs on threads. The gate counts the calls of a web handler and records
//! none of them. A node starts a graph as a subgraph of its task: the subgraph runs as part of the
//! node's run, in a namespace below the graph of the task, when the node waits for it. The subgraph
//! is as durable as the node: an interrupt in the subgraph unwinds the node, and a crash loses
//! nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::event::Event;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CallKey, GraphName, RunId, ThreadId};
use wattle_graph::weight::weight;

use crate::gate::entry::CallLookup;
use crate::gate::pipeline::decode_output;
use crate::gate::task_gate::TaskGate;
use crate::gate::unwind::CallError;
use crate::gate::{Effect, EffectContext, Gate};
use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::hostcall::request::CallRequest;
use crate::hostcall::runs::{
    CANCEL, DELETE_THREAD, EVENTS, EndedRun, ListThreads, RESUME, ResumeRun, RunRef, RunService,
    START, StartRun, THREAD, THREADS, ThreadView, UPDATE_THREAD, UpdateThread,
};
use crate::json::check_depth;
use crate::ports::Caller;
use crate::ports::store::ThreadSearchPage;

/// Number of calls as which a search of threads counts. A store without an index may read the
/// records of all threads for one search, and this work takes none of the CPU time of the guest.
const THREAD_SEARCH_CALLS: u32 = 100;

impl Gate {
    /// Starts a run. For a web handler the run is on a thread; for a node it is a subgraph of its
    /// task, which starts when the node waits for it.
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] if the graph does not exist, or the request contains fields that a
    /// node cannot use; errors of the engine for a web handler; [`CallError::Unwind`] if the guest
    /// must be unwound.
    pub async fn start_run(&self, request: StartRun) -> Result<RunRef, CallError> {
        match &self.task {
            None => Ok(self.runs_for(START, &request)?.start(request).await?),
            Some(task) => self.start_subgraph(task, request),
        }
    }

    /// Waits until a run ends or, for a web handler, is interrupted.
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] if the run does not exist; [`CallError::Unwind`] if the guest must be
    /// unwound because the subgraph is interrupted.
    pub async fn wait_run(&self, run: &RunRef) -> Result<EndedRun, CallError> {
        match &self.task {
            None => {
                let ended = self.runs_for(EndedRun::FUNCTION, run)?.wait(run).await?;
                self.count_text(EndedRun::FUNCTION, &ended)?;
                Ok(ended)
            }
            Some(task) => {
                let graph = task.subgraphs.graph_of(&run.run);
                let graph = graph.ok_or_else(|| self.refuse(run_not_started(run)))?;
                self.call(WaitRun { run: run.run.clone(), graph }).await
            }
        }
    }
}

impl Gate {
    /// Resumes a thread.
    ///
    /// # Errors
    ///
    /// `unsupported` inside a node; errors of the engine; [`CallError::Unwind`] if the guest must
    /// be unwound.
    pub async fn resume_run(&self, request: ResumeRun) -> Result<RunRef, CallError> {
        Ok(self.runs_for(RESUME, &request)?.resume(request).await?)
    }

    /// Cancels a run.
    ///
    /// # Errors
    ///
    /// See [`Gate::resume_run`].
    pub async fn cancel_run(&self, run: &RunRef) -> Result<(), CallError> {
        Ok(self.runs_for(CANCEL, run)?.cancel(run).await?)
    }

    /// Returns a thread; `None` if the app has no such thread.
    ///
    /// # Errors
    ///
    /// See [`Gate::resume_run`].
    pub async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, CallError> {
        let view = self.runs_for(THREAD, thread)?.thread(thread).await?;
        self.count_text(THREAD, &view)?;
        Ok(view)
    }

    /// Deletes a thread.
    ///
    /// # Errors
    ///
    /// See [`Gate::resume_run`].
    pub async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CallError> {
        Ok(self.runs_for(DELETE_THREAD, thread)?.delete_thread(thread).await?)
    }

    /// Lists threads of the app and the tenant. The search counts as many calls, since its work
    /// grows with the store.
    ///
    /// # Errors
    ///
    /// See [`Gate::resume_run`].
    pub async fn threads(&self, list: ListThreads) -> Result<ThreadSearchPage, CallError> {
        self.count_calls(THREAD_SEARCH_CALLS)?;
        self.count_text(THREADS, &list)?;
        let page = self.runs()?.threads(list).await?;
        self.count_text(THREADS, &page.items)?;
        Ok(page)
    }

    /// Updates the metadata of a thread.
    ///
    /// # Errors
    ///
    /// See [`Gate::resume_run`].
    pub async fn update_thread(&self, update: UpdateThread) -> Result<(), CallError> {
        self.runs_for(UPDATE_THREAD, &update)?.update_thread(update).await?;
        Ok(())
    }

    /// Returns events of a thread after a sequence number.
    ///
    /// # Errors
    ///
    /// See [`Gate::resume_run`].
    pub async fn thread_events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, CallError> {
        let events = self.runs_for(EVENTS, thread)?.events(thread, after, limit).await?;
        self.count_text(EVENTS, &events)?;
        Ok(events)
    }

    /// Counts a call with its request, and returns the service that performs it.
    fn runs_for(
        &self,
        function: &str,
        request: &impl Serialize,
    ) -> Result<&dyn RunService, CallError> {
        self.count_call()?;
        self.count_text(function, request)?;
        Ok(self.runs()?)
    }

    /// Registers the subgraph. The run id of the subgraph derives from the call path, so every
    /// re-execution gets the same id.
    fn start_subgraph(&self, task: &Arc<TaskGate>, request: StartRun) -> Result<RunRef, CallError> {
        let graph = check_start(&request)
            .and_then(|()| task.subgraphs.graph(request.graph.as_ref()))
            .map_err(|failure| self.refuse(failure))?;
        let StartRun { input, context, .. } = &request;
        let fields = SubgraphRequest { graph: &graph, input, context };
        let shown = CallRequest::of_fields(START, &fields)?.with_summary(graph.as_str());
        self.count_bytes(shown.bytes)?;
        // The task keeps both until it ends, since a guest may wait for a subgraph at any time.
        self.count_journaled(weight(input) + weight(context))?;
        let (call, lookup) = self.enter(task, shown)?;
        let place = task.call_path(call);
        let namespace = task.log.namespace().for_call(&task.node, &task.task, &place);
        let reference = match lookup {
            // In a fork the task has another id. The guest still receives the recorded reference,
            // because its later requests must equal those in the journal.
            CallLookup::Recorded(reference) => decode_output(START, reference?)?,
            CallLookup::Unrecorded(entry) => {
                // Recorded, so that a re-execution on a host with another cap gets the same result.
                let caps = self.env.quotas.caps();
                if let Err(failure) = caps.check_context_size(&request.context) {
                    entry.record(Err(failure.clone()));
                    return Err(failure.into());
                }
                let run = RunId::new(format!("{}.{place}", task.task))
                    .map_err(|error| Failure::internal(error.to_string()))?;
                let reference = RunRef { thread: task.log.thread().clone(), run };
                entry.record(Ok(json!(reference)));
                reference
            }
        };
        task.subgraphs.start(reference.run.clone(), &graph, namespace, request)?;
        Ok(reference)
    }
}

/// The request to start a subgraph, as the journal has it. Recorded digests depend on the names and
/// the order of the fields.
#[derive(Serialize)]
struct SubgraphRequest<'r> {
    graph: &'r GraphName,
    input: &'r Value,
    context: &'r Value,
}

fn check_start(request: &StartRun) -> Result<(), Failure> {
    if request.thread.is_some() || !request.metadata.is_empty() {
        return Err(Failure::new(
            code::UNSUPPORTED,
            "a graph that a node starts runs as a subgraph of its task, without a thread and \
             metadata of its own; omit them, or start the graph from a web handler",
        ));
    }
    check_depth("the input", &request.input)?;
    check_depth("the context", &request.context)
}

fn run_not_started(run: &RunRef) -> Failure {
    Failure::new(
        code::NOT_FOUND,
        format!("the node did not start run `{}`, so it cannot wait for it", run.run),
    )
}

/// Waits for a subgraph that the task started: starts it, or continues it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WaitRun {
    run: RunId,
    graph: GraphName,
}

impl HostCall for WaitRun {
    type Output = EndedRun;
    const FUNCTION: &'static str = EndedRun::FUNCTION;
    const LOGS_START: bool = true;

    fn summary(&self) -> String {
        self.graph.to_string()
    }

    /// The grant was checked when the subgraph was started.
    fn check_allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}

impl Effect for WaitRun {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<EndedRun, CallError> {
        let Some(entry) = context.entry else {
            return Err(Failure::internal("cannot wait for a subgraph outside of a task").into());
        };
        let task = &entry.task;
        let call = CallKey::new(&task.task, &task.scope, entry.number);
        let (outcome, state) = task.subgraphs.wait(&self.run, &call).await?;
        let run = RunRef { thread: task.log.thread().clone(), run: self.run.clone() };
        Ok(EndedRun { run, outcome, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit;

    #[test]
    fn request_to_start_a_subgraph_has_the_digest_of_older_journals() {
        let graph = GraphName::new("helper").unwrap();
        let input = json!({ "z": [1.5, null], "a": "x".repeat(limit::JOURNAL_REQUEST_BYTES) });
        for context in [Value::Null, json!({ "user": "eve", "id": 7 })] {
            let older = json!({ "graph": graph, "input": input, "context": context });
            let older = CallRequest::small(START, older);
            let fields = SubgraphRequest { graph: &graph, input: &input, context: &context };
            let now = CallRequest::of_fields(START, &fields).unwrap();
            assert_eq!((now.digest, now.bytes), (older.digest, older.bytes));
            let journaled = now.journaled();
            assert_eq!((&journaled["graph"], &journaled["context"]), (&json!(graph), &context));
            assert_eq!(journaled.get("input"), None, "the journal had it whole");
        }
    }
}
