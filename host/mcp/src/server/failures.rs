//! The failures of calls that the host itself ends.

use std::time::Duration;

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::SERVER_ROUNDS;

use super::{MAX_CALLS, MAX_OWN_SESSIONS, Server};

impl Server {
    pub(super) fn timed_out(&self, limit: Duration) -> Failure {
        let message = format!("the MCP server `{}` did not respond within {limit:?}", self.name);
        Failure::new(code::TIMEOUT, message).retryable()
    }

    pub(super) fn invalid_call(&self, tool: &str, reason: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` cannot be called: {reason}",
            self.name
        );
        Failure::new(code::INVALID, message)
    }

    /// Returns the advice for a server that sends elicitations during calls, which only the earlier
    /// protocols permit.
    pub(super) fn handshake_advice(&self) -> String {
        let name = &self.name;
        tracing::warn!(server = name, "an MCP server cannot ask people without `handshake = true`");
        format!("[to let the server ask people, set `handshake = true` under `[mcp.{name}]`]")
    }

    pub(super) fn no_free_call(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` was not called in time: callers share \
             {MAX_CALLS} calls at once, and earlier calls have not ended; retry later",
            self.name
        );
        Failure::new(code::TIMEOUT, message).retryable()
    }

    pub(super) fn no_free_session(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` got no session in time: the server asks \
             people, so each of its calls has a separate session, and callers share \
             {MAX_OWN_SESSIONS} of these; retry later",
            self.name
        );
        let details = json!({ "limit": "own_sessions", "allowed": MAX_OWN_SESSIONS });
        Failure::new(code::LIMIT, message).retryable().with_details(details)
    }

    pub(super) fn too_many_repetitions(&self, tool: &str) -> Failure {
        let message = format!(
            "the tool `{tool}` of the MCP server `{}` asks for too many repetitions of one call; \
             check the server",
            self.name
        );
        let details = json!({ "limit": "server_rounds", "allowed": SERVER_ROUNDS });
        Failure::new(code::LIMIT, message).retryable().with_details(details)
    }
}
