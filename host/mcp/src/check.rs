//! The report of `wattle mcp check` about one server.

use serde::Serialize;
use wattle_graph::failure::Failure;
use wattle_run::ports::sandbox::ToolInfo;

/// Log target of notes about corrected and omitted parts of messages. [`Check::notes`] contains the
/// same notes.
pub const NOTES_TARGET: &str = "wattle_mcp::notes";

/// Result of checking one server: its session, its tools, notes about its messages, and why the
/// server cannot be used, if so.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Check {
    /// Negotiated protocol version, a date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Name and version that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Milliseconds until the session was open or had failed, including the start of the process.
    pub session_ms: u64,
    /// Milliseconds of the `tools/list` requests; `None` without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_ms: Option<u64>,
    /// Tools with the names and schemas that callers receive.
    pub tools: Vec<ToolInfo>,
    /// Notes about parts of messages that the host corrected or omitted.
    pub notes: Vec<String>,
    /// Why the server cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}
