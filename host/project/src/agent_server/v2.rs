//! Projection of a thread as a stream of typed events, for the second version of the streaming
//! protocol.
//!
//! The stream is a function of the log. It starts with the first event of the thread and covers all
//! runs. Events that the subscription does not select also get numbers, so the numbers of events do
//! not depend on the subscription.

mod blocks;
mod subscription;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{
    Checkpointed, Custom, Event, EventKind, InterruptRaised, Progress, RunEnded, RunStatus,
    TaskFinished,
};
use wattle_graph::id::{Namespace, TaskId};

pub use self::subscription::{Channel, Subscription, SubscriptionError};

use self::blocks::Blocks;
use self::tools::ToolCalls;
use crate::agent_server::document::Interrupt;
use crate::agent_server::failure::{message_of, place_of, task_error};
use crate::agent_server::id::{EventId, namespace_levels, task_uuid};
use crate::agent_server::message;
use crate::agent_server::message_stream::{MessageProjection, is_message_event};
use crate::agent_server::thread_info::ThreadInfo;
use crate::agent_server::work;
use crate::projection::{EventState, NeededState, Projection, goes_on};

/// An event of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    /// Name of the event.
    pub method: &'static str,
    /// The whole event.
    pub data: Value,
    /// Number of the event. Numbers increase within a thread. A subscriber that reconnects sends
    /// the last number that it received.
    pub seq: u64,
}

impl StreamEvent {
    /// Encodes the event as a server-sent event.
    pub fn to_bytes(&self) -> Bytes {
        let Self { method, data, seq } = self;
        format!("event: {method}\r\ndata: {data}\r\nid: {seq}\r\n\r\n").into()
    }
}

/// The projection of one thread. It takes the events of the thread in order, from the first event
/// of the thread or from the first event after a run that has completed: no later event of the
/// stream depends on what was before. After a completed run, the ids of earlier messages are
/// unknown. They are not needed, because only messages that are streamed have events.
#[derive(Clone, Debug)]
pub struct V2 {
    subscription: Subscription,
    thread_info: ThreadInfo,
    /// Name of the graph in the Agent Server API.
    graph: String,
    messages: MessageProjection,
    blocks: Blocks,
    tools: ToolCalls,
    /// Newest checkpoint of the root graph and of each subgraph. A subgraph may continue from this
    /// checkpoint after a failure or a cancel.
    checkpoints: BTreeMap<Namespace, Checkpoint>,
    /// Running subgraphs.
    subgraphs: BTreeSet<Namespace>,
    is_running: bool,
    /// Whether the current event starts a run, in contrast to recovering one.
    starts_run: bool,
    /// Number of the last event that the subscriber has received.
    after: u64,
    index: usize,
    out: Vec<StreamEvent>,
}

impl V2 {
    /// Creates a stream before its first event.
    pub fn new(subscription: Subscription, thread_info: ThreadInfo, graph: String) -> Self {
        Self {
            subscription,
            thread_info,
            graph,
            messages: MessageProjection::default(),
            blocks: Blocks::default(),
            tools: ToolCalls::default(),
            checkpoints: BTreeMap::new(),
            subgraphs: BTreeSet::new(),
            is_running: false,
            starts_run: false,
            after: 0,
            index: 0,
            out: Vec::new(),
        }
    }

    /// Omits the events up to `after`, which the subscriber has already received.
    #[must_use]
    pub fn after(self, after: u64) -> Self {
        Self { after, ..self }
    }

    /// Replaces the settings of the thread. Callers use this after a migration of the thread to
    /// another version of its graph.
    pub fn set_thread(&mut self, thread_info: ThreadInfo) {
        self.thread_info = thread_info;
    }

    /// Returns true if [`Projection::needs`] may request a state for some event of the thread.
    pub fn shows_state(&self) -> bool {
        let shown = [Channel::Values, Channel::Tasks, Channel::Checkpoints];
        shown.iter().any(|channel| self.subscription.has(channel))
    }

