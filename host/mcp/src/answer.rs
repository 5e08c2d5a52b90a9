//! Answers of servers, read from their JSON without a server: for checks of what such answers can do.

use rmcp::model::{CallToolResult, ListToolsResult};
use serde_json::{Error, Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::tool::ToolOutput;
use wattle_run::ports::sandbox::ToolInfo;

use crate::mend::Mender;
use crate::{listing, outcome};

/// The tools of one page of a list, as the result of `tools/list` holds them.
///
/// # Errors
///
/// The text is no such result.
pub fn tools(server: &str, json: &[u8]) -> Result<Vec<ToolInfo>, Error> {
    let mender = Mender::new(server);
    let page: ListToolsResult = serde_json::from_value(mended(&mender, json)?)?;
    Ok(listing::page(&mender, &page))
}

/// What a tool answered, as the result of `tools/call` holds it, with at most so many bytes.
///
/// # Errors
///
/// The text is no such result.
pub fn output(
    server: &str,
    json: &[u8],
    output_bytes: usize,
) -> Result<Result<ToolOutput, Failure>, Error> {
    let result: CallToolResult = serde_json::from_value(mended(&Mender::new(server), json)?)?;
    Ok(outcome::output(server, result, output_bytes))
}

/// A result in the form of the protocol.
fn mended(mender: &Mender, json: &[u8]) -> Result<Value, Error> {
    let result = mender.read(json)?;
    let mut message = json!({ "result": result });
    mender.mend(&mut message);
    Ok(message["result"].take())
}
