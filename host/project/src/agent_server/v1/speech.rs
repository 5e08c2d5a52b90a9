//! The server-sent events about messages, in both forms: pairs of a message and its metadata, and
//! whole messages with the content so far.

use serde_json::{Map, Value, json};
use wattle_graph::event::Event;
use wattle_graph::id::Namespace;

use super::V1;
use super::frame;
use super::partial_message::{chunk, last_chunk};
use crate::agent_server::id::namespace_text;
use crate::agent_server::message_stream::{Finish, MessageChange, MessageChangeKind, TaskRef};
use crate::agent_server::mode::Mode;
use crate::agent_server::work::trigger;

impl V1 {
    pub(super) fn say(&mut self, event: &Event, spoken: MessageChange) {
        let MessageChange { task, id, kind } = spoken;
        let is_new = !self.partial.contains_key(&id);
        match kind {
            MessageChangeKind::Delta(piece) => {
                self.partial.entry(id.clone()).or_default().apply(&piece);
                self.add_message_with_metadata(&task, || chunk(&id, &piece));
                self.grow(&task, &id, is_new);
                self.model_streamed(&task, &id, || chunk(&id, &piece));
            }
            MessageChangeKind::Done(finish) => {
                if let Some(finish) = &finish {
                    self.add_message_with_metadata(&task, || last_chunk(&id, finish));
                    self.model_streamed(&task, &id, || last_chunk(&id, finish));
                }
                self.complete(event, &task, &id, finish.as_ref());
            }
            MessageChangeKind::Discarded => {
                self.partial.remove(&id);
                self.model_discarded(&id);
            }
            MessageChangeKind::Whole(message) => {
                self.add_message_with_metadata(&task, || message.clone());
                if self.has(Mode::Messages) {
                    self.add_message_metadata(&task, &id);
                    self.push_named("messages/complete", json!([message]));
                }
            }
        }
    }

    /// Adds an event `messages`: a message or a delta, with its metadata.
    fn add_message_with_metadata(&mut self, place: &TaskRef, message: impl FnOnce() -> Value) {
        if self.has(Mode::MessagesTuple) {
            let name = frame::name(Mode::MessagesTuple, &place.namespace);
            let data = json!([message(), self.message_metadata(place)]);
            self.push_named(&name, data);
        }
    }

    /// Adds an event `messages/partial`: the content so far of a message.
    fn grow(&mut self, place: &TaskRef, id: &str, is_new: bool) {
        if !self.has(Mode::Messages) {
            return;
        }
        if is_new {
            self.add_message_metadata(place, id);
        }
        let Some(growing) = self.partial.get(id) else { return };
        let data = json!([growing.to_json(id)]);
        self.push_named("messages/partial", data);
    }

    /// Adds an event `messages/complete`: a complete message. Adds nothing if the message has no
    /// delta.
    fn complete(&mut self, event: &Event, place: &TaskRef, id: &str, finish: Option<&Finish>) {
        let partial = self.partial.remove(id);
        if self.has(Mode::Messages)
            && let Some(partial) = &partial
        {
            self.push_named("messages/complete", json!([partial.complete(id, finish)]));
        }
        if partial.is_some() || finish.is_some() {
            let message = || partial.unwrap_or_default().complete(id, finish);
            self.model_ended(event, place, id, finish, message);
        }
    }

    /// Adds an event `messages/metadata`: the metadata of a message.
    fn add_message_metadata(&mut self, place: &TaskRef, id: &str) {
        let data =
            Map::from_iter([(id.to_owned(), json!({ "metadata": self.message_metadata(place) }))]);
        self.push_named("messages/metadata", data.into());
    }

    /// Returns the metadata of a message: the metadata of the run, and the task that wrote the
    /// message.
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
