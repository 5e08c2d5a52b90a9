//! Frames about messages, in both forms: as pairs of message and origin, and as whole messages that
//! grow.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wattle_graph::id::Namespace;

use super::V1;
use super::frame::{self, Frame};
use crate::wire::id::{EventId, namespace_text};
use crate::wire::request::Mode;
use crate::wire::talk::{Piece, Place, Said, Spoken, Usage};
use crate::wire::work::trigger;

/// What was said so far of messages that are not complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Speech {
    growing: BTreeMap<String, Growing>,
}

/// A message that grows.
#[derive(Clone, Debug, Default)]
struct Growing {
    text: String,
    reasoning: String,
    calls: BTreeMap<u32, Call>,
}

#[derive(Clone, Debug, Default)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl V1 {
    pub(super) fn say(&mut self, spoken: Spoken) {
        let Spoken { place, id, said } = spoken;
        let is_new = !self.speech.growing.contains_key(&id);
        match said {
            Said::Piece(piece) => {
                self.speech.growing.entry(id.clone()).or_default().take(&piece);
                self.pair(&place, || chunk(&id, Some(&piece), None, None));
                self.grow(&place, &id, is_new);
                self.stream_event(&place, || chunk(&id, Some(&piece), None, None));
            }
            Said::Done { usage, reason } => {
                self.pair(&place, || chunk(&id, None, usage, reason.as_deref()));
                self.speech.growing.remove(&id);
            }
            Said::Void => drop(self.speech.growing.remove(&id)),
            Said::Whole(message) => {
                self.pair(&place, || message.clone());
                if self.has(Mode::Messages) {
                    self.origin_of(&place, &id);
                    self.message("messages/complete", json!([message]));
                }
            }
        }
    }

    /// `messages`: a message or a piece of it, with where it comes from.
    fn pair(&mut self, place: &Place, message: impl FnOnce() -> Value) {
        if self.has(Mode::MessagesTuple) {
            let name = frame::name(Mode::MessagesTuple, &place.namespace);
            let data = json!([message(), self.origin(place)]);
            self.message(&name, data);
        }
    }

    /// `messages/partial`: all that there is of a message.
    fn grow(&mut self, place: &Place, id: &str, is_new: bool) {
        if !self.has(Mode::Messages) {
            return;
        }
        if is_new {
            self.origin_of(place, id);
        }
        let Some(growing) = self.speech.growing.get(id) else { return };
        let data = json!([growing.show(id)]);
        self.message("messages/partial", data);
    }

    fn origin_of(&mut self, place: &Place, id: &str) {
        let data = Map::from_iter([(id.to_owned(), json!({ "metadata": self.origin(place) }))]);
        self.message("messages/metadata", data.into());
    }

    fn message(&mut self, name: &str, data: Value) {
        let id = EventId { number: 0, at_ms: 0 };
        self.out.push(Frame { event: name.to_owned(), data, id });
    }

    /// Where a message comes from.
    pub(super) fn origin(&self, place: &Place) -> Value {
        let Place { namespace, task, node, step } = place;
        let inside = Namespace::of_task(namespace, node, task);
        let mut origin = self.context.metadata.clone();
        origin.extend([
            ("thread_id".to_owned(), json!(self.context.lens.thread)),
            ("langgraph_step".to_owned(), json!(step + 1)),
            ("langgraph_node".to_owned(), json!(node)),
            ("langgraph_triggers".to_owned(), json!([trigger(node.as_str())])),
            ("langgraph_path".to_owned(), json!(["__pregel_pull", node])),
            ("langgraph_checkpoint_ns".to_owned(), namespace_text(&inside).into()),
        ]);
        if !namespace.is_root() {
            origin.insert("checkpoint_ns".to_owned(), namespace_text(namespace).into());
        }
        Value::Object(origin)
    }
}

impl Growing {
    fn take(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) => self.text.push_str(text),
            Piece::Reasoning(text) => self.reasoning.push_str(text),
            Piece::Call { index, id, name, arguments } => {
                let call = self.calls.entry(*index).or_default();
                call.id = call.id.take().or_else(|| id.clone());
                call.name = call.name.take().or_else(|| name.clone());
                call.arguments.push_str(arguments);
            }
        }
    }

    fn show(&self, id: &str) -> Value {
        let calls: Vec<Value> = self.calls.values().filter_map(Call::show).collect();
        let mut message = message("ai", id, &self.text, &self.reasoning);
        message["tool_calls"] = calls.into();
        message
    }
}

impl Call {
    /// A request for a tool as far as it is: its arguments are empty until they can be read.
    fn show(&self) -> Option<Value> {
        let args: Value = serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}));
        let name = self.name.as_ref()?;
        Some(json!({ "name": name, "args": args, "id": self.id, "type": "tool_call" }))
    }
}

/// A piece of a message, which clients add to what they have.
fn chunk(id: &str, piece: Option<&Piece>, usage: Option<Usage>, reason: Option<&str>) -> Value {
    let (mut text, mut reasoning, mut calls) = ("", "", Vec::new());
    match piece {
        Some(Piece::Text(piece)) => text = piece,
        Some(Piece::Reasoning(piece)) => reasoning = piece,
        Some(Piece::Call { index, id, name, arguments }) => calls.push(json!({
            "name": name, "args": arguments, "id": id, "index": index, "type": "tool_call_chunk",
        })),
        None => {}
    }
    let mut chunk = message("AIMessageChunk", id, text, reasoning);
    if let Some(reason) = reason {
        chunk["response_metadata"] = json!({ "finish_reason": reason });
    }
    chunk["usage_metadata"] = json!(usage);
    chunk["tool_call_chunks"] = calls.into();
    chunk["chunk_position"] = if piece.is_none() { "last".into() } else { Value::Null };
    chunk
}

fn message(kind: &str, id: &str, text: &str, reasoning: &str) -> Value {
    let further = match reasoning {
        "" => json!({}),
        reasoning => json!({ "reasoning_content": reasoning }),
    };
    json!({
        "content": text,
        "additional_kwargs": further,
        "response_metadata": {},
        "type": kind,
        "name": null,
        "id": id,
        "tool_calls": [],
        "invalid_tool_calls": [],
        "usage_metadata": null,
    })
}
