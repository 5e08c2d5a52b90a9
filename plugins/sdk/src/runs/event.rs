//! Events of a thread as types.
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
use crate::llm::Completion;

/// An event of a thread, see [`events`](super::events).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Event {
    /// Sequence number in the log, from 1 without gaps.
    pub seq: u64,
    /// Time in milliseconds since 1970, from the clock of the host.
    pub at_ms: i64,
    /// Id of the run that the event belongs to.
    pub run: String,
    /// Namespace of the subgraph; empty for the root graph.
    #[serde(default)]
    pub namespace: String,
    /// Kind and content of the event.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Converts an event from JSON.
    ///
    /// # Errors
    ///
    /// `invalid` if the value is not an event.
    pub fn read(event: &Value) -> Result<Self, Failure> {
        json::from_value("event", event)
    }
}

/// The kind of an event, with its content.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run started, or continued after an answer or a restart of the host.
    RunStarted(RunStarted),
    /// A run ended or was interrupted.
    RunEnded(RunEnded),
    /// A task finished.
    TaskFinished(TaskFinished),
    /// A potentially slow host call started (model, HTTP, SQL, tool).
    CallStarted(CallStarted),
    /// Deltas of a completion arrived.
    Streamed(Streamed),
    /// A host call returned an output or failed.
    Called(Box<Called>),
    /// A node emitted a custom event.
    Custom(Custom),
    /// An event unknown to this SDK version.
    #[serde(other)]
    Other,
}

/// See [`EventKind::RunStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunStarted {
    /// Name of the graph.
    pub graph: String,
    /// `input`, `resume`, `recovery`, `retry` or `fork`.
    pub reason: String,
}

/// See [`EventKind::RunEnded`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunEnded {
    /// Run status: `completed`, `interrupted`, `failed` or `cancelled`.
    pub status: String,
    /// Failure of a failed run.
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// See [`EventKind::TaskFinished`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskFinished {
    /// Id of the task.
    pub task: String,
    /// Node of the task.
    pub node: String,
    /// Writes of the task, in order.
    pub writes: Vec<Write>,
}

/// A write to a channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Write {
    /// Name of the channel.
    pub channel: String,
    /// The written value.
    pub value: Value,
}

/// See [`EventKind::CallStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CallStarted {
    /// Id of the task.
    pub task: String,
    /// Scope of the call: empty for a call of the node itself, `[n]` for calls within the tool that
    /// the node called with its call number `n`.
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// Function that is called.
    #[serde(rename = "function")]
    pub kind: CallKind,
    /// Summary in one line; for a tool call, the name of the tool.
    pub summary: String,
}

/// See [`EventKind::Streamed`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Streamed {
    /// Id of the task.
    pub task: String,
    /// Node of the task.
    pub node: String,
    /// See [`CallStarted::scope`].
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the model call in its scope.
    pub call: u32,
    /// The deltas, in order.
    pub deltas: Vec<Delta>,
}

/// A delta of a completion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// Text that continues the text before.
    Text {
        /// The added text.
        text: String,
    },
    /// Reasoning that continues the reasoning before.
    Reasoning {
        /// The added text.
        text: String,
    },
    /// Discards the deltas of the call so far. The model writes the completion again.
    Restart,
    /// A delta unknown to this SDK version.
    #[serde(other)]
    Other,
}

/// See [`EventKind::Called`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Called {
    /// Id of the task.
    pub task: String,
    /// Node of the task.
    pub node: String,
    /// See [`CallStarted::scope`].
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// Function that was called.
    #[serde(rename = "function")]
    pub kind: CallKind,
    /// The request. If it is large, only its beginning. A model request with a long history has
    /// `history` in place of the messages that the host adds.
    pub request: Value,
    /// The output or the failure.
    pub result: Result<Value, Failure>,
    /// Duration in microseconds.
    pub duration_us: u64,
    /// Summary in one line; for a tool call, the name of the tool.
    #[serde(default)]
    pub summary: String,
}

impl Called {
    /// Returns the completion of a model call. Returns `None` for another call, for a call that
    /// failed, and for an output that is not the JSON of a completion.
    pub fn completion(&self) -> Option<Completion> {
        let output = self.result.as_ref().ok().filter(|_| self.kind.is_model())?;
        Completion::deserialize(output).ok()
    }
}

/// See [`EventKind::Custom`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Custom {
    /// Node that emitted the event.
    pub node: String,
    /// Name of the event.
    pub name: String,
    /// Data of the event.
    pub data: Value,
}

/// The host functions that the SDK distinguishes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
#[non_exhaustive]
pub enum CallKind {
    /// Calls a model.
    Complete,
    /// Calls a model whose completion the guest reads as a stream.
    Stream,
    /// Calls a tool.
    Tool,
    /// Another function, as interface and name.
    Other(String),
}

