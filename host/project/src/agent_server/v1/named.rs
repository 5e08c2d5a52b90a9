//! The server-sent events of mode `events`: events of graphs, nodes and models, under the names of
//! LangChain.

use serde_json::{Value, json};
use wattle_graph::event::{Event, EventKind};

use super::V1;
use super::frame::{Frame, name as name_of};
use crate::agent_server::id::{EventId, task_uuid};
use crate::agent_server::message_stream::{TaskRef, is_message_event};
use crate::agent_server::mode::Mode;

impl V1 {
    /// Adds the named server-sent event for a log event, if there is one.
    pub(super) fn name_event(&mut self, event: &Event) {
        let (graph, thread_info) = (self.context.graph_id.clone(), &self.context.thread_info);
        let run = || self.context.run.to_string();
        let (what, name, id, data) = match &event.kind {
            EventKind::RunStarted(_) if event.namespace.is_root() => {
                ("on_chain_start", graph, run(), json!({}))
            }
            EventKind::TaskStarted(started) => {
                let data = json!({ "input": self.input(&event.namespace, &started.task) });
                let id = task_uuid(&started.task);
                ("on_chain_start", started.node.to_string(), id, data)
            }
            EventKind::TaskFinished(finished) => {
                let data = json!({ "output": thread_info.result(&finished.writes) });
                let id = task_uuid(&finished.task);
                ("on_chain_end", finished.node.to_string(), id, data)
            }
            EventKind::Custom(custom) if !is_message_event(custom) => {
                let id = task_uuid(&custom.task);
                ("on_custom_event", custom.name.clone(), id, custom.data.clone())
            }
            EventKind::RunEnded(_) if event.namespace.is_root() => {
                let output = self
                    .checkpoints
                    .get(&event.namespace)
                    .map(|it| thread_info.values(&it.state()));
                ("on_chain_end", graph, run(), json!({ "output": output }))
            }
            _ => return,
        };
        let parents: Vec<String> = if id == run() { Vec::new() } else { vec![run()] };
        let data = json!({
            "event": what, "name": name, "run_id": id, "data": data, "tags": [],
            "metadata": self.context.metadata, "parent_ids": parents,
        });
        self.push(Mode::Events, event, data);
    }

    /// Adds a delta of a completion.
    pub(super) fn stream_event(&mut self, place: &TaskRef, chunk: impl FnOnce() -> Value) {
        if !self.has(Mode::Events) {
            return;
        }
        let data = json!({
            "event": "on_chat_model_stream", "name": place.node, "run_id": task_uuid(&place.task),
            "data": { "chunk": chunk() }, "tags": [], "metadata": self.message_metadata(place),
            "parent_ids": [self.context.run],
        });
        let id = EventId { number: 0, at_ms: 0 };
        let name = name_of(Mode::Events, &place.namespace);
        self.out.push(Frame { event: name, data, id });
    }
}