    /// Sends an event of a tool call. The message of a tool has a namespace below the graph, as if
    /// the call were a subgraph, so that clients can show the message with the call.
    fn tool(&mut self, event: &Event, namespace: &Namespace, data: Value) {
        let call = data["tool_call_id"].as_str().unwrap_or_default();
        let message = blocks::of_tool(call, &data);
        let mut levels = namespace_levels(namespace);
        levels.push(format!("tools:{call}"));
        self.push(Channel::Tools, "tools", namespace, event, data);
        for data in message {
            self.push_at(Channel::Messages, "messages", levels.clone(), event, data);
        }
    }

    /// Sends the events of a log event, except the events of messages and tool calls.
    fn show(&mut self, event: &Event, checkpoint: Option<&Checkpoint>) {
        match &event.kind {
            EventKind::RunStarted(started) if goes_on(started.reason) => {
                self.stand_still(event, checkpoint);
            }
            EventKind::Checkpointed(made) => self.stand(event, made, checkpoint),
            EventKind::TaskStarted(started) if started.attempt == 1 => {
                let input = work::input(
                    &self.thread_info,
                    &self.checkpoints,
                    &event.namespace,
                    &started.task,
                );
                self.push_here(Channel::Tasks, "tasks", event, work::begun(started, &input));
            }
            EventKind::TaskFinished(finished) => self.task_finished(event, finished),
            EventKind::TaskFailed(failed) if failed.retry_in_ms.is_none() => {
                let (node, why) = (failed.node.as_str(), Some(task_error(&failed.failure)));
                let data = work::ended(&failed.task, node, why, &json!({}), &[]);
                self.push_here(Channel::Tasks, "tasks", event, data);
                self.leave(event, &failed.task, "failed");
            }
            EventKind::Custom(custom) if !is_message_event(custom) => self.custom(event, custom),
            EventKind::Progress(progress) => self.progress(event, progress),
            EventKind::InterruptRaised(raised) if !raised.answered => self.ask(event, raised),
            EventKind::Answered(answered) => {
                let data = json!({ "interrupt_ids": [answered.interrupt] });
                self.push_here(Channel::Input, "input.answered", event, data);
            }
            EventKind::RunEnded(ended) if event.namespace.is_root() => self.end(event, ended),
            _ => {}
        }
    }

    /// Sends the start of a run, or of a subgraph.
    fn enter(&mut self, event: &Event) {
        let namespace = &event.namespace;
        if namespace.is_root() {
            let starts = matches!(event.kind, EventKind::RunStarted(_));
            self.starts_run = starts && !std::mem::replace(&mut self.is_running, true);
            if self.starts_run {
                self.lifecycle(event, namespace, "running", Map::new());
            }
            return;
        }
        if !self.is_running || !self.subgraphs.insert(namespace.clone()) {
            return;
        }
        let call = self.tools.around(namespace).map(str::to_owned);
        let cause = call.or_else(|| namespace.task().as_ref().map(task_uuid));
        let more = Map::from_iter([
            ("namespace".to_owned(), json!(namespace_levels(namespace))),
            ("trigger_call_id".to_owned(), json!(cause)),
        ]);
        self.lifecycle(event, namespace, "started", more);
    }

    fn lifecycle(
        &mut self,
        event: &Event,
        namespace: &Namespace,
        what: &str,
        more: Map<String, Value>,
    ) {
        let name = if namespace.is_root() { self.graph.as_str() } else { namespace.node() };
        let mut data = json!({ "event": what, "graph_name": name });
        if let Value::Object(data) = &mut data {
            data.extend(more);
        }
        self.push(Channel::Lifecycle, "lifecycle", namespace, event, data);
    }

    /// Sends the current state at the start of a run that continues from that state.
    fn stand_still(&mut self, event: &Event, checkpoint: Option<&Checkpoint>) {
        if !event.namespace.is_root() || !std::mem::take(&mut self.starts_run) {
            return;
        }
        if let Some(start) = checkpoint {
            self.checkpoints.insert(event.namespace.clone(), start.clone());
        }
        let values =
            self.checkpoints.get(&event.namespace).map(|it| self.thread_info.values(&it.state()));
        self.push_here(Channel::Values, "values", event, values.map(compact).unwrap_or_default());
    }

