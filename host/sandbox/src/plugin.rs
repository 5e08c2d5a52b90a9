//! The adapter of the port `Plugin`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::id::AppName;
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::{AwaitedBy, Gate};
use wattle_run::grant::Grants;
use wattle_run::ports::Caller;
use wattle_run::ports::sandbox::{
    GuestError, NodeCall, NodeOutcome, Plugin, PluginInfo, PluginToolCall, WebRequest, WebResponse,
};

use crate::compiled::CompiledComponent;
use crate::export::{self, GuestCall};
use crate::guest_error::{CalledFunction, Callee};
use crate::guest_pool::PoolOwner;
use crate::sanitize;

/// A loaded component under a name.
pub(crate) struct WasmPlugin {
    pub(crate) info: PluginInfo,
    pub(crate) code: Arc<CompiledComponent>,
}

impl WasmPlugin {
    fn callee<'a>(&'a self, function: CalledFunction<'a>, gate: &'a Gate) -> Callee<'a> {
        let Caller { app, plugin, .. } = gate.caller();
        let granted = Some((gate.grants(), app, plugin));
        Callee { plugin: &self.info.name, function, granted }
    }
}

#[async_trait]
impl Plugin for WasmPlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        // The guest gets the name in the call.
        let node = call.node.clone();
        let callee = self.callee(CalledFunction::Node(&node), &gate);
        let owner = gate.caller().owner;
        let made = GuestCall::with_gate(&self.code, &gate, callee);
        export::node::run(made, call, owner).await.map_err(sanitize::sanitize_error)
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        let tool = call.tool.clone();
        let callee = self.callee(CalledFunction::Tool(&tool), &gate);
        let owner = gate.caller().owner;
        let made = GuestCall::with_gate(&self.code, &gate, callee);
        let ended = match self.code.exports.typed_function(&call.tool) {
            Some(function) => {
                let made = made.giving(&call.grants);
                export::typed::run(made, function, &call.arguments, owner).await
            }
            None => export::tool::run(made, call, owner).await,
        };
        ended.map_err(sanitize::sanitize_error)
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        let callee = self.callee(CalledFunction::WebHandler, &gate);
        let owner = gate.caller().owner;
        let made = GuestCall::with_gate(&self.code, &gate, callee);
        export::web::run(made, request, owner).await.map_err(sanitize::sanitize_error)
    }

    async fn reduce(
        &self,
        app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        grants: &Grants,
    ) -> Result<Value, GuestError> {
        let (plugin, limits) = (&self.info.name, &grants.limits);
        let function = CalledFunction::Reducer(reducer);
        let callee = Callee { plugin, function, granted: Some((grants, app, plugin)) };
        let owner = Arc::new(PoolOwner::App(app.clone()));
        // A guest that started a subgraph waits for the reducers of the channels of the subgraph.
        let awaited_by = AwaitedBy::Guest;
        let code = &self.code;
        let made = GuestCall { code, gate: None, owner, awaited_by, limits, callee, given: None };
        let reduced = export::reduce::run(made, app, reducer, current, updates).await;
        reduced.map_err(sanitize::sanitize_error)
    }
}
