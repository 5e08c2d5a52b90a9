//! Port: tools that stand outside the sandbox, such as those of MCP servers.

use async_trait::async_trait;
use wattle_graph::failure::Failure;

use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::hostcall::tools::ToolInfo;
use crate::ports::Caller;

/// Servers that offer tools, by the names that the operator gave them.
#[async_trait]
pub trait ToolServers: Send + Sync {
    /// Whether there is such a server. Must not wait for it.
    fn has_server(&self, server: &str) -> bool;

    /// Its tools. Called before model calls, so an adapter keeps the list as long as the server
    /// allows. Descriptions are untrusted text: capped and free of control characters.
    async fn list(&self, caller: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure>;

    /// Calls a tool; `request.tool` is its name on the server. A tool that answers with an error
    /// is an answer; a failure means that there was none. Dropping the future ends the call.
    async fn call(
        &self,
        caller: &Caller,
        server: &str,
        request: &ToolRequest,
    ) -> Result<ToolOutput, Failure>;
}

/// No servers at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoToolServers;

#[async_trait]
impl ToolServers for NoToolServers {
    fn has_server(&self, _server: &str) -> bool {
        false
    }

    async fn list(&self, _caller: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure> {
        Err(no_server(server))
    }

    async fn call(
        &self,
        _caller: &Caller,
        server: &str,
        _request: &ToolRequest,
    ) -> Result<ToolOutput, Failure> {
        Err(no_server(server))
    }
}

fn no_server(server: &str) -> Failure {
    Failure::new(
        wattle_graph::failure::code::NOT_FOUND,
        format!("there is no tool server `{server}`; add `[mcp.{server}]` to wattle.toml"),
    )
}
