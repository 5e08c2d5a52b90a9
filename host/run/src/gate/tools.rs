//! Tools, as the gate offers them.

use wattle_graph::failure::Failure;

use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::gate::Gate;
use crate::gate::unwind::{Stop, Unwind};
use crate::hostcall::tools::{ListTools, ToolInfo};

impl Gate {
    /// The tools that the guest may call, each under the name it can be called by.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must end.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, Stop> {
        self.call(ListTools).await
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] if it did not answer, `denied`, `not-found`, `invalid` arguments or a
    /// `limit` among them; [`Stop::Unwind`] if the guest must end, since the tool waits for a
    /// person.
    pub async fn call_tool(&self, request: ToolRequest) -> Result<ToolOutput, Stop> {
        self.call(request).await
    }

    /// Calls several tools at once; answers in the order of the calls.
    ///
    /// # Errors
    ///
    /// As [`Gate::call_all`].
    pub async fn call_tools(
        &self,
        requests: Vec<Result<ToolRequest, Failure>>,
    ) -> Result<Vec<Result<ToolOutput, Failure>>, Unwind> {
        self.call_all(requests).await
    }
}
