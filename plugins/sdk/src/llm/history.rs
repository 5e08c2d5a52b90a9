//! Histories: messages of a request that the host takes from the conversation of a node.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::llm::Request;
use crate::node::Conversation;

/// Extension field of a request that contains its history.
pub(crate) const HISTORY: &str = "history";

/// Messages of a request that the host takes from a conversation, for [`Request::history_with`].
///
/// ```
/// use wattle_plugin::llm::{History, Request};
/// use wattle_plugin::node::Conversation;
/// use wattle_plugin::prelude::*;
///
/// let conversation = Conversation { channel: "messages".into(), from: 40, length: 42 };
/// let now = json!({"role": "user", "content": "It is Monday."});
/// let request = Request::route("chat")
///     .system("Be brief.")
///     .history_with(History::of(&conversation).starting_at(20).append(now));
/// assert_eq!(request.extra["history"]["at"], 1);
/// assert_eq!(request.extra["history"]["from"], 20);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    channel: String,
    from: Start,
    to: Option<usize>,
    append: Vec<Value>,
    names: BTreeMap<String, String>,
}

/// The first message of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    Position(usize),
    After(String),
}

impl History {
    /// Creates a history with all messages of a conversation, including those that the input of the
    /// node does not have.
    pub fn of(conversation: &Conversation) -> Self {
        Self {
            channel: conversation.channel.clone(),
            from: Start::Position(0),
            to: None,
            append: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    /// Leaves out the messages before a position, from 0.
    pub fn starting_at(mut self, position: usize) -> Self {
        self.from = Start::Position(position);
        self
    }

    /// Leaves out the message with an id and all messages before it.
    pub fn after(mut self, id: impl Into<String>) -> Self {
        self.from = Start::After(id.into());
        self
    }

    /// Leaves out the messages from a position on.
    pub fn until(mut self, position: usize) -> Self {
        self.to = Some(position);
        self
    }

    /// Adds a message after the conversation, in the format of the reducer `messages`. A tool
    /// result follows its call, which can be in the conversation.
    pub fn append(mut self, message: impl Into<Value>) -> Self {
        self.append.push(message.into());
        self
    }

    /// Sets the names under which the model sees tools, by the names of the calls in the
    /// conversation. The host replaces characters that providers reject in all other names.
    pub fn names(mut self, names: BTreeMap<String, String>) -> Self {
        self.names = names;
        self
    }

    /// Returns the history in the format of the host, for a request with `at` messages before it.
    fn into_value(self, at: usize) -> Value {
        let from = match self.from {
            Start::Position(position) => json!(position),
            Start::After(id) => json!({ "after": id }),
        };
        let mut history = json!({ "channel": self.channel, "at": at, "from": from });
        if let Some(to) = self.to {
            history["to"] = json!(to);
        }
        if !self.append.is_empty() {
            history["append"] = Value::Array(self.append);
        }
        if !self.names.is_empty() {
            history["names"] = json!(self.names);
        }
        history
    }
}

impl Request {
    /// Adds all messages of the conversation of the node. The host adds them when it calls the
    /// model, so the request does not grow with the conversation.
    ///
    /// The history follows the messages that the request has so far. The field `messages` does not
    /// contain it. A request has at most one history: another one replaces it.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::testing::{self, FakeHost};
    ///
    /// const MESSAGES: ChannelRef = ChannelRef::channel("messages");
    /// const READS: Reads = Reads::channels(&[MESSAGES]).with_conversation(MESSAGES);
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Update {
    ///     messages: Value,
    /// }
    ///
    /// /// Answers the last message.
    /// #[node(reads = READS)]
    /// fn answer(context: &Context, _input: Value) -> Result<Update, Failure> {
    ///     let conversation = context.conversation()?;
    ///     let request = llm::Request::route("chat").system("Be brief.").history(&conversation);
    ///     Ok(Update { messages: request.complete()?.to_stored() })
    /// }
    ///
    /// # fn main() -> Result<(), Failure> {
    /// let host = FakeHost::new().llm(|_| Ok(Completion::of_text("hello")));
    /// let input = json!({"messages": [{"role": "user", "content": "hi"}]});
    /// let decision = host.run(|| testing::run_node::<answer>(&Context::default(), &input))?;
    /// assert_eq!(decision.update("messages").map(|it| &it["content"]), Some(&json!("hello")));
    /// let history = &host.llm_requests()[0].extra["history"];
    /// assert_eq!(history, &json!({"channel": "messages", "at": 1, "from": 0}));
    /// # Ok(())
    /// # }
    /// ```
    pub fn history(self, conversation: &Conversation) -> Self {
        self.history_with(History::of(conversation))
    }

    /// Like [`history`](Self::history), for a part of the conversation, or for one with further
    /// messages.
    pub fn history_with(self, history: History) -> Self {
        let history = history.into_value(self.messages.len());
        self.with_extra(HISTORY, history)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{History, Request};
    use crate::node::Conversation;

    #[test]
    fn a_history_has_the_format_of_the_host() {
        let talk = Conversation { channel: "talk".to_owned(), from: 5, length: 9 };
        let now = json!({"role": "user", "content": "now"});
        let names = [("mcp:a/b".to_owned(), "b".to_owned())].into();
        let request = Request::route("chat")
            .system("be brief")
            .history_with(History::of(&talk).until(7).append(now.clone()).names(names))
            .user("later");
        let history = json!({"channel": "talk", "at": 1, "from": 0, "to": 7, "append": [now],
            "names": {"mcp:a/b": "b"}});
        assert_eq!(request.extra["history"], history);
        assert_eq!(request.text(), "be brief\nlater");
        let request = request.history_with(History::of(&talk).after("m4"));
        let history = json!({"channel": "talk", "at": 2, "from": {"after": "m4"}});
        assert_eq!(request.extra["history"], history, "the last one counts");
    }
}
