//! What the gate of a guest that a client calls keeps for the client, in place of a task.
//!
//! The gates of the guest and of the tools that it calls share it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use wattle_graph::id::{ChannelName, InterruptId, TaskId};
use wattle_graph::plan::TaskInput;

use crate::gate::call_list::CallList;
use crate::gate::task_input::HistoryInput;
use crate::gate::unwind::Unwind;
use crate::hostcall::interrupt::InterruptRequest;

/// Maximum number of log messages that a client gets. A person reads them, and the operator's log
/// has all.
const LISTED_LOGS: usize = 1_000;

/// A call of a tool or a node by a client.
#[derive(Clone)]
pub(crate) struct ClientCall {
    /// The host calls of the guest and of its tools.
    pub(crate) calls: CallList,
    /// The node; `None` for a tool.
    pub(crate) node: Option<Arc<ClientNode>>,
}

impl ClientCall {
    /// Returns the kind of the guest, for messages.
    pub(crate) fn guest(&self) -> &'static str {
        if self.node.is_some() { "node" } else { "tool" }
    }
}

/// A node that a client calls outside of any run.
pub(crate) struct ClientNode {
    /// Id of the call in place of that of a task.
    task: TaskId,
    /// The input.
    pub(crate) input: HistoryInput,
    /// Channel with the conversation that the node declares.
    pub(crate) conversation: Option<ChannelName>,
    said: Mutex<Said>,
}

/// What the guest has said to people.
#[derive(Default)]
struct Said {
    questions: Vec<InterruptRequest>,
    logs: Vec<ListedLog>,
    omitted_logs: u64,
}

/// A log message of a node that a client calls, or of one of its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedLog {
    /// Level of the message, as the guest gave it.
    pub level: String,
    /// Text of the message.
    pub message: String,
    /// Fields of the message, an object; null without fields.
    pub fields: Value,
}

/// The log messages of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedLogs {
    /// The first messages, in order.
    pub messages: Vec<ListedLog>,
    /// Number of further messages.
    pub omitted: u64,
}

impl ClientNode {
    pub(crate) fn new(task: TaskId, input: TaskInput, conversation: Option<ChannelName>) -> Self {
        let input = HistoryInput::new(input);
        Self { task, input, conversation, said: Mutex::default() }
    }

    /// Locks what the guest has said. No code that can panic runs under this lock.
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a question for the client. Returns the unwind that ends the guest.
    pub(crate) fn raise(&self, question: InterruptRequest) -> Unwind {
        let mut said = self.said();
        let interrupt = InterruptId::derive(&self.task, &[], said.questions.len() as u32);
        said.questions.push(question);
        Unwind::Suspended(interrupt)
    }

    /// Keeps a log message for the client.
    pub(crate) fn log(&self, level: &str, message: String, fields: Value) {
        let mut said = self.said();
        if said.logs.len() >= LISTED_LOGS {
            said.omitted_logs += 1;
            return;
        }
        said.logs.push(ListedLog { level: level.to_owned(), message, fields });
    }

    /// Takes the questions, in the order in which they were raised, and the log messages.
    pub(crate) fn take_said(&self) -> (Vec<InterruptRequest>, ListedLogs) {
        let Said { questions, logs: messages, omitted_logs: omitted } =
            std::mem::take(&mut *self.said());
        (questions, ListedLogs { messages, omitted })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node() -> ClientNode {
        let task = TaskId::new("call").unwrap();
        ClientNode::new(task, TaskInput::Sent(Arc::new(json!({}))), None)
    }

    #[test]
    fn questions_have_ids_of_their_own() {
        let node = node();
        let question = |n: u32| InterruptRequest { payload: json!(n), response_schema: None };
        let (first, second) = (node.raise(question(1)), node.raise(question(2)));
        assert_ne!(first, second);
        assert_eq!(node.take_said().0, [question(1), question(2)]);
    }

    #[test]
    fn a_client_gets_the_first_log_messages() {
        let node = node();
        for number in 0..LISTED_LOGS + 2 {
            node.log("info", number.to_string(), Value::Null);
        }
        let (_, ListedLogs { messages, omitted }) = node.take_said();
        assert_eq!((messages.len(), omitted), (LISTED_LOGS, 2));
        assert_eq!((&*messages[0].level, &*messages[1].message), ("info", "1"));
    }
}
