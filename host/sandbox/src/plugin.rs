//! The adapter of the port `Plugin`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::id::AppName;
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::{AwaitedBy, Gate};
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{
    GuestError, NodeCall, NodeOutcome, Plugin, PluginInfo, PluginToolCall, WebRequest, WebResponse,
};

use crate::compiled::CompiledComponent;
use crate::export::{self, GuestCall};
use crate::guest_error::Callee;
use crate::guests_memory::MemoryOwner;
use crate::sanitize;

/// A loaded component under a name.
pub(crate) struct WasmPlugin {
    pub(crate) info: PluginInfo,
    pub(crate) code: Arc<CompiledComponent>,
}

impl WasmPlugin {
    fn callee<'a>(&'a self, what: &'a str) -> Callee<'a> {
        Callee { plugin: self.info.name.as_str(), what, granted: true }
    }
}

#[async_trait]
impl Plugin for WasmPlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        let what = format!("node `{}`", call.node);
        let callee = self.callee(&what);
        let limits = gate.limits().clone();
        let made = GuestCall::with_gate(&self.code, gate, &limits, callee);
        export::node::run(made, call).await.map_err(sanitize::sanitize_error)
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        let what = format!("tool `{}`", call.tool);
        let callee = self.callee(&what);
        let (limits, owner) = (gate.limits().clone(), gate.caller().owner);
        let made = GuestCall::with_gate(&self.code, gate, &limits, callee);
        let ended = match self.code.exports.typed_function(&call.tool) {
            Some(function) => {
                let made = made.giving(&call.grants);
                export::typed::run(made, function, &call.arguments, owner).await
            }
            None => export::tool::run(made, call).await,
        };
        ended.map_err(sanitize::sanitize_error)
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        let callee = self.callee("the web handler");
        let limits = gate.limits().clone();
        let made = GuestCall::with_gate(&self.code, gate, &limits, callee);
        export::web::run(made, request).await.map_err(sanitize::sanitize_error)
    }

    async fn reduce(
        &self,
        app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        limits: &Limits,
    ) -> Result<Value, GuestError> {
        let what = format!("reducer `{reducer}`");
        let callee = self.callee(&what);
        let owner = MemoryOwner::App(app.clone());
        // The guest that started a subgraph waits for the reducers of its channels.
        let awaited_by = AwaitedBy::Guest;
        let code = &self.code;
        let made = GuestCall { code, gate: None, owner, awaited_by, limits, callee, given: None };
        export::reduce::run(made, reducer, current, updates).await.map_err(sanitize::sanitize_error)
    }
}
