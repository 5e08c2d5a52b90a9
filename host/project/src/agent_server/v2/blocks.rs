//! Messages as sequences of blocks: a block starts after the end of the previous block.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent_server::message_stream::{CompletionDelta, MessageChange, MessageChangeKind};

/// Message of the error that ends a discarded message.
const VOID: &str = "the completion failed or was restarted, so this message is discarded";

/// The incomplete messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    open: BTreeMap<String, PartialMessage>,
}

/// An incomplete message.
#[derive(Clone, Debug, Default)]
struct PartialMessage {
    /// Number of blocks that have ended.
    ended: u32,
    block: Option<Block>,
}

/// An open block.
#[derive(Clone, Debug)]
enum Block {
    Text(String),
    Reasoning(String),
    Call { index: u32, id: Option<String>, name: Option<String>, arguments: String },
}

impl Blocks {
    /// Returns the events of a change. A whole message that a node wrote has no events, since the
    /// state contains it.
    pub(super) fn take(&mut self, spoken: &MessageChange) -> Vec<Value> {
        let mut events = Vec::new();
        match &spoken.kind {
            MessageChangeKind::Delta(piece) => {
                let open = self.open.entry(spoken.id.clone()).or_insert_with(|| {
                    events.push(json!({ "event": "message-start", "role": "ai", "id": spoken.id }));
                    PartialMessage::default()
                });
                open.take(piece, &mut events);
            }
            MessageChangeKind::Done(finish) => {
                let Some(mut open) = self.open.remove(&spoken.id) else { return events };
                open.end_block(&mut events);
                let mut end = json!({ "event": "message-finish" });
                if let Some(usage) = finish.as_ref().and_then(|finish| finish.usage) {
                    end["usage"] = json!(usage);
                }
                events.push(end);
            }
            MessageChangeKind::Discarded => {
                let Some(mut open) = self.open.remove(&spoken.id) else { return events };
                open.end_block(&mut events);
                // Clients keep finished messages, so a discarded message ends with an error.
                events.push(json!({ "event": "error", "message": VOID, "code": "void" }));
            }
            MessageChangeKind::Whole(_) => {}
        }
        events
    }
}

/// Returns the events of the message of a tool. `ended` is the last event of the call. Returns
/// nothing if the call failed.
pub(super) fn of_tool(call: &str, ended: &Value) -> Vec<Value> {
    let Some(output) = ended.get("output") else { return Vec::new() };
    let said = match &output["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks.to_string(),
    };
    let mut events = vec![json!({
        "event": "message-start", "role": "tool", "id": format!("tool-{call}"),
        "tool_call_id": call,
    })];
    let mut message = PartialMessage::default();
    message.take(&CompletionDelta::Text(said), &mut events);
    message.end_block(&mut events);
    events.push(json!({ "event": "message-finish" }));
    events
}

impl PartialMessage {
    fn take(&mut self, piece: &CompletionDelta, events: &mut Vec<Value>) {
        if !self.block.as_ref().is_some_and(|block| block.goes_on_with(piece)) {
            self.end_block(events);
            let block = Block::new(piece);
            let index = self.ended;
            events.push(json!({
                "event": "content-block-start", "index": index, "content": block.show(),
            }));
            self.block = Some(block);
        }
        let Some(block) = &mut self.block else { return };
        if let Some(delta) = block.grow(piece) {
            let index = self.ended;
            events.push(json!({ "event": "content-block-delta", "index": index, "delta": delta }));
        }
    }

    fn end_block(&mut self, events: &mut Vec<Value>) {
        let Some(block) = self.block.take() else { return };
        let (index, content) = (self.ended, block.finish());
        events.push(json!({ "event": "content-block-finish", "index": index, "content": content }));
        self.ended += 1;
    }
}

impl Block {
    /// Creates the block that `piece` starts, without the content of `piece`.
    fn new(piece: &CompletionDelta) -> Self {
        match piece {
            CompletionDelta::Text(_) => Self::Text(String::new()),
            CompletionDelta::Reasoning(_) => Self::Reasoning(String::new()),
            CompletionDelta::ToolCall { index, id, name, .. } => Self::Call {
                index: *index,
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            },
        }
    }

    fn goes_on_with(&self, piece: &CompletionDelta) -> bool {
        match (self, piece) {
            (Self::Text(_), CompletionDelta::Text(_))
            | (Self::Reasoning(_), CompletionDelta::Reasoning(_)) => true,
            (Self::Call { index, .. }, CompletionDelta::ToolCall { index: other, .. }) => {
                index == other
            }
            _ => false,
        }
    }

    fn grow(&mut self, piece: &CompletionDelta) -> Option<Value> {
        match (&mut *self, piece) {
            (Self::Text(text), CompletionDelta::Text(more)) if !more.is_empty() => {
                text.push_str(more);
                Some(json!({ "type": "text-delta", "text": more }))
            }
            (Self::Reasoning(text), CompletionDelta::Reasoning(more)) if !more.is_empty() => {
                text.push_str(more);
                Some(json!({ "type": "reasoning-delta", "reasoning": more }))
            }
            (Self::Call { arguments, .. }, CompletionDelta::ToolCall { arguments: more, .. })
                if !more.is_empty() =>
            {
                arguments.push_str(more);
                Some(json!({ "type": "block-delta", "fields": self.show() }))
            }
            _ => None,
        }
    }

    /// Returns the block so far.
    fn show(&self) -> Value {
        match self {
            Self::Text(text) => json!({ "type": "text", "text": text }),
            Self::Reasoning(text) => json!({ "type": "reasoning", "reasoning": text }),
            Self::Call { id, name, arguments, .. } => {
                json!({ "type": "tool_call_chunk", "id": id, "name": name, "args": arguments })
            }
        }
    }

    /// Returns the complete block, with parsed arguments.
    fn finish(self) -> Value {
        let Self::Call { id, name, arguments, .. } = &self else { return self.show() };
        let text = if arguments.is_empty() { "{}" } else { arguments };
        match serde_json::from_str::<Value>(text) {
            Ok(args) => json!({ "type": "tool_call", "id": id, "name": name, "args": args }),
            Err(error) => json!({
                "type": "invalid_tool_call", "id": id, "name": name, "args": arguments,
                "error": format!("the arguments are not valid JSON: {error}"),
            }),
        }
    }
}
