//! The server-sent events about messages, in both forms: pairs of a message and its metadata, and
//! whole messages with the content so far.

use serde_json::{Map, Value, json};
use wattle_graph::id::Namespace;

use super::V1;
use super::frame::{self, Frame};
use super::partial_message::{chunk, last_chunk};
use crate::agent_server::id::{EventId, namespace_text};
use crate::agent_server::message_stream::{Finish, MessageChange, MessageChangeKind, TaskRef};
use crate::agent_server::mode::Mode;
use crate::agent_server::work::trigger;

impl V1 {
    pub(super) fn say(&mut self, spoken: MessageChange) {
        let MessageChange { task, id, kind } = spoken;
        let is_new = !self.partial.contains_key(&id);
        match kind {
            MessageChangeKind::Delta(piece) => {
                self.partial.entry(id.clone()).or_default().apply(&piece);
                self.add_message_with_metadata(&task, || chunk(&id, &piece));
                self.grow(&task, &id, is_new);
                self.stream_event(&task, || chunk(&id, &piece));
            }
            MessageChangeKind::Done(finish) => {
                if let Some(finish) = &finish {
                    self.add_message_with_metadata(&task, || last_chunk(&id, finish));
                }
                self.complete(&id, finish.as_ref());
            }
            MessageChangeKind::Discarded => drop(self.partial.remove(&id)),
            MessageChangeKind::Whole(message) => {
                self.add_message_with_metadata(&task, || message.clone());
                if self.has(Mode::Messages) {
                    self.add_message_metadata(&task, &id);
                    self.message("messages/complete", json!([message]));
                }
            }
        }
    }

    /// Adds `messages`: a message or a delta, with its metadata.
    fn add_message_with_metadata(&mut self, place: &TaskRef, message: impl FnOnce() -> Value) {
        if self.has(Mode::MessagesTuple) {
            let name = frame::name(Mode::MessagesTuple, &place.namespace);
            let data = json!([message(), self.message_metadata(place)]);
            self.message(&name, data);
        }
    }

    /// Adds `messages/partial`: the content so far of a message.
    fn grow(&mut self, place: &TaskRef, id: &str, is_new: bool) {
        if !self.has(Mode::Messages) {
            return;
        }
        if is_new {
            self.add_message_metadata(place, id);
        }
        let Some(growing) = self.partial.get(id) else { return };
        let data = json!([growing.to_json(id)]);
        self.message("messages/partial", data);
    }

    /// Adds `messages/complete`: a complete message.
    fn complete(&mut self, id: &str, finish: Option<&Finish>) {
        let Some(message) = self.partial.remove(id) else { return };
        if self.has(Mode::Messages) {
            self.message("messages/complete", json!([message.complete(id, finish)]));
        }
    }

    /// Adds `messages/metadata`: the metadata of a message.
    fn add_message_metadata(&mut self, place: &TaskRef, id: &str) {
        let data =
            Map::from_iter([(id.to_owned(), json!({ "metadata": self.message_metadata(place) }))]);
        self.message("messages/metadata", data.into());
    }

    fn message(&mut self, name: &str, data: Value) {
        let id = EventId { number: 0, at_ms: 0 };
        self.out.push(Frame { event: name.to_owned(), data, id });
    }

    /// Returns the metadata of a message: that of the run, and the task that the message is from.
    pub(super) fn message_metadata(&self, place: &TaskRef) -> Value {
        let TaskRef { namespace, task, node, step } = place;
        let inside = Namespace::for_task(namespace, node, task);
        let mut metadata = self.context.metadata.clone();
        metadata.extend([
            ("thread_id".to_owned(), json!(self.context.thread_info.thread)),
            ("langgraph_step".to_owned(), json!(step + 1)),
            ("langgraph_node".to_owned(), json!(node)),
            ("langgraph_triggers".to_owned(), json!([trigger(node.as_str())])),
            ("langgraph_path".to_owned(), json!(["__pregel_pull", node])),
            ("langgraph_checkpoint_ns".to_owned(), namespace_text(&inside).into()),
        ]);
        if !namespace.is_root() {
            metadata.insert("checkpoint_ns".to_owned(), namespace_text(namespace).into());
        }
        Value::Object(metadata)
    }
}