    /// Sends a checkpoint and then its values. The JavaScript client pairs values with the
    /// checkpoint before them: it edits a message by a run from the parent of that checkpoint.
    fn stand(&mut self, event: &Event, made: &Checkpointed, checkpoint: Option<&Checkpoint>) {
        let state = checkpoint.filter(|it| it.meta.id == made.checkpoint);
        let mut data = json!({
            "id": self.thread_info.checkpoint_id(made.checkpoint), "step": made.step,
            "source": made.source,
        });
        let parent = state.and_then(|state| state.meta.parent);
        let parent =
            self.thread_info.parent(&event.namespace, made.checkpoint, made.source, parent);
        if let Some(id) = parent.and_then(|parent| parent.checkpoint_id) {
            data["parent_id"] = id.into();
        }
        self.push_here(Channel::Checkpoints, "checkpoints", event, data);
        let values = state.map(|state| compact(self.thread_info.values(&state.state())));
        self.push_here(Channel::Values, "values", event, values.unwrap_or_default());
        // The subgraphs of the previous superstep have ended.
        self.checkpoints.retain(|nested, _| !nested.is_nested_in(&event.namespace));
        match state {
            Some(state) => drop(self.checkpoints.insert(event.namespace.clone(), state.clone())),
            // Later events must not show the state before this checkpoint.
            None => drop(self.checkpoints.remove(&event.namespace)),
        }
    }

    fn task_finished(&mut self, event: &Event, finished: &TaskFinished) {
        let written = compact(self.thread_info.writes(&finished.writes));
        let update = Map::from_iter([(finished.node.to_string(), written)]);
        self.push_here(Channel::Updates, "updates", event, update.into());
        let result = self.thread_info.result(&finished.writes);
        let data = work::ended(&finished.task, finished.node.as_str(), None, &result, &[]);
        self.push_here(Channel::Tasks, "tasks", event, data);
        if let Some(child) = &finished.child {
            self.leave_graph(event, &child.namespace, "completed");
        }
        self.leave(event, &finished.task, "completed");
    }

    /// Ends the subgraphs that a task runs. `what` is the name of the event.
    fn leave(&mut self, event: &Event, task: &TaskId, what: &str) {
        let own = self.subgraphs.iter().filter(|namespace| namespace.task().as_ref() == Some(task));
        let own: Vec<Namespace> = own.cloned().collect();
        for namespace in &own {
            self.leave_graph(event, namespace, what);
        }
    }

    /// Ends a subgraph, after its nested subgraphs. `what` is the name of the event.
    fn leave_graph(&mut self, event: &Event, namespace: &Namespace, what: &str) {
        let ends = |nested: &Namespace| nested == namespace || nested.is_nested_in(namespace);
        let ended: Vec<Namespace> = self.subgraphs.extract_if(.., |nested| ends(nested)).collect();
        for namespace in ended.iter().rev() {
            self.lifecycle(event, namespace, what, Map::new());
        }
    }

    fn custom(&mut self, event: &Event, custom: &Custom) {
        let data = match &custom.data {
            Value::Object(_) => custom.data.clone(),
            data => json!({ "name": custom.name, "data": data }),
        };
        let name = data.get("name").and_then(Value::as_str).unwrap_or(&custom.name).to_owned();
        self.push_here(Channel::Custom(Some(name)), "custom", event, data);
    }

    fn progress(&mut self, event: &Event, progress: &Progress) {
        let Progress { node, message, fraction, .. } = progress;
        let name = "progress";
        let data = json!({ "name": name, "node": node, "message": message, "fraction": fraction });
        self.push_here(Channel::Custom(Some(name.to_owned())), "custom", event, data);
    }

    fn ask(&mut self, event: &Event, raised: &InterruptRaised) {
        self.push_here(Channel::Updates, "updates", event, json!({}));
        let Interrupt { id, value, response_schema } = raised.into();
        let mut data = json!({ "interrupt_id": id, "payload": value });
        if let Some(schema) = response_schema {
            data["response_schema"] = schema;
        }
        self.push_here(Channel::Input, "input.requested", event, data);
    }

