//! The adapter of the port `Plugin`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::Gate;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{
    Ended, NodeCall, NodeOutcome, Plugin, PluginInfo, ToolCall, WebRequest, WebResponse,
};

use crate::border;
use crate::call::{self, Call};
use crate::code::Code;
use crate::ended::Place;

/// A loaded component under a name.
pub(crate) struct WasmPlugin {
    pub(crate) info: PluginInfo,
    pub(crate) code: Arc<Code>,
}

impl WasmPlugin {
    fn place<'a>(&'a self, what: &'a str) -> Place<'a> {
        Place { plugin: self.info.name.as_str(), what, granted: true }
    }
}

#[async_trait]
impl Plugin for WasmPlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, Ended> {
        let what = format!("node `{}`", call.node);
        let place = self.place(&what);
        let limits = gate.limits().clone();
        let made = Call { code: &self.code, gate: Some(gate), limits: &limits, place };
        call::node::run(made, call).await.map_err(border::cleaned)
    }

    async fn call_tool(&self, call: ToolCall, gate: Arc<Gate>) -> Result<ToolOutput, Ended> {
        let what = format!("tool `{}`", call.tool);
        let place = self.place(&what);
        let limits = gate.limits().clone();
        let made = Call { code: &self.code, gate: Some(gate), limits: &limits, place };
        call::tool::run(made, call).await.map_err(border::cleaned)
    }

    async fn handle(&self, request: WebRequest, gate: Arc<Gate>) -> Result<WebResponse, Ended> {
        let place = self.place("the web handler");
        let limits = gate.limits().clone();
        let made = Call { code: &self.code, gate: Some(gate), limits: &limits, place };
        call::web::run(made, request).await.map_err(border::cleaned)
    }

    async fn reduce(
        &self,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        limits: &Limits,
    ) -> Result<Value, Ended> {
        let what = format!("reducer `{reducer}`");
        let place = self.place(&what);
        let made = Call { code: &self.code, gate: None, limits, place };
        call::reduce::run(made, reducer, current, updates).await.map_err(border::cleaned)
    }
}
