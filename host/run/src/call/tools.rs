//! Calls of tools: those of plugins and those of servers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;

use crate::call::HostCall;
use crate::call::llm::Part;
use crate::gate::Site;
use crate::gate::unwind::Stop;
use crate::grant::Grants;
use crate::ports::Caller;
use crate::ports::sandbox::ToolInfo;
use crate::tools;

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Its visible name or full reference.
    pub tool: String,
    /// The model's id of the call; the host makes one if it is empty.
    pub call_id: String,
    /// The arguments.
    pub arguments: Value,
    /// Longest wait; the tool's own limit without it, and never longer than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// What the tool may see of the caller's state, an object of channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What a model reads.
    pub content: Vec<Part>,
    /// The same as data, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the tool failed in a way that the model should read about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Writes to the state of the calling graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Write>,
}

impl HostCall for ToolRequest {
    type Answer = ToolOutput;
    const FUNCTION: &'static str = "tools.call";
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

    async fn perform(&self, site: &Site<'_>) -> Result<ToolOutput, Stop> {
        tools::call(site, self).await
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

    async fn perform(&self, site: &Site<'_>) -> Result<Vec<ToolInfo>, Stop> {
        Ok(tools::list(site).await)
    }
}
