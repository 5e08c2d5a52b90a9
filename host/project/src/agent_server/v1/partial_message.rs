//! Incomplete messages, and deltas in the form that clients append to a message.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent_server::message_stream::{CompletionDelta, Finish};

/// The content so far of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialMessage {
    text: String,
    reasoning: String,
    calls: BTreeMap<u32, PartialToolCall>,
}

#[derive(Clone, Debug, Default)]
struct PartialToolCall {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl PartialMessage {
    pub(super) fn apply(&mut self, piece: &CompletionDelta) {
        match piece {
            CompletionDelta::Text(text) => self.text.push_str(text),
            CompletionDelta::Reasoning(text) => self.reasoning.push_str(text),
            CompletionDelta::ToolCall { index, id, name, arguments } => {
                let call = self.calls.entry(*index).or_default();
                call.id = call.id.take().or_else(|| id.clone());
                call.name = call.name.take().or_else(|| name.clone());
                call.arguments.push_str(arguments);
            }
        }
    }

    pub(super) fn to_json(&self, id: &str) -> Value {
        let calls: Vec<Value> = self.calls.values().filter_map(PartialToolCall::to_json).collect();
        let mut message = message("ai", id, &self.text, &self.reasoning);
        message["tool_calls"] = calls.into();
        message
    }

    /// Returns the message with all content. `finish` is `None` for a message that a node streams.
    pub(super) fn complete(&self, id: &str, finish: Option<&Finish>) -> Value {
        let mut message = self.to_json(id);
        if let Some(finish) = finish {
            set_finish(&mut message, finish);
        }
        message
    }
}

impl PartialToolCall {
    /// Returns the tool call so far. The arguments are empty until their text is valid JSON.
    fn to_json(&self) -> Option<Value> {
        let args: Value = serde_json::from_str(&self.arguments).unwrap_or_else(|_| json!({}));
        let name = self.name.as_ref()?;
        Some(json!({ "name": name, "args": args, "id": self.id, "type": "tool_call" }))
    }
}

/// Returns a delta, which clients append to the message.
pub(super) fn chunk(id: &str, piece: &CompletionDelta) -> Value {
    let (mut text, mut reasoning, mut calls) = ("", "", Vec::new());
    match piece {
        CompletionDelta::Text(piece) => text = piece,
        CompletionDelta::Reasoning(piece) => reasoning = piece,
        CompletionDelta::ToolCall { index, id, name, arguments } => calls.push(json!({
            "name": name, "args": arguments, "id": id, "index": index, "type": "tool_call_chunk",
        })),
    }
    let mut chunk = message("AIMessageChunk", id, text, reasoning);
    chunk["tool_call_chunks"] = calls.into();
    chunk["chunk_position"] = Value::Null;
    chunk
}

/// Returns the last delta of a completion, which has no content.
pub(super) fn last_chunk(id: &str, finish: &Finish) -> Value {
    let mut chunk = message("AIMessageChunk", id, "", "");
    set_finish(&mut chunk, finish);
    chunk["tool_call_chunks"] = json!([]);
    chunk["chunk_position"] = "last".into();
    chunk
}

fn set_finish(message: &mut Value, finish: &Finish) {
    let Finish { usage, reason, model, .. } = finish;
    message["response_metadata"] = json!({ "finish_reason": reason, "model_name": model });
    message["usage_metadata"] = json!(usage);
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
