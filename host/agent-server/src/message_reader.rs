//! Reads the messages of requests.

use serde_json::Value;
use uuid::Uuid;
use wattle_project::agent_server::message::ReadContext;
use wattle_run::json::bounded::JsonBudget;

/// Reads the messages of one request. The arguments of tool calls that a client sends as texts
/// share one budget; the budget of the body counts only their texts.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    budget: JsonBudget,
}

impl MessageReader {
    /// Calls a function that converts messages.
    pub(crate) fn read<T>(&self, convert: impl FnOnce(&mut ReadContext<'_>) -> T) -> T {
        let parse = |text: &str| self.budget.parse::<Value>(text).ok();
        convert(&mut ReadContext { new_id: &mut new_message_id, parse: &parse })
    }
}

/// Generates an id for a message without an id.
pub(crate) fn new_message_id() -> String {
    Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_project::agent_server::message::from_wire;

    use super::*;

    #[test]
    fn arguments_of_all_messages_share_a_budget() {
        let arguments = format!("[{}0]", "0,".repeat(500_000));
        let call = json!({ "name": "add", "arguments": arguments });
        let message = json!({ "type": "ai", "tool_calls": [call] });
        let reader = MessageReader::default();
        let read = || -> Value {
            let message = reader.read(|context| from_wire(&message, context)).unwrap();
            message["tool_calls"][0]["arguments"].clone()
        };
        assert_eq!(read().as_array().map(Vec::len), Some(500_001));
        assert_eq!(read(), json!(arguments), "it takes the budget twice");
        let short = json!({ "type": "ai", "tool_calls": [{ "name": "add", "arguments": "[1]" }] });
        let short = reader.read(|context| from_wire(&short, context)).unwrap();
        assert_eq!(short["tool_calls"][0]["arguments"], json!([1]));
    }
}
