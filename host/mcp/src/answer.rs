//! Parses responses of MCP servers from JSON, without a connection, for the tests and the fuzzer.

use rmcp::model::{CallToolResult, ListToolsResult};
use serde_json::{Error, Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::tool::ToolOutput;
use wattle_run::ports::sandbox::ToolInfo;

use crate::mend::Mender;
use crate::{listing, outcome};

/// Parses one page of a `tools/list` result.
///
/// # Errors
///
/// Returns an error if the JSON is not a `tools/list` result.
pub fn tools(server: &str, json: &[u8]) -> Result<Vec<ToolInfo>, Error> {
    let mender = Mender::new(server);
    let page: ListToolsResult = serde_json::from_value(mended(&mender, json)?)?;
    Ok(listing::page(&mender, &page))
}

/// Parses a `tools/call` result. Text beyond `output_bytes` is cut.
///
/// # Errors
///
/// Returns an error if the JSON is not a `tools/call` result. The inner result is a failure if the result is nested too
/// deep.
pub fn output(
    server: &str,
    json: &[u8],
    output_bytes: usize,
) -> Result<Result<ToolOutput, Failure>, Error> {
    let result: CallToolResult = serde_json::from_value(mended(&Mender::new(server), json)?)?;
    Ok(outcome::output(server, result, output_bytes))
}

/// Normalizes a result as if it had arrived in a message.
fn mended(mender: &Mender, json: &[u8]) -> Result<Value, Error> {
    let result = mender.read(json)?;
    let mut message = json!({ "result": result });
    mender.mend(&mut message);
    Ok(message["result"].take())
}
