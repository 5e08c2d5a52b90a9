//! Tool calls: those of plugins and those of MCP servers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::id::{TaskId, ThreadId};
use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::ports::Caller;

/// Function that lists the tools that the caller may call.
pub const LIST: &str = "tools.list";

/// The description of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// Name of the tool in its plugin or on its server.
    pub name: String,
    /// Description for models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub arguments_schema: Value,
    /// True if the tool accepts arguments that violate the schema.
    pub accepts_invalid: bool,
    /// Effects that the tool declares.
    #[serde(default)]
    pub hints: ToolHints,
    /// Full reference (`date/parse`, `mcp:graph/list`), which is unique. The host sets it when it
    /// lists tools for a caller; `None` in a tool's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Failure of a source whose tools cannot be listed. The entry then represents all tools of
    /// that source, and its name is `mcp:graph/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Failure>,
}

/// Effects that a tool declares. The declaration grants nothing, but a call that a crash
/// interrupted is repeated only if the tool declares it read-only or idempotent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolHints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// A repeated call with the same arguments has no further effect.
    pub idempotent: bool,
}

/// A call of a plugin's tool.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginToolCall {
    /// Name of the tool in the plugin.
    pub tool: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The thread, if the call comes from a run.
    pub thread: Option<ThreadId>,
    /// The task, if the call comes from a run.
    pub task: Option<TaskId>,
    /// Tenant of the caller.
    pub tenant: Option<String>,
    /// Violations of the arguments schema, one sentence each.
    pub violations: Vec<String>,
    /// The arguments.
    pub arguments: Value,
    /// The part of the caller's state that the tool may read, an object of channels.
    pub state: Option<Value>,
    /// The grants of the tool's plugin, for a typed component: its environment and folders.
    pub grants: Arc<Grants>,
}

impl HostCall for ToolRequest {
    type Output = ToolOutput;
    const FUNCTION: &'static str = CallKind::CallTool.name();
    const LOGS_START: bool = true;
    const START_INCLUDES_REQUEST: bool = true;

    fn summary(&self) -> String {
        self.tool.clone()
    }

    /// Omits the state: the log already contains it, and a large state would displace the rest of
    /// the request.
    fn journaled_request(&self) -> Option<Self> {
        self.state.is_some().then(|| Self { state: None, ..self.clone() })
    }

    /// The grant is checked when the call is performed, because only then the tools are known.
    fn check_allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}

/// Lists the tools that the caller may call. The output is journaled, because MCP servers change
/// their lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ListTools;

impl HostCall for ListTools {
    type Output = Vec<ToolInfo>;
    const FUNCTION: &'static str = LIST;

    fn summary(&self) -> String {
        String::new()
    }

    fn check_allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}
