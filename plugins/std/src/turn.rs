//! What both nodes return: messages for a channel whose name a graph file decides, and further
//! writes. The SDK's outcomes have channels fixed by a type.

use serde::Serialize;
use serde_json::{Value, json};
use wattle_plugin::Failure;
use wattle_plugin::node::{Decision, END, NodeOutput, Send, Update};

use crate::conversation::Stored;

/// What a node decided.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    decision: Decision,
}

impl Turn {
    /// Messages for the conversation.
    pub(crate) fn of(channel: &str, messages: &[Stored]) -> Result<Self, Failure> {
        let mut turn = Self::default();
        if !messages.is_empty() {
            turn.write(channel, serde_json::to_value(messages)?);
        }
        Ok(turn)
    }

    /// One more write.
    pub(crate) fn write(&mut self, channel: &str, value: Value) {
        self.update(Update { channel: channel.to_owned(), value, overwrite: false });
    }

    /// One more write, as a tool wants it.
    pub(crate) fn update(&mut self, update: Update) {
        self.decision.updates.push(update);
    }

    /// Takes back what was written to a channel.
    pub(crate) fn forget(&mut self, channel: &str) {
        self.decision.updates.retain(|update| update.channel != channel);
    }

    /// Runs a node next with an input of its own, and no other that edges lead to.
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

    fn decide(self) -> Result<Decision, Failure> {
        Ok(self.decision)
    }
}
