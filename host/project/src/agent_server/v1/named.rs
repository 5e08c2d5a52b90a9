//! The server-sent events of mode `events`: events of graphs, nodes, models and tools, under the
//! names of LangChain.
//!
//! In LangChain, a graph, a node, a model call and a tool call are each a run with an id. The
//! server-sent events of such a run also have the ids of the enclosing runs. The event log contains
//! the request of a model call only together with its result, so the start of a model call has no
//! input.

use std::iter;

use serde_json::{Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::event::{CallStarted, Called, Event, EventKind, TaskFinished};
use wattle_graph::id::{Namespace, NodeName, TaskId};

use super::V1;
use crate::agent_server::id::{call_uuid, task_uuid};
use crate::agent_server::message::of_request;
use crate::agent_server::message_stream::{Finish, TaskRef, is_message_event};
use crate::agent_server::mode::Mode;
use crate::agent_server::tool_call::{ToolError, ToolRequest};

/// Name of all server-sent events of mode `events`. Their metadata names the subgraph.
const FRAME: &str = "events";

/// The LangChain run that a server-sent event belongs to.
struct NamedRun {
    name: String,
    id: String,
    /// Ids of the enclosing runs, the outermost first.
    parents: Vec<String>,
    tags: Vec<String>,
    metadata: Value,
}

impl V1 {
    /// Adds the server-sent events of mode `events` for a log event that is not part of a message.
    pub(super) fn name_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted(_) if event.namespace.is_root() => {
                self.push_event("on_chain_start", self.graph_run(), &json!({}));
            }
            EventKind::RunEnded(_) if event.namespace.is_root() => {
                let state = self.checkpoints.get(&event.namespace);
                let output = state.map(|state| self.context.thread_info.values(&state.state()));
                self.push_event("on_chain_end", self.graph_run(), &json!({ "output": output }));
            }
            EventKind::TaskStarted(started) => {
                let place = self.task_ref(event, &started.task, &started.node);
                let place = TaskRef { step: started.step, ..place };
                let input = self.input(&event.namespace, &started.task);
                let data = json!({ "input": input });
                self.push_event("on_chain_start", self.node_run(&place), &data);
            }
            EventKind::TaskFinished(finished) => self.node_ended(event, finished),
            EventKind::Custom(custom) if !is_message_event(custom) => {
                let place = self.task_ref(event, &custom.task, &custom.node);
                let run = NamedRun { name: custom.name.clone(), ..self.node_run(&place) };
                self.push_event("on_custom_event", run, &custom.data);
            }
            EventKind::CallStarted(started) => self.call_started(started),
            EventKind::Called(called) => self.tool_ended(event, called),
            _ => {}
        }
    }

    /// Adds a delta of a completion, or of a message that a node streams.
    pub(super) fn model_streamed(
        &mut self,
        place: &TaskRef,
        message: &str,
        chunk: impl FnOnce() -> Value,
    ) {
        if self.has(Mode::Events) {
            self.model_started(place, message);
            let run = self.model_run(place, message, None);
            self.push_event("on_chat_model_stream", run, &json!({ "chunk": chunk() }));
        }
    }

    /// Adds the end of a completion, or of a message that a node streams. For a completion, `event`
    /// is the event `called`.
    pub(super) fn model_ended(
        &mut self,
        event: &Event,
        place: &TaskRef,
        message: &str,
        finish: Option<&Finish>,
        output: impl FnOnce() -> Value,
    ) {
        if !self.has(Mode::Events) {
            return;
        }
        self.model_started(place, message);
        let run = self.model_run(place, message, finish);
        self.calls.remove(&run.id);
        let mut data = json!({ "output": output() });
        if let EventKind::Called(called) = &event.kind
            && let Some(request) = called.completion_request()
            // The log does not have the messages of a history.
            && request.history.is_none()
        {
            let asked: Vec<Value> = request.messages.iter().flat_map(of_request).collect();
            data["input"] = json!({ "messages": [asked] });
        }
        self.push_event("on_chat_model_end", run, &data);
    }

    /// Forgets a discarded completion, whose start gets no end event.
    pub(super) fn model_discarded(&mut self, message: &str) {
        self.calls.remove(&call_uuid(message));
    }

    /// Adds the start of a completion unless the stream has already sent it.
    fn model_started(&mut self, place: &TaskRef, message: &str) {
        if self.calls.insert(call_uuid(message)) {
            let run = self.model_run(place, message, None);
            self.push_event("on_chat_model_start", run, &json!({}));
        }
    }

    fn node_ended(&mut self, event: &Event, finished: &TaskFinished) {
        let place = self.task_ref(event, &finished.task, &finished.node);
        let output = self.context.thread_info.result(&finished.writes);
        let input = self.input(&event.namespace, &finished.task);
        let chunk = json!({ "chunk": output });
        self.push_event("on_chain_stream", self.node_run(&place), &chunk);
        let data = json!({ "output": output, "input": input });
        self.push_event("on_chain_end", self.node_run(&place), &data);
    }

    fn call_started(&mut self, started: &CallStarted) {
        let Some(place) = self.tasks.get(&started.task).cloned() else { return };
        if started.is_speech() {
            self.model_started(&place, &started.message_id(0));
        } else if started.kind() == Some(CallKind::CallTool) && started.scope.is_empty() {
            let asked = started.request.as_ref().and_then(ToolRequest::read);
            if let Some(asked) = asked {
                self.tool_started(&place, started.call, &asked);
            }
        }
    }

    /// Adds the start of a tool call unless the stream has already sent it.
    fn tool_started(&mut self, place: &TaskRef, call: u32, asked: &ToolRequest<'_>) {
        let run = self.tool_run(place, call, asked);
        if self.calls.insert(run.id.clone()) {
            self.push_event("on_tool_start", run, &json!({ "input": asked.arguments }));
        }
    }

    fn tool_ended(&mut self, event: &Event, called: &Called) {
        // The events of a call that a fork carries over are in the stream of the run that made the
        // call.
        let is_own = called.scope.is_empty() && called.reused.is_none();
        if called.kind() != Some(CallKind::CallTool) || !is_own {
            return;
        }
        let Some(asked) = ToolRequest::read(&called.request) else { return };
        let place = self.task_ref(event, &called.task, &called.node);
        self.tool_started(&place, called.call, &asked);
        let run = self.tool_run(&place, called.call, &asked);
        self.calls.remove(&run.id);
        let input = asked.arguments;
        match asked.result(called) {
            Ok(output) => {
                let data = json!({ "output": output, "input": input });
                self.push_event("on_tool_end", run, &data);
            }
            Err(ToolError { message, .. }) => {
                let data = json!({ "error": message, "input": input, "tool_call_id": asked.id });
                self.push_event("on_tool_error", run, &data);
            }
        }
    }

    fn push_event(&mut self, event: &str, run: NamedRun, data: &Value) {
        let NamedRun { name, id, parents, tags, metadata } = run;
        let data = json!({
            "event": event, "name": name, "run_id": id, "data": data, "tags": tags,
            "metadata": metadata, "parent_ids": parents,
        });
        self.push_named(FRAME, data);
    }

    fn graph_run(&self) -> NamedRun {
        let context = &self.context;
        let mut metadata = context.metadata.clone();
        metadata.insert("thread_id".to_owned(), json!(context.thread_info.thread));
        NamedRun {
            name: context.graph_id.clone(),
            id: context.run.to_string(),
            parents: Vec::new(),
            tags: Vec::new(),
            metadata: Value::Object(metadata),
        }
    }

    fn node_run(&self, place: &TaskRef) -> NamedRun {
        NamedRun {
            name: place.node.to_string(),
            id: task_uuid(&place.task),
            parents: self.runs_around(&place.namespace),
            tags: vec![format!("graph:step:{}", place.step + 1)],
            metadata: self.message_metadata(place),
        }
    }

    fn model_run(&self, place: &TaskRef, message: &str, finish: Option<&Finish>) -> NamedRun {
        let mut run = self.call_run(place, place.node.as_str(), call_uuid(message));
        run.metadata["ls_model_type"] = "chat".into();
        if let Some(finish) = finish {
            run.metadata["ls_model_name"] = finish.model.as_str().into();
            if let Some(provider) = &finish.provider {
                run.metadata["ls_provider"] = provider.as_str().into();
            }
        }
        run
    }

    fn tool_run(&self, place: &TaskRef, call: u32, asked: &ToolRequest<'_>) -> NamedRun {
        let id = call_uuid(&format!("{}.{call}", place.task));
        self.call_run(place, asked.name(), id)
    }

    fn call_run(&self, place: &TaskRef, name: &str, id: String) -> NamedRun {
        let mut parents = self.runs_around(&place.namespace);
        parents.push(task_uuid(&place.task));
        let metadata = self.message_metadata(place);
        NamedRun { name: name.to_owned(), id, parents, tags: Vec::new(), metadata }
    }

    /// Returns the ids of the runs that enclose the tasks of a graph, the outermost first.
    fn runs_around(&self, namespace: &Namespace) -> Vec<String> {
        let tasks = self.tasks_around(namespace);
        let tasks = tasks.iter().rev().map(task_uuid);
        iter::once(self.context.run.to_string()).chain(tasks).collect()
    }

    /// Returns the reference to a task from an event about the task.
    fn task_ref(&self, event: &Event, task: &TaskId, node: &NodeName) -> TaskRef {
        self.tasks.get(task).cloned().unwrap_or_else(|| TaskRef {
            namespace: event.namespace.clone(),
            task: task.clone(),
            node: node.clone(),
            step: 0,
        })
    }
}
