//! What a server says when it is looked at.

use serde::Serialize;
use wattle_graph::failure::Failure;
use wattle_run::ports::sandbox::ToolInfo;

/// Target of lines in the log about what was made good or left out. A look at a server has the same in
/// [`Check::notes`].
pub const NOTES: &str = "wattle_mcp::notes";

/// A look at a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Check {
    /// The version of the protocol that both sides speak; a date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Name and version of the server, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Milliseconds until a session was open, or could not be opened. A program is started in them.
    pub session_ms: u64,
    /// Milliseconds of the list of tools; `None` without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_ms: Option<u64>,
    /// The tools that it offers, as callers get them.
    pub tools: Vec<ToolInfo>,
    /// What was made good or left out of what it sent, and why.
    pub notes: Vec<String>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}
