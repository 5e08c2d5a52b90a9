//! Tool calls of models in the log, for both streams.
//!
//! The projection reads requests and outputs as JSON and does not decode them to types. Clients
//! therefore also see a part of an output that [`ToolOutput`](wattle_graph::tool::ToolOutput) does
//! not know.

use serde_json::{Value, json};
use wattle_graph::event::Called;

use crate::agent_server::message;

/// The request of a call, as the log contains it.
pub(super) struct ToolRequest<'r> {
    /// Id that the model gave the call.
    pub(super) id: &'r str,
    /// Visible name or full reference of the tool.
    tool: &'r str,
    /// The arguments; `None` if the request is too large for the log.
    pub(super) arguments: Option<&'r Value>,
}

/// Why a call failed.
pub(super) struct ToolError<'c> {
    /// Message for the model.
    pub(super) message: String,
    /// Code of the failure; `None` if the tool returned the error as its output.
    pub(super) code: Option<&'c str>,
}

impl<'r> ToolRequest<'r> {
    /// Reads a request. Returns `None` if no model requested the call.
    pub(super) fn read(request: &'r Value) -> Option<Self> {
        let text = |name: &str| request.get(name).and_then(Value::as_str);
        let id = text("call_id").filter(|id| !id.is_empty())?;
        Some(Self { id, tool: text("tool")?, arguments: request.get("arguments") })
    }

    /// Returns the bare name of the tool.
    pub(super) fn name(&self) -> &'r str {
        self.tool.rsplit('/').next().unwrap_or(self.tool)
    }

    /// Returns the output of the call as a message.
    pub(super) fn result<'c>(&self, called: &'c Called) -> Result<Value, ToolError<'c>> {
        match &called.result {
            Err(failure) => {
                let (message, code) = (failure.message.clone(), Some(failure.code.as_str()));
                Err(ToolError { message, code })
            }
            Ok(answer) if answer.get("is_error") == Some(&Value::Bool(true)) => {
                Err(ToolError { message: text(answer), code: None })
            }
            Ok(answer) => Ok(self.message(answer)),
        }
    }

    /// Converts a tool output to the message that the agent of `std` writes for it. The message
    /// gets its id only when the agent writes it.
    fn message(&self, answer: &Value) -> Value {
        let parts = answer.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let structured = answer.get("structured").filter(|data| !data.is_null());
        let content = match (parts, structured) {
            ([], Some(data)) => data.to_string().into(),
            (parts, _) if parts.iter().all(|part| part.get("text").is_some()) => {
                text(answer).into()
            }
            (parts, _) => json!(parts),
        };
        message::to_wire(&json!({
            "role": "tool",
            "name": self.name(),
            "tool_call_id": self.id,
            "content": content,
            "structured": structured,
            "status": "success",
        }))
    }
}

/// Returns the texts of an output or of a tool message, joined by line breaks.
pub(super) fn text(answer: &Value) -> String {
    match answer.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
