//! `wattle:plugin/tools`: tools of other plugins and of MCP servers.
//!
//! `tools` uses types of the interface `tool`, which makes that interface an import. Toolchains
//! that import all functions of an interface, such as componentize-py, also import the functions of
//! `tool`. The host links these functions, and each call of one traps.

use serde::Deserialize;
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_run::hostcall::tools::LIST;
use wattle_run::limit;
use wattle_run::ports::sandbox::{ToolHints, ToolInfo};

use crate::bindings::wattle::plugin::{tool, tools, types};
use crate::host_state::HostState;
use crate::import::batch::BatchResults;
use crate::import::message::from_part;
use crate::import_error::{ImportError, TrapReason};
use crate::json::{CallJson, extra_bytes, to_text};

const CALL: &str = CallKind::CallTool.name();
const CALL_ALL: &str = "tools.call-all";

impl tools::Host for HostState {
    async fn list(&mut self) -> Result<Vec<tools::ToolInfo>, ImportError> {
        let gate = self.gate(LIST)?;
        let infos = self.off_cpu(gate.tools()).await?;
        Ok(infos.into_iter().map(from_info).collect())
    }

    async fn call(&mut self, request: tools::Request) -> Result<tools::ToolOutput, ImportError> {
        let gate = self.gate(CALL)?;
        let bytes = json_bytes(&request);
        let request = self.convert(&gate, CALL, bytes, |json| into_request(request, json)).await?;
        Ok(from_output(self.off_cpu(gate.call_tool(request)).await?))
    }

    async fn call_all(
        &mut self,
        requests: Vec<tools::Request>,
    ) -> wasmtime::Result<BatchResults<tools::ToolOutput>> {
        let gate = self.gate(CALL_ALL)?;
        let bytes = requests.iter().map(json_bytes).sum();
        let requests = self.convert_all(&gate, CALL, bytes, requests, into_request).await;
        let results = self.off_cpu(gate.call_tools(requests)).await.map_err(TrapReason::Unwind)?;
        Ok(results.into_iter().map(|answer| answer.map(from_output).map_err(Into::into)).collect())
    }
}

impl tool::Host for HostState {
    async fn list(&mut self) -> wasmtime::Result<Vec<tool::ToolInfo>> {
        Err(TrapReason::ExportOnly("tool.list").into())
    }

    async fn call(
        &mut self,
        _context: tool::CallContext,
        _arguments: String,
    ) -> Result<tool::ToolOutput, ImportError> {
        Err(TrapReason::ExportOnly("tool.call").into())
    }
}

/// Returns the length of the JSON texts of a request, in bytes.
fn json_bytes(request: &tools::Request) -> usize {
    request.arguments.len() + extra_bytes(&request.extra)
}

fn into_request(request: tools::Request, json: CallJson<'_>) -> Result<ToolRequest, Failure> {
    Ok(ToolRequest {
        arguments: json.parse(&request.arguments, "arguments", limit::CALL_JSON_BYTES)?,
        tool: request.tool,
        call_id: request.call_id,
        timeout_ms: request.timeout_ms,
        state: json.parse_extra::<CallExtra>(&request.extra)?.state,
    })
}

/// Extension fields of a tool call (`extra`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct CallExtra {
    state: Option<Value>,
}

fn from_info(info: ToolInfo) -> tools::ToolInfo {
    tools::ToolInfo {
        extra: extra_fields(&info),
        name: info.name,
        description: info.description,
        arguments_schema: to_text(&info.arguments_schema),
        accepts_invalid: info.accepts_invalid,
    }
}

/// Returns the extension fields of a tool (`extra`): its hints, its full reference, and the failure
/// that makes it unavailable.
fn extra_fields(info: &ToolInfo) -> Vec<(String, String)> {
    let hints = (info.hints != ToolHints::default()).then(|| serde_json::json!(info.hints));
    let reference = info.reference.as_ref().map(|reference| serde_json::json!(reference));
    let unavailable = info.unavailable.as_ref().map(|failure| serde_json::json!(failure));
    [("hints", hints), ("reference", reference), ("unavailable", unavailable)]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_string())))
        .collect()
}

fn from_output(output: ToolOutput) -> tools::ToolOutput {
    tools::ToolOutput {
        content: output.content.into_iter().map(from_part).collect(),
        structured: output.structured.as_ref().map(to_text),
        is_error: output.is_error,
        updates: output.updates.into_iter().map(from_write).collect(),
        extra: Vec::new(),
    }
}

fn from_write(write: Write) -> types::Update {
    types::Update {
        channel: write.channel.into(),
        value: to_text(&write.value),
        overwrite: write.overwrite,
    }
}
