//! Port: tools that stand outside the sandbox, such as those of MCP servers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::elicitation::Elicitation;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::hostcall::tools::ToolInfo;
use crate::ports::Caller;
use crate::ports::lease::Leased;

/// A call of a tool of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerCall<'a> {
    /// The tool by its name on the server, and its arguments.
    pub request: &'a ToolRequest,
    /// The thread whose people can be asked; `None` where nobody can be.
    pub thread: Option<&'a ThreadId>,
    /// The lease of the thread. What has an effect on the server leaves the host only while it holds.
    pub leased: &'a Leased,
    /// What the server has asked in this call, with the answers.
    pub rounds: &'a [Round],
}

/// What a server asked in the middle of a call, and what a person answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The questions.
    pub question: Elicitation,
    /// The answers by the names of the questions, each
    /// `{"action": "accept" | "decline" | "cancel", "content": ...}`.
    pub answers: BTreeMap<String, Value>,
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAnswer {
    /// It is done.
    Done(ToolOutput),
    /// It goes on when a person has answered. A call that is held for that is held until it goes on or is let
    /// go of, see [`ToolServers::release`].
    Asks(Elicitation),
}

/// Servers that offer tools, by the names that the operator gave them.
#[async_trait]
pub trait ToolServers: Send + Sync {
    /// Whether there is such a server. Must not wait for it.
    fn has_server(&self, server: &str) -> bool;

    /// Its tools. Called before model calls, so an adapter keeps the list as long as the server
    /// allows. Descriptions are untrusted text: capped and free of control characters.
    async fn list(&self, caller: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure>;

    /// Makes a call, from its beginning or, if the server has ended its side with the last questions, with the
    /// answers to them. A question that was answered when the call was made before is not asked again. A tool that
    /// answers with an error is an answer; a failure means that there was none. The failure is `in-doubt` if the server
    /// may have carried out the call without a word about it. Dropping the future ends the call.
    async fn call(
        &self,
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<ServerAnswer, Failure>;

    /// Goes on with the call that the server holds open for the answer to the last questions. `None` if its side is
    /// gone, so that nobody knows whether the call had its effect; nothing has been done then. Dropping the future
    /// ends the call.
    async fn go_on(
        &self,
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerAnswer>, Failure> {
        let _ = (caller, server, call);
        Ok(None)
    }

    /// The calls that are held for answers, of a thread or of all threads: the thread of each, and its name, see
    /// [`Elicitation::held`]. Must not wait.
    fn held(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        let _ = thread;
        Vec::new()
    }

    /// Lets go of a call that is held for a thread under a name, since nobody goes on with it. Must not wait. Not an
    /// error if there is none.
    fn release(&self, thread: &ThreadId, held: &str) {
        let _ = (thread, held);
    }
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
        _call: ServerCall<'_>,
    ) -> Result<ServerAnswer, Failure> {
        Err(no_server(server))
    }
}

fn no_server(server: &str) -> Failure {
    Failure::new(
        wattle_graph::failure::code::NOT_FOUND,
        format!("there is no tool server `{server}`; add `[mcp.{server}]` to wattle.toml"),
    )
}
