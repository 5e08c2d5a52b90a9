//! JSON bodies of pending calls and of decisions about them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::event::Decision;
use wattle_run::engine::settle::PendingCall;

/// A host call that was started and has no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PendingCallDocument {
    /// Run that started the call.
    pub run: String,
    /// Sequence number of the event with the start of the call.
    pub seq: u64,
    /// Task that made the call.
    pub task: String,
    /// Node of the task.
    pub node: String,
    /// Numbers of the enclosing tool calls; empty for a call of the node itself.
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// Description of the call in one line.
    pub summary: String,
    /// Start of the call, in milliseconds since 1970.
    pub at_ms: i64,
    /// The request of a tool call, or its beginning if the request is large; absent for other
    /// calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The decision about the call; absent if the call was not settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionDocument>,
}

/// The decision about a call in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DecisionDocument {
    /// The call is executed again.
    Retry,
    /// The call took effect and returned this output.
    Answer {
        /// Output of the call.
        answer: Value,
    },
    /// The call counts as failed.
    Fail,
}

impl From<PendingCall> for PendingCallDocument {
    fn from(call: PendingCall) -> Self {
        Self {
            run: call.run.into(),
            seq: call.seq,
            task: call.task.into(),
            node: call.node.into(),
            scope: call.scope,
            call: call.call,
            function: call.function,
            summary: call.summary,
            at_ms: call.at_ms,
            request: call.request,
            decision: call.decision.map(Into::into),
        }
    }
}

impl From<Decision> for DecisionDocument {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Retry => Self::Retry,
            Decision::Answer { answer } => Self::Answer { answer },
            Decision::Fail => Self::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The command line deserializes the document as a [`PendingCall`].
    #[test]
    fn pending_call_document_serializes_like_a_pending_call_of_the_engine() {
        let mut call = json!({ "run": "r", "seq": 4, "task": "t", "node": "n", "scope": [1],
            "call": 2, "function": "tools.call", "summary": "find", "at_ms": 5 });
        let other: PendingCall = serde_json::from_value(call.clone()).unwrap();
        assert_eq!(json!(PendingCallDocument::from(other)), call);
        call["request"] = json!({ "tool": "find" });
        let read: PendingCall = serde_json::from_value(call.clone()).unwrap();
        assert_eq!(json!(PendingCallDocument::from(read)), call);
        for decision in [
            json!({ "kind": "retry" }),
            json!({ "kind": "answer", "answer": null }),
            json!({ "kind": "fail" }),
        ] {
            call["decision"] = decision;
            let read: PendingCall = serde_json::from_value(call.clone()).unwrap();
            assert_eq!(json!(PendingCallDocument::from(read)), call);
        }
    }
}
