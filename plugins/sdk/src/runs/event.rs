//! Events of a thread's log as types.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::runs::{Event, EventKind};
//!
//! let event = Event::read(&json!({
//!     "seq": 4, "at_ms": 1_700_000_000_000_i64, "run": "r", "type": "call_started",
//!     "task": "t", "call": 0, "function": "tools.call", "summary": "asset/lookup",
//! }))?;
//! let EventKind::CallStarted(call) = &event.kind else { unreachable!() };
//! assert!(call.kind.is_tool());
//! assert_eq!(call.summary, "asset/lookup");
//! # Ok::<_, wattle_plugin::Failure>(())
//! ```

use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;

/// One event of a thread's log, see [`events`](super::events).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Event {
    /// Position in the log: 1, 2, 3 and so on without gaps.
    pub seq: u64,
    /// Milliseconds since 1970, from the host's clock.
    pub at_ms: i64,
    /// The run that the event belongs to.
    pub run: String,
    /// The subgraph; empty for the thread's own graph.
    #[serde(default)]
    pub namespace: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Reads an event.
    ///
    /// # Errors
    ///
    /// `invalid`: the document is no event of a log.
    pub fn read(event: &Value) -> Result<Self, Failure> {
        json::from_value("event", event)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began, or went on after an answer or a restart.
    RunStarted(RunStarted),
    /// A run ended or waits for answers.
    RunEnded(RunEnded),
    /// A task ended well.
    TaskFinished(TaskFinished),
    /// A slow host call began (model, HTTP, SQL, tool).
    CallStarted(CallStarted),
    /// Pieces of a model's answer arrived.
    Streamed(Streamed),
    /// A host call was answered.
    Called(Box<Called>),
    /// A node emitted an event.
    Custom(Custom),
    /// An event that has no type here.
    #[serde(other)]
    Other,
}

/// See [`EventKind::RunStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunStarted {
    /// The graph.
    pub graph: String,
    /// `input`, `resume`, `recovery`, `retry` or `fork`.
    pub reason: String,
}

/// See [`EventKind::RunEnded`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunEnded {
    /// `completed`, `interrupted`, `failed` or `cancelled`.
    pub status: String,
    /// Why, if the run failed.
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// See [`EventKind::TaskFinished`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskFinished {
    /// The task.
    pub task: String,
    /// Its node.
    pub node: String,
    /// Its writes, in order.
    pub writes: Vec<Write>,
}

/// A write to a channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Write {
    /// The channel.
    pub channel: String,
    /// The value.
    pub value: Value,
}

/// See [`EventKind::CallStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CallStarted {
    /// The task.
    pub task: String,
    /// The calls of the task that this call is inside of: empty for a call of the node itself, `[n]`
    /// for a call of the tool that the node called in its call `n`.
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// What is called.
    #[serde(rename = "function")]
    pub kind: CallKind,
    /// One line for people; of a call of a tool, the name of the tool.
    pub summary: String,
}

/// See [`EventKind::Streamed`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Streamed {
    /// The task.
    pub task: String,
    /// Its node.
    pub node: String,
    /// See [`CallStarted::scope`].
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the call that is answered.
    pub call: u32,
    /// The pieces, in order.
    pub deltas: Vec<Delta>,
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// Text that goes on from the text before.
    Text {
        /// The piece.
        text: String,
    },
    /// Reasoning that goes on from the reasoning before.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// The pieces of this call so far are void: the model begins its answer again.
    Restart,
    /// A piece that has no type here.
    #[serde(other)]
    Other,
}

/// See [`EventKind::Called`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Called {
    /// The task.
    pub task: String,
    /// Its node.
    pub node: String,
    /// See [`CallStarted::scope`].
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// What was called.
    #[serde(rename = "function")]
    pub kind: CallKind,
    /// The request, or its head if it is large.
    pub request: Value,
    /// The answer, or why there was none.
    pub result: Result<Value, Failure>,
    /// How long the call took.
    pub duration_us: u64,
    /// One line for people; of a call of a tool, the name of the tool.
    #[serde(default)]
    pub summary: String,
}

/// See [`EventKind::Custom`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Custom {
    /// The node.
    pub node: String,
    /// The event's name.
    pub name: String,
    /// What it carries.
    pub data: Value,
}

/// The host functions that guests tell apart.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
#[non_exhaustive]
pub enum CallKind {
    /// Asks a model for an answer.
    Complete,
    /// Asks a model for an answer that the guest reads piece by piece.
    Stream,
    /// Calls a tool.
    Tool,
    /// Another function: its interface and name.
    Other(String),
}

impl CallKind {
    /// Whether a model answers.
    pub fn is_model(&self) -> bool {
        matches!(self, Self::Complete | Self::Stream)
    }

    /// Whether a tool answers.
    pub fn is_tool(&self) -> bool {
        *self == Self::Tool
    }
}

impl From<String> for CallKind {
    fn from(function: String) -> Self {
        match function.as_str() {
            "llm.complete" => Self::Complete,
            "llm.stream" => Self::Stream,
            "tools.call" => Self::Tool,
            _ => Self::Other(function),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CallKind, Delta, Event, EventKind};

    fn read(kind: &Value) -> EventKind {
        let mut event = json!({ "seq": 1, "at_ms": 2, "run": "r" });
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        Event::read(&event).unwrap().kind
    }

    #[test]
    fn calls_say_who_answers() {
        for (function, is_model, is_tool) in [
            ("llm.complete", true, false),
            ("llm.stream", true, false),
            ("llm.stream.next", false, false),
            ("tools.call", false, true),
            ("http.send", false, false),
        ] {
            let kind = CallKind::from(function.to_owned());
            assert_eq!((kind.is_model(), kind.is_tool()), (is_model, is_tool), "{function}");
        }
        assert_eq!(CallKind::from("sql.query".to_owned()), CallKind::Other("sql.query".to_owned()));
    }

    #[test]
    fn an_answer_or_a_failure_is_read_from_a_call() {
        let called = |result: Value| {
            let kind = read(&json!({
                "type": "called", "task": "t", "node": "n", "call": 3, "function": "llm.complete",
                "digest": "d", "request": { "route": "chat" }, "result": result, "started_ms": 1,
                "duration_us": 7, "batch": 3,
            }));
            match kind {
                EventKind::Called(called) => called.result,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(called(json!({ "Ok": { "parts": [] } })), Ok(json!({ "parts": [] })));
        let failure = called(json!({ "Err": { "code": "timeout", "message": "late" } }));
        assert_eq!(failure.unwrap_err().code, "timeout");
    }

    #[test]
    fn an_unknown_event_and_an_unknown_piece_are_read() {
        assert_eq!(read(&json!({ "type": "progress", "done": 1 })), EventKind::Other);
        let pieces = json!([{ "kind": "text", "text": "a" }, { "kind": "tool_call", "index": 0 }]);
        let kind = read(&json!({
            "type": "streamed", "task": "t", "node": "n", "call": 0, "deltas": pieces,
        }));
        let EventKind::Streamed(streamed) = kind else { panic!("{kind:?}") };
        assert_eq!(streamed.deltas, [Delta::Text { text: "a".to_owned() }, Delta::Other]);
    }

    #[test]
    fn a_document_that_is_no_event_is_refused_by_its_field() {
        let refused =
            Event::read(&json!({ "seq": 1, "at_ms": 2, "type": "progress" })).unwrap_err();
        assert_eq!(refused.code, "invalid");
        assert!(refused.message.contains("event") && refused.message.contains("run"), "{refused}");
    }
}
