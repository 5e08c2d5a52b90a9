//! Tool calls of guests.

use wattle_graph::failure::Failure;

use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::gate::Gate;
use crate::gate::unwind::{CallError, Unwind};
use crate::hostcall::tools::{ListTools, ToolInfo};

impl Gate {
    /// Lists the tools that the guest may call, each under a name that identifies it.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, CallError> {
        self.call(ListTools).await
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] if the tool returns no output, for example `denied`, `not-found`,
    /// `invalid` arguments or a `limit`; [`CallError::Unwind`] if the guest must be unwound because
    /// the tool raised an interrupt.
    pub async fn call_tool(&self, request: ToolRequest) -> Result<ToolOutput, CallError> {
        self.call(request).await
    }

    /// Calls several tools concurrently. Outputs are in the order of the requests.
    ///
    /// # Errors
    ///
    /// See [`Gate::call_all`].
    pub async fn call_tools(
        &self,
        requests: Vec<Result<ToolRequest, Failure>>,
    ) -> Result<Vec<Result<ToolOutput, Failure>>, Unwind> {
        self.call_all(requests).await
    }
}
