//! The conversation that a node continues.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::json;
use crate::node::Context;

/// Key of [`Context::extra`] that contains the conversation.
const CONVERSATION: &str = "conversation";

/// The conversation of a node: a list of messages in a channel.
///
/// The input of the node has only the messages of the current turn: those from the last user
/// message on, or from an earlier message with a tool call that has no result. A request gives all
/// of them to a model with [`Request::history`](crate::llm::Request::history).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Name of the channel, which is also the name of the field of the input.
    pub channel: String,
    /// Position of the first message that the input has.
    pub from: usize,
    /// Number of all messages.
    pub length: usize,
}

impl Context {
    /// Returns the conversation that the node declares with
    /// [`Reads::with_conversation`](crate::node::Reads::with_conversation). Without a list in the
    /// channel, or without the channel in the graph, the conversation has no messages.
    ///
    /// # Errors
    ///
    /// `unsupported` if the node declares no conversation, or if the host is too old for histories.
    pub fn conversation(&self) -> Result<Conversation, Failure> {
        let conversation = self.extra.get(CONVERSATION).ok_or_else(|| {
            Failure::unsupported(format!(
                "node `{}` got no conversation from the host: the version of Wattle is too old for \
                 the plugin, or the node declares no conversation; update Wattle, or declare it in \
                 `reads`",
                self.node
            ))
        })?;
        json::from_value("the conversation in the context", conversation)
    }

    /// Sets the conversation of the node, for tests of a later turn.
    /// [`testing::run_node`](crate::testing::run_node) sets it for an input with the whole
    /// conversation.
    pub fn with_conversation(mut self, conversation: Conversation) -> Self {
        self.extra.insert(CONVERSATION.to_owned(), json!(conversation));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Conversation};
    use crate::failure::code;

    #[test]
    fn the_conversation_is_in_the_context() {
        let conversation = Conversation { channel: "talk".to_owned(), from: 2, length: 7 };
        let context = Context::default().with_conversation(conversation.clone());
        assert_eq!(context.conversation(), Ok(conversation));
    }

    #[test]
    fn a_context_without_a_conversation_names_the_causes() {
        let context = Context { node: "agent".to_owned(), ..Context::default() };
        let failure = context.conversation().unwrap_err();
        assert_eq!(failure.code, code::UNSUPPORTED);
        let causes = ["`agent`", "update Wattle", "`reads`"];
        assert!(causes.iter().all(|it| failure.message.contains(it)), "{failure}");
    }
}
