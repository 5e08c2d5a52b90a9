//! Parses responses of MCP servers from JSON, without a connection, for the tests and the fuzzer.

use rmcp::model::{CallToolResult, ListToolsResult, ServerJsonRpcMessage, ServerRequest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wattle_graph::elicitation::ElicitedQuestion;
use wattle_graph::failure::Failure;
use wattle_graph::tool::ToolOutput;
use wattle_run::json::bounded::JsonError;
use wattle_run::ports::sandbox::ToolInfo;

use crate::elicitation::{ELICITATION_METHOD, form_question};
use crate::normalize::Normalizer;
use crate::{tool_list, tool_result};

/// Parses one page of a `tools/list` result.
///
/// # Errors
///
/// Returns an error if the JSON is not a `tools/list` result.
pub fn tools(server: &str, json: &[u8]) -> Result<Vec<ToolInfo>, JsonError> {
    let normalizer = Normalizer::new(server);
    let page: ListToolsResult = normalized(&normalizer, json)?;
    Ok(tool_list::page_tools(&normalizer, &page))
}

/// Parses a `tools/call` result. Text beyond `output_bytes` bytes is truncated.
///
/// # Errors
///
/// Returns an error if the JSON is not a `tools/call` result. The inner result is a failure if the
/// result is nested too deeply.
pub fn output(
    server: &str,
    json: &[u8],
    output_bytes: usize,
) -> Result<Result<ToolOutput, Failure>, JsonError> {
    let result: CallToolResult = normalized(&Normalizer::new(server), json)?;
    Ok(tool_result::to_tool_output(server, result, output_bytes))
}

/// Parses the parameters of an `elicitation/create` request. Returns `None` if the host refuses the
/// elicitation: it has a required field that cannot be shown, or a URL in place of a form.
///
/// # Errors
///
/// Returns an error if the JSON is not such a request.
pub fn form(server: &str, json: &[u8]) -> Result<Option<ElicitedQuestion>, JsonError> {
    let normalizer = Normalizer::new(server);
    let params: Value = normalizer.parse(json)?;
    let mut message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": ELICITATION_METHOD, "params": params });
    normalizer.normalize(&mut message);
    let message = serde_json::from_value(message).map_err(JsonError::Syntax)?;
    let ServerJsonRpcMessage::Request(request) = message else { return Ok(None) };
    Ok(match request.request {
        ServerRequest::ElicitRequest(asked) => form_question(&asked.params),
        _ => None,
    })
}

/// Normalizes a result as if it had arrived in a message.
fn normalized<T: DeserializeOwned>(normalizer: &Normalizer, json: &[u8]) -> Result<T, JsonError> {
    let result: Value = normalizer.parse(json)?;
    let mut message = json!({ "result": result });
    normalizer.normalize(&mut message);
    serde_json::from_value(message["result"].take()).map_err(JsonError::Syntax)
}
