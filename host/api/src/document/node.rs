//! JSON bodies of the endpoints that call one node.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::failure::Failure;
use wattle_run::engine::call_node::{NodeCallEnd, NodeCallResult};
use wattle_run::gate::client_call::ListedLog;
use wattle_run::hostcall::interrupt::InterruptRequest;

use crate::document::run::FailureDocument;
use crate::document::tool::{ListedCallDocument, micros, visible};

/// Request to call a node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallNodeDocument {
    /// Input of the node, in place of the state: values of channels by name.
    pub input: Value,
    /// Configuration of the node, as `with` of a graph has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// Context of the node, as that of a run.
    #[serde(default)]
    pub context: Value,
    /// Tenant on whose behalf the node is called; operator only. By default, it is the tenant of
    /// the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// The end of a node call: an outcome, interrupts, or a failure.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeCallDocument {
    /// Outcome of the node, with `writes`, `goto`, `sends` and `for_parent`, as the event of a task
    /// that finished has it; absent if the node did not return one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// Interrupts that ended the call. They cannot be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<RaisedInterruptDocument>,
    /// Failure of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Duration of the call in microseconds.
    pub duration_us: u64,
    /// Host calls of the node and of the tools that it called, in the order in which they began.
    pub calls: Vec<ListedCallDocument>,
    /// Number of further host calls.
    pub omitted_calls: u64,
    /// Log messages of the node and of the tools that it called.
    pub logs: Vec<ListedLogDocument>,
    /// Number of further log messages.
    pub omitted_logs: u64,
}

/// An interrupt of a node that a client called.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RaisedInterruptDocument {
    /// Payload of the interrupt, such as a question to show to a person.
    pub payload: Value,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
}

/// A log message of a node that a client called.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListedLogDocument {
    /// Level of the message, such as `info`.
    pub level: String,
    /// Text of the message.
    pub message: String,
    /// Fields of the message by name; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
}

impl NodeCallDocument {
    /// Describes the end of a node call. Only the operator sees the lines of the configuration that
    /// would allow denied calls.
    ///
    /// # Errors
    ///
    /// `internal` if the outcome cannot be serialized.
    pub fn new(end: NodeCallEnd, is_operator: bool) -> Result<Self, Failure> {
        let NodeCallEnd { result, logs, duration, calls, omitted_calls } = end;
        let (outcome, interrupts, failure) = match result {
            NodeCallResult::Finished(outcome) => {
                let outcome = serde_json::to_value(outcome).map_err(|error| {
                    Failure::internal(format!("cannot serialize the node's outcome: {error}"))
                })?;
                (Some(outcome), Vec::new(), None)
            }
            NodeCallResult::Interrupted(questions) => {
                (None, questions.into_iter().map(Into::into).collect(), None)
            }
            NodeCallResult::Failed(failure) => {
                (None, Vec::new(), Some(visible(failure, is_operator)))
            }
        };
        let calls = calls.into_iter().map(|call| ListedCallDocument::new(call, is_operator));
        Ok(Self {
            outcome,
            interrupts,
            failure,
            duration_us: micros(duration),
            calls: calls.collect(),
            omitted_calls,
            logs: logs.messages.into_iter().map(Into::into).collect(),
            omitted_logs: logs.omitted,
        })
    }
}

impl From<InterruptRequest> for RaisedInterruptDocument {
    fn from(InterruptRequest { payload, response_schema }: InterruptRequest) -> Self {
        Self { payload, response_schema }
    }
}

impl From<ListedLog> for ListedLogDocument {
    fn from(ListedLog { level, message, fields }: ListedLog) -> Self {
        Self { level, message, fields: Some(fields).filter(|fields| !fields.is_null()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use wattle_graph::event::Write;
    use wattle_graph::failure::code;
    use wattle_graph::id::ChannelName;
    use wattle_run::engine::call_node::CalledNodeOutcome;
    use wattle_run::gate::client_call::ListedLogs;

    use super::*;

    fn shown(result: NodeCallResult, is_operator: bool) -> Value {
        let log = |fields| ListedLog { level: "info".into(), message: "m".into(), fields };
        let messages = vec![log(json!({ "n": 1 })), log(Value::Null)];
        let end = NodeCallEnd {
            result,
            logs: ListedLogs { messages, omitted: 3 },
            duration: Duration::from_micros(5),
            calls: Vec::new(),
            omitted_calls: 0,
        };
        serde_json::to_value(NodeCallDocument::new(end, is_operator).unwrap()).unwrap()
    }

    #[test]
    fn an_outcome_has_the_form_of_a_finished_task() {
        let channel = ChannelName::new("n").unwrap();
        let writes = vec![Write { channel, value: json!(1), overwrite: false }];
        let (goto, sends) = (Some(Vec::new()), Vec::new());
        let outcome = CalledNodeOutcome { writes, goto, sends, for_parent: false };
        let shown = shown(NodeCallResult::Finished(outcome), true);
        let outcome = json!({ "writes": [{ "channel": "n", "value": 1 }], "goto": [] });
        let logs = json!([
            { "level": "info", "message": "m", "fields": { "n": 1 } },
            { "level": "info", "message": "m" },
        ]);
        let expected = json!({
            "outcome": outcome, "duration_us": 5, "calls": [], "omitted_calls": 0, "logs": logs,
            "omitted_logs": 3,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn interrupts_and_failures_take_the_place_of_an_outcome() {
        let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
        let interrupted = shown(NodeCallResult::Interrupted(vec![question]), true);
        assert_eq!(interrupted["interrupts"], json!([{ "payload": "sure?" }]));
        let denied = || NodeCallResult::Failed(Failure::new(code::DENIED, "add it to [grants.p]"));
        assert_eq!(shown(denied(), true)["failure"]["message"], "add it to [grants.p]");
        let hidden = shown(denied(), false);
        assert_eq!(hidden["failure"]["code"], "denied");
        assert!(!hidden.to_string().contains("[grants.p]"), "{hidden}");
        for document in [&interrupted, &hidden] {
            assert_eq!(document.get("outcome"), None, "{document}");
        }
    }
}
