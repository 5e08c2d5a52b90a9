//! Parses responses of MCP servers from JSON, without a connection, for the tests and the fuzzer.

use rmcp::model::{CallToolResult, ListToolsResult};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::tool::ToolOutput;
use wattle_run::json::bounded::JsonError;
use wattle_run::ports::sandbox::ToolInfo;

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

/// Normalizes a result as if it had arrived in a message.
fn normalized<T: DeserializeOwned>(normalizer: &Normalizer, json: &[u8]) -> Result<T, JsonError> {
    let result: Value = normalizer.parse(json)?;
    let mut message = json!({ "result": result });
    normalizer.normalize(&mut message);
    serde_json::from_value(message["result"].take()).map_err(JsonError::Syntax)
}