impl CallKind {
    /// Returns true for a model call.
    pub fn is_model(&self) -> bool {
        matches!(self, Self::Complete | Self::Stream)
    }

    /// Returns true for a tool call.
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
    use crate::llm::{Completion, FinishReason};
    use crate::message::Part;

    fn read(kind: &Value) -> EventKind {
        let mut event = json!({ "seq": 1, "at_ms": 2, "run": "r" });
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        Event::read(&event).unwrap().kind
    }

    #[test]
    fn call_kinds_are_distinguished() {
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
    fn results_of_calls_are_read() {
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

    fn completion(function: &str, result: &Value) -> Option<Completion> {
        let kind = read(&json!({
            "type": "called", "task": "t", "node": "n", "call": 3, "function": function,
            "request": { "route": "chat" }, "result": result, "duration_us": 7,
        }));
        let EventKind::Called(called) = kind else { panic!("{kind:?}") };
        called.completion()
    }

    #[test]
    fn completions_in_the_log_are_typed() {
        let call = json!({ "id": "c", "name": "add", "arguments": "{\"a\": " });
        let state = json!({ "type": "provider_state", "data": "x" });
        let down = json!({ "code": "unavailable", "message": "down", "retryable": true });
        let logged = json!({ "Ok": {
            "id": "run--1-0",
            "parts": [
                { "reasoning": "h" }, { "reasoning": "m" }, { "text": "s" }, { "text": "o" },
                { "tool_call": call }, { "other": state },
            ],
            "structured": { "n": 1 },
            "finish_reason": "tool_calls",
            "usage": {
                "input_tokens": 3, "output_tokens": 2, "cached_input_tokens": null,
                "reasoning_tokens": null,
            },
            "model": "small-2",
            "attempts": [
                { "provider": "p", "model": "large", "tries": 3, "error": down },
                { "provider": "p", "model": "small", "tries": 1 },
            ],
        } });
        for function in ["llm.complete", "llm.stream"] {
            let read = completion(function, &logged).unwrap();
            assert_eq!((read.id(), read.model.as_str()), (Some("run--1-0"), "small-2"));
            assert_eq!((read.reasoning(), read.text()), ("hm".to_owned(), "so".to_owned()));
            assert_eq!(read.tool_calls().next().unwrap().arguments, "{\"a\": ");
            assert_eq!(read.parts.last(), Some(&Part::Other(state.clone())));
            assert_eq!(read.structured, Some(json!({ "n": 1 })));
            assert_eq!(read.finish_reason, FinishReason::ToolCalls);
            assert_eq!((read.usage.input_tokens, read.usage.output_tokens), (Some(3), Some(2)));
            assert!(read.usage.reasoning_tokens.is_none() && read.usage.extra.is_empty());
            let tried = read.attempts().into_iter().map(|it| (it.tries, it.error.is_some()));
            assert_eq!(tried.collect::<Vec<_>>(), [(3, true), (1, false)]);
        }
        let withheld = json!({ "Ok": { "parts": [], "finish_reason": { "other": "spam" } } });
        let withheld = completion("llm.complete", &withheld).unwrap();
        assert_eq!(withheld.finish_reason, FinishReason::Other("spam".to_owned()));
    }

    #[test]
    fn only_successful_model_calls_have_a_completion() {
        let output = json!({ "Ok": { "parts": [{ "text": "hi" }] } });
        assert_eq!(completion("llm.complete", &output), Some(Completion::of_text("hi")));
        for (function, result) in [
            ("tools.call", output),
            ("llm.complete", json!({ "Err": { "code": "timeout", "message": "late" } })),
            ("llm.complete", json!({ "Ok": { "parts": "hi" } })),
            ("llm.complete", json!({ "Ok": null })),
        ] {
            assert_eq!(completion(function, &result), None, "{result}");
        }
    }

    #[test]
    fn unknown_events_and_deltas_are_read() {
        assert_eq!(read(&json!({ "type": "progress", "done": 1 })), EventKind::Other);
        let pieces = json!([{ "kind": "text", "text": "a" }, { "kind": "tool_call", "index": 0 }]);
        let kind = read(&json!({
            "type": "streamed", "task": "t", "node": "n", "call": 0, "deltas": pieces,
        }));
        let EventKind::Streamed(streamed) = kind else { panic!("{kind:?}") };
        assert_eq!(streamed.deltas, [Delta::Text { text: "a".to_owned() }, Delta::Other]);
    }

    #[test]
    fn invalid_events_are_rejected_by_field() {
        let refused =
            Event::read(&json!({ "seq": 1, "at_ms": 2, "type": "progress" })).unwrap_err();
        assert_eq!(refused.code, "invalid");
        assert!(refused.message.contains("event") && refused.message.contains("run"), "{refused}");
    }
}
