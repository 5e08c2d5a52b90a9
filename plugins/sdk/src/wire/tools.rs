//! Calls of `tools`.

use crate::bindings::imports::wattle::plugin::{tool as raw_tool, tools as raw};
use crate::failure::Failure;
use crate::node::Update;
use crate::tool::{ToolInfo, ToolOutput};
use crate::tools::Call;
use crate::wire::convert::{extra, raw_extra, result, value};

pub(crate) fn list() -> Result<Vec<ToolInfo>, Failure> {
    Ok(raw::list()?.into_iter().map(Into::into).collect())
}

pub(crate) fn call(call: Call) -> Result<ToolOutput, Failure> {
    result(raw::call(&call.into()))
}

pub(crate) fn call_all(calls: Vec<Call>) -> Vec<Result<ToolOutput, Failure>> {
    let calls: Vec<raw::Request> = calls.into_iter().map(Into::into).collect();
    raw::call_all(&calls).into_iter().map(result).collect()
}

impl From<Call> for raw::Request {
    fn from(call: Call) -> Self {
        Self {
            tool: call.tool,
            call_id: call.call_id,
            arguments: call.arguments.to_string(),
            timeout_ms: call.timeout_ms,
            extra: raw_extra(call.extra),
        }
    }
}

impl From<raw_tool::ToolInfo> for ToolInfo {
    fn from(info: raw_tool::ToolInfo) -> Self {
        Self {
            name: info.name,
            description: info.description,
            arguments_schema: value(&info.arguments_schema),
            accepts_invalid: info.accepts_invalid,
            extra: extra(info.extra),
        }
    }
}

impl From<raw_tool::ToolOutput> for ToolOutput {
    fn from(output: raw_tool::ToolOutput) -> Self {
        let update = |update: raw_tool::Update| Update {
            channel: update.channel,
            value: value(&update.value),
            overwrite: update.overwrite,
        };
        Self {
            content: output.content.into_iter().map(Into::into).collect(),
            structured: output.structured.as_deref().map(value),
            is_error: output.is_error,
            updates: output.updates.into_iter().map(update).collect(),
            extra: extra(output.extra),
        }
    }
}