    /// Sends the end of a run. Clients wait for this event.
    fn end(&mut self, event: &Event, ended: &RunEnded) {
        self.is_running = false;
        let what = match ended.status {
            RunStatus::Completed | RunStatus::Pending | RunStatus::Running => "completed",
            RunStatus::Interrupted | RunStatus::Cancelled => "interrupted",
            RunStatus::Failed => "failed",
        };
        let nested = std::mem::take(&mut self.subgraphs);
        for namespace in nested.iter().rev() {
            self.lifecycle(event, namespace, what, Map::new());
        }
        let mut more = Map::new();
        if let Some(failure) = &ended.failure {
            more.insert("error".to_owned(), message_of(failure).into());
            more.insert("code".to_owned(), failure.code.as_str().into());
            more.extend(place_of(failure));
        }
        self.lifecycle(event, &event.namespace, what, more);
    }

    fn push_here(&mut self, channel: Channel, method: &'static str, event: &Event, data: Value) {
        self.push(channel, method, &event.namespace, event, data);
    }

    fn push(
        &mut self,
        channel: Channel,
        method: &'static str,
        namespace: &Namespace,
        event: &Event,
        data: Value,
    ) {
        self.push_at(channel, method, namespace_levels(namespace), event, data);
    }

    fn push_at(
        &mut self,
        channel: Channel,
        method: &'static str,
        levels: Vec<String>,
        event: &Event,
        data: Value,
    ) {
        let id = EventId::new(event, self.index);
        self.index += 1;
        let unknown_state = channel == Channel::Values && data.is_null();
        let is_known = id.number <= self.after;
        if unknown_state || is_known || !self.subscription.wants(&channel, &levels) {
            return;
        }
        let data = json!({
            "type": "event",
            "event_id": event_id(method, event, id),
            "seq": id.number,
            "method": method,
            "params": { "namespace": levels, "timestamp": event.at_ms, "data": data },
        });
        self.out.push(StreamEvent { method, data, seq: id.number });
    }
}

impl Projection for V2 {
    type Output = Vec<StreamEvent>;

    fn needs(&self, event: &Event) -> Option<NeededState> {
        // A new task is shown with the state before it. That state is also needed if the subscriber
        // has already received the event with the state.
        let is_new = EventId::end_of(event.seq) > self.after;
        if !self.shows_state() || !(is_new || self.subscription.has(&Channel::Tasks)) {
            return None;
        }
        match &event.kind {
            EventKind::Checkpointed(made) => {
                Some(NeededState::Checkpoint(event.namespace.clone(), made.checkpoint))
            }
            EventKind::RunStarted(started) if event.namespace.is_root() => {
                let stands = !self.is_running && goes_on(started.reason);
                (stands && !self.checkpoints.contains_key(&event.namespace))
                    .then_some(NeededState::Start)
            }
            _ => None,
        }
    }

    fn apply(&mut self, event: &Event, state: &EventState) -> Vec<StreamEvent> {
        let checkpoint = state.checkpoint.as_ref();
        self.index = 0;
        self.enter(event);
        for spoken in self.messages.apply(event, checkpoint, &self.thread_info) {
            for data in self.blocks.take(&spoken) {
                self.push(Channel::Messages, "messages", &spoken.task.namespace, event, data);
            }
        }
        for (namespace, data) in self.tools.apply(event, &self.thread_info) {
            self.tool(event, &namespace, data);
        }
        self.show(event, checkpoint);
        std::mem::take(&mut self.out)
    }
}

/// Returns the id of an event. Clients read the run of a start, an end or an interrupt only from
/// this id. The JavaScript client expects the run id between two colons after `synth`. Without the
/// run id, the client takes the end of an earlier run for the end of its current run.
fn event_id(method: &str, event: &Event, id: EventId) -> String {
    match method {
        "lifecycle" | "input.requested" => format!("synth:{}:{id}", event.run),
        _ => id.to_string(),
    }
}

/// Removes empty fields of the messages in a value.
fn compact(mut value: Value) -> Value {
    message::compact(&mut value);
    value
}

#[cfg(test)]
mod tests;
