//! Calls of tools: those of plugins and those of servers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::id::{TaskId, ThreadId};
use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::ports::Caller;

/// What a tool says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// Its name in the plugin.
    pub name: String,
    /// For models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub arguments_schema: Value,
    /// Whether arguments that violate the schema still reach it.
    pub accepts_invalid: bool,
    /// What it says of its effects.
    #[serde(default)]
    pub hints: ToolHints,
    /// Its full reference (`date/parse`, `mcp:graph/list`), which no other tool has. The host
    /// fills it in when it lists tools for a caller; `None` where a tool describes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why the tools of a place are not known. The entry is then for the whole place and not a tool,
    /// and its name is `mcp:graph/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Failure>,
}

/// What a tool says of its effects. It is the tool's own word: nothing is allowed because of it,
/// but a call that was cut by a crash is made again only if it says that this is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
}

/// One call of a plugin's tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name in the plugin.
    pub tool: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The thread, if the call comes from a run.
    pub thread: Option<ThreadId>,
    /// The task, if the call comes from a run.
    pub task: Option<TaskId>,
    /// Tenant.
    pub tenant: Option<String>,
    /// Violations of the arguments schema, one sentence each.
    pub violations: Vec<String>,
    /// The arguments.
    pub arguments: Value,
    /// What it may see of the caller's state, an object of channels.
    pub state: Option<Value>,
}

impl HostCall for ToolRequest {
    type Answer = ToolOutput;
    const FUNCTION: &'static str = CallKind::CallTool.name();
    const SLOW: bool = true;
    const TELLS_REQUEST: bool = true;

    fn summary(&self) -> String {
        self.tool.clone()
    }

    /// Without the state, which the log has already, and which could be too long for the rest to
    /// be seen.
    fn shown(&self) -> Option<Self> {
        self.state.is_some().then(|| Self { state: None, ..self.clone() })
    }

    /// Which tools there are is known only when the call is made.
    fn allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}

/// Asks which tools there are. Journaled, since servers change their lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ListTools;

impl HostCall for ListTools {
    type Answer = Vec<ToolInfo>;
    const FUNCTION: &'static str = "tools.list";

    fn summary(&self) -> String {
        String::new()
    }

    fn allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}
