//! The adapter of the port `Plugin`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::id::AppName;
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::{AwaitedBy, Gate};
use wattle_run::grant::{GrantKey, Grants};
use wattle_run::ports::sandbox::{
    GuestError, NodeCall, NodeOutcome, Plugin, PluginInfo, PluginToolCall, WebRequest, WebResponse,
};

use crate::compiled::CompiledComponent;
use crate::export::{self, GuestCall};
use crate::guest_error::Callee;
use crate::guest_pool::PoolOwner;
use crate::sanitize;

/// A loaded component under a name.
pub(crate) struct WasmPlugin {
    pub(crate) info: PluginInfo,
    pub(crate) code: Arc<CompiledComponent>,
}

impl WasmPlugin {
    fn callee<'a>(&'a self, what: &'a str, key: &'a GrantKey) -> Callee<'a> {
        Callee { plugin: self.info.name.as_str(), what, key: Some(key) }
    }
}

#[async_trait]
impl Plugin for WasmPlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        let what = format!("node `{}`", call.node);
        let (limits, owner, key) = (gate.limits().clone(), gate.caller().owner, gate.grant_key());
        let callee = self.callee(&what, &key);
        let made = GuestCall::with_gate(&self.code, gate, &limits, callee);
        export::node::run(made, call, owner).await.map_err(sanitize::sanitize_error)
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        let what = format!("tool `{}`", call.tool);
        let (limits, owner, key) = (gate.limits().clone(), gate.caller().owner, gate.grant_key());
        let callee = self.callee(&what, &key);
        let made = GuestCall::with_gate(&self.code, gate, &limits, callee);
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
        let (limits, owner, key) = (gate.limits().clone(), gate.caller().owner, gate.grant_key());
        let callee = self.callee("the web handler", &key);
        let made = GuestCall::with_gate(&self.code, gate, &limits, callee);
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
        let what = format!("reducer `{reducer}`");
        let key = grants.key_of(app, &self.info.name);
        let (limits, callee) = (&grants.limits, self.callee(&what, &key));
        let owner = PoolOwner::App(app.clone());
        // A guest that started a subgraph waits for the reducers of the channels of the subgraph.
        let awaited_by = AwaitedBy::Guest;
        let code = &self.code;
        let made = GuestCall { code, gate: None, owner, awaited_by, limits, callee, given: None };
        let reduced = export::reduce::run(made, app, reducer, current, updates).await;
        reduced.map_err(sanitize::sanitize_error)
    }
}
