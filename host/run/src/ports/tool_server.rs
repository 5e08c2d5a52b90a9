//! Port: tools outside of the sandbox, such as those of MCP servers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::elicitation::Elicitation;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::hostcall::tools::ToolInfo;
use crate::ports::Caller;
use crate::ports::lease::CallLease;

/// A call of a tool of an MCP server.
#[derive(Clone, Copy, Debug)]
pub struct ServerCall<'a> {
    /// The name of the tool on the server, and the arguments.
    pub request: &'a ToolRequest,
    /// The thread that can raise interrupts for the call; `None` if no person can be asked.
    pub thread: Option<&'a ThreadId>,
    /// The lease of the thread. A message with an effect on the server leaves the host only while
    /// the lease is valid.
    pub lease: &'a CallLease,
    /// Elicitation rounds of this call so far, with the answers.
    pub rounds: &'a [ElicitationRound],
}

/// One elicitation round of a call: the questions of the server and the answers of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitationRound {
    /// The questions.
    pub elicitation: Elicitation,
    /// The answers by question name, each
    /// `{"action": "accept" | "decline" | "cancel", "content": ...}`.
    pub answers: BTreeMap<String, Value>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerCallResult {
    /// The tool has returned. The content may end with images in data URLs, which the gate stores as
    /// blobs and removes; the texts and the structured output refer to these blobs.
    Returned(ToolOutput),
    /// The server asks a person, and the call continues with the answers. A held call stays open
    /// until it continues or is released, see [`ToolServers::release_call`].
    Elicits(Elicitation),
}

/// MCP servers by the names from the configuration.
#[async_trait]
pub trait ToolServers: Send + Sync {
    /// Returns true if the server is configured. Must not wait for the server.
    fn has_server(&self, server: &str) -> bool;

    /// Returns the tools of a server. Called before model calls, so an adapter caches the list as
    /// long as the server allows. Descriptions are untrusted text: bounded and free of control
    /// characters.
    async fn list(&self, caller: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure>;

    /// Makes a call. If the server ended its side of the call with the last round, the call is made
    /// again with the answers to that round. A question that was answered in an earlier execution
    /// of the call is not asked again. An error of the tool is a result; a failure means that there
    /// is no result. The failure is `in-doubt` if the server may have executed the call without a
    /// response. Dropping the future ends the call.
    async fn call(
        &self,
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure>;

    /// Continues a call that the server holds open for the answers to the last round. Returns
    /// `None` if the server's side of the call has ended: the call is then in doubt, and this
    /// method has had no effect. Dropping the future ends the call.
    async fn continue_call(
        &self,
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerCallResult>, Failure> {
        let _ = (caller, server, call);
        Ok(None)
    }

    /// Returns the held calls of a thread or of all threads: the thread and the name of each, see
    /// [`Elicitation::held`]. Must not wait.
    fn held_calls(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        let _ = thread;
        Vec::new()
    }

    /// Releases a held call that no run continues. Must not wait. It is not an error if there is no
    /// such call.
    fn release_call(&self, thread: &ThreadId, held: &str) {
        let _ = (thread, held);
    }
}

/// No MCP servers.
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
        _call: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        Err(no_server(server))
    }
}

fn no_server(server: &str) -> Failure {
    Failure::new(
        wattle_graph::failure::code::NOT_FOUND,
        format!("there is no MCP server `{server}`; add `[mcp.{server}]` to wattle.toml"),
    )
}
