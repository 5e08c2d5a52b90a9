//! The outcome of both nodes: messages for a channel whose name the graph file configures, and
//! further writes. The outcome types of the SDK have channels that are fixed at compile time.

use serde::Serialize;
use serde_json::{Value, json};
use wattle_plugin::node::{Decision, END, NodeOutput, Send, Update};
use wattle_plugin::{Failure, JsonText};

use crate::conversation::Stored;

/// The outcome of a node.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    decision: Decision,
}

impl Turn {
    /// Creates an outcome that writes messages to a channel.
    pub(crate) fn of(channel: &str, messages: &[Stored]) -> Result<Self, Failure> {
        let mut turn = Self::default();
        if !messages.is_empty() {
            turn.write(channel, serde_json::to_value(messages)?);
        }
        Ok(turn)
    }

    /// Adds a write.
    pub(crate) fn write(&mut self, channel: &str, value: Value) {
        self.update(Update { channel: channel.to_owned(), value, overwrite: false });
    }

    /// Adds a write of a tool.
    pub(crate) fn update(&mut self, update: Update) {
        self.decision.updates.push(update);
    }

    /// Removes the writes to a channel.
    pub(crate) fn forget(&mut self, channel: &str) {
        self.decision.updates.retain(|update| update.channel != channel);
    }

    /// Sends a task to a node instead of following the edges.
    pub(crate) fn send(&mut self, node: &str, input: &impl Serialize) -> Result<(), Failure> {
        let input = serde_json::to_value(input)?;
        let send = Send { node: node.to_owned(), input, extra: Default::default() };
        self.decision.sends.push(send);
        self.decision.goto = vec![END.to_owned()];
        Ok(())
    }
}

impl NodeOutput for Turn {
    fn schema() -> Value {
        json!({"type": "object"})
    }

    fn decide(self) -> Result<Decision<JsonText>, Failure> {
        Ok(self.decision.into())
    }
}
