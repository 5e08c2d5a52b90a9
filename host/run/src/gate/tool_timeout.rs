//! The timeout of tool calls.

use std::time::Duration;

use serde_json::json;
use wattle_graph::failure::{Failure, code};

/// The timeout of a tool call.
#[derive(Clone, Copy, Debug)]
pub struct ToolTimeout<'a> {
    /// Name by which the caller called the tool.
    pub tool: &'a str,
    /// Time that the call may take, in milliseconds.
    pub allowed_ms: u64,
}

impl ToolTimeout<'_> {
    /// Awaits the call, and drops it if it takes too long.
    ///
    /// # Errors
    ///
    /// Those of the call; `timeout`, which is retryable, if the call takes too long.
    pub(crate) async fn limit<T, E: From<Failure>>(
        self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let allowed = Duration::from_millis(self.allowed_ms);
        match tokio::time::timeout(allowed, call).await {
            Ok(ended) => ended,
            Err(_elapsed) => Err(self.failure().into()),
        }
    }

    fn failure(self) -> Failure {
        let Self { tool, allowed_ms } = self;
        Failure::new(code::TIMEOUT, format!("the tool `{tool}` took longer than {allowed_ms} ms"))
            .retryable()
            .with_details(json!({ "limit": "timeout", "allowed_ms": allowed_ms }))
    }
}
