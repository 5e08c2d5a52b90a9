//! `wattle:plugin/tools`: part of the contract that this host does not offer yet.
//!
//! `tools` borrows types of the interface `tool`, which brings that interface among the imports;
//! no guest imports its functions, and they are not linked.

use crate::bindings::wattle::plugin::{tool, tools, types};
use crate::guest::Guest;
use crate::halt::{Halt, Trapped};

impl tools::Host for Guest {
    async fn list(&mut self) -> Result<Vec<tools::ToolInfo>, Halt> {
        self.unsupported("tools.list")
    }

    async fn call(&mut self, _request: tools::Request) -> Result<tools::ToolOutput, Halt> {
        self.unsupported("tools.call")
    }

    async fn call_all(
        &mut self,
        requests: Vec<tools::Request>,
    ) -> wasmtime::Result<Vec<Result<tools::ToolOutput, types::Failure>>> {
        let failure = self.gate("tools.call-all")?.unsupported("tools.call-all");
        Ok(requests.iter().map(|_| Err(failure.clone().into())).collect())
    }
}

impl tool::Host for Guest {
    async fn list(&mut self) -> wasmtime::Result<Vec<tool::ToolInfo>> {
        Err(Trapped::Forbidden("tool.list").into())
    }

    async fn call(
        &mut self,
        _context: tool::CallContext,
        _arguments: String,
    ) -> Result<tool::ToolOutput, Halt> {
        Err(Trapped::Forbidden("tool.call").into())
    }
}
