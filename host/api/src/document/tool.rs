//! JSON bodies of the endpoints that list tools and call one.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_run::engine::call_once::ToolCallEnd;
use wattle_run::gate::call_list::ListedCall;
use wattle_run::ports::sandbox::ToolInfo;

use crate::document::run::FailureDocument;

/// A tool of a plugin of an app.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolDocument {
    /// Full reference of the tool, such as `date/parse`.
    pub tool: String,
    /// Plugin of the tool.
    pub plugin: String,
    /// Name of the tool in its plugin.
    pub name: String,
    /// Description of the tool, for models.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// True if the tool also accepts an input that violates the schema.
    pub accepts_invalid: bool,
    /// True if the tool declares that it changes nothing.
    pub read_only: bool,
    /// True if the tool declares that a repeated call has no further effect.
    pub idempotent: bool,
}

impl ToolDocument {
    /// Describes a tool of a plugin.
    pub fn new(plugin: &PluginName, tool: &ToolInfo) -> Self {
        Self {
            tool: format!("{plugin}/{}", tool.name),
            plugin: plugin.to_string(),
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.arguments_schema.clone(),
            accepts_invalid: tool.accepts_invalid,
            read_only: tool.hints.read_only,
            idempotent: tool.hints.idempotent,
        }
    }
}

/// Request to call a tool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallToolDocument {
    /// Input of the tool: its arguments.
    pub input: Value,
    /// Tenant on whose behalf the tool is called; operator only. By default, it is the tenant of
    /// the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// The end of a tool call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolCallDocument {
    /// Output of the tool, with `content`, `structured`, `is_error` and `updates`; absent if the
    /// tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Failure of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Duration of the call in microseconds.
    pub duration_us: u64,
    /// Host calls of the tool and of the tools that it called, in the order in which they began.
    pub calls: Vec<ListedCallDocument>,
    /// Number of further host calls.
    pub omitted_calls: u64,
}

/// A host call of a tool or a node that a client called.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListedCallDocument {
    /// Number of tool calls around the host call: 0 for a call of the tool or node itself.
    pub depth: u32,
    /// Interface and function, such as `http.send`.
    pub function: String,
    /// One-line description for people.
    pub summary: String,
    /// Duration in microseconds; absent if the tool or node ended before the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Failure of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
}

impl ToolCallDocument {
    /// Describes the end of a tool call. Only the operator sees the lines of the configuration that
    /// would allow denied calls.
    ///
    /// # Errors
    ///
    /// `internal` if the output cannot be serialized.
    pub fn new(end: ToolCallEnd, is_operator: bool) -> Result<Self, Failure> {
        let (output, failure) = match end.result {
            Ok(output) => {
                let output = serde_json::to_value(output).map_err(|error| {
                    Failure::internal(format!("cannot serialize the tool's output: {error}"))
                })?;
                (Some(output), None)
            }
            Err(failure) => (None, Some(visible(failure, is_operator))),
        };
        let calls = end.calls.into_iter().map(|call| ListedCallDocument::new(call, is_operator));
        Ok(Self {
            output,
            failure,
            duration_us: micros(end.duration),
            calls: calls.collect(),
            omitted_calls: end.omitted_calls,
        })
    }
}

impl ListedCallDocument {
    /// Describes a host call.
    pub(super) fn new(call: ListedCall, is_operator: bool) -> Self {
        let (duration_us, failure) = match call.end {
            Some(end) => (Some(micros(end.duration)), end.failure),
            None => (None, None),
        };
        Self {
            depth: call.depth,
            function: call.function.to_owned(),
            summary: call.summary,
            duration_us,
            failure: failure.map(|failure| visible(failure, is_operator)),
        }
    }
}

/// Returns a duration in microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns a failure as the client sees it. The message of a missing grant names a table of the
/// operator's configuration.
pub(super) fn visible(failure: Failure, is_operator: bool) -> FailureDocument {
    if failure.code != code::DENIED || is_operator {
        return failure.into();
    }
    let text = "the grants of the plugin do not allow this; the operator sees what to grant";
    Failure::new(code::DENIED, text).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::tool::ToolOutput;
    use wattle_run::gate::call_list::CallEnd;

    use super::*;

    fn denied() -> Failure {
        let text = "plugin `p` may not use the model route `r`; add it under `[grants.p]`";
        Failure::new(code::DENIED, text).with_details(json!({ "namespace": "n" }))
    }

    fn end(result: Result<ToolOutput, Failure>) -> ToolCallEnd {
        let duration = Duration::from_micros(5);
        let end = Some(CallEnd { duration, failure: Some(denied()) });
        let call = |end| ListedCall { depth: 1, function: "f", summary: "s".to_owned(), end };
        ToolCallEnd { result, duration, calls: vec![call(end), call(None)], omitted_calls: 2 }
    }

    #[test]
    fn only_the_operator_sees_what_to_grant() {
        let shown = |is_operator| {
            let document = ToolCallDocument::new(end(Err(denied())), is_operator).unwrap();
            serde_json::to_value(document).unwrap()
        };
        let (of_operator, of_others) = (shown(true), shown(false));
        for document in [&of_operator, &of_others] {
            assert_eq!(document["failure"]["code"], "denied");
            assert_eq!(document["calls"][0]["failure"]["code"], "denied");
        }
        assert_eq!(of_operator["calls"][0]["failure"]["message"], denied().message);
        assert_eq!(of_operator["failure"]["details"], json!({ "namespace": "n" }));
        assert!(!of_others.to_string().contains("[grants.p]"), "{of_others}");
        assert!(!of_others.to_string().contains("namespace"), "{of_others}");
    }

    #[test]
    fn end_of_a_call_has_its_output_and_its_host_calls() {
        let output = ToolOutput { structured: Some(json!(3)), ..ToolOutput::default() };
        let document = ToolCallDocument::new(end(Ok(output)), true).unwrap();
        let shown = serde_json::to_value(document).unwrap();
        assert_eq!(shown["output"], json!({ "content": [], "structured": 3 }));
        assert_eq!((&shown["duration_us"], &shown["omitted_calls"]), (&json!(5), &json!(2)));
        assert_eq!(shown["calls"][1], json!({ "depth": 1, "function": "f", "summary": "s" }));
        assert_eq!(shown["calls"][0]["duration_us"], 5);
        assert_eq!(shown.get("failure"), None);
    }
}
