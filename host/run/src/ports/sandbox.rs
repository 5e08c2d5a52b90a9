//! Port: running guests. It stands above the gate, which it hands to every guest; the gate and all
//! other ports know nothing of it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::{Send as SendTask, Write};
use wattle_graph::id::{Digest, GraphName, NodeName, PluginName, RunId, TaskId, ThreadId};

pub use crate::hostcall::tools::{ToolCall, ToolHints, ToolInfo};

use crate::gate::Gate;
pub use crate::gate::unwind::Ended;
use crate::limit::Limits;
use crate::ports::blob::BlobRef;
use wattle_graph::tool::ToolOutput;

/// Turns bytes into plugins.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Checks and compiles a component (or a core module that carries its component type), and
    /// asks it to describe itself. Called when a file appears or changes. Must not leave anything
    /// behind on failure, whatever the bytes are.
    async fn load(&self, name: &PluginName, bytes: Bytes) -> Result<Arc<dyn Plugin>, LoadError>;
}

/// Why a file is no plugin. The message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin `{plugin}` cannot be loaded: {message}\n  hint: {hint}")]
pub struct LoadError {
    /// The plugin.
    pub plugin: PluginName,
    /// A stable word: `not-wasm`, `core-module`, `wit-version`, `missing-export`,
    /// `unknown-import`, `invalid`, `describe`, `limit`, `panic`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its name in the plugin.
    pub name: String,
    /// For people.
    pub doc: String,
    /// JSON Schema of what it reads.
    pub input_schema: Value,
    /// JSON Schema of what it writes.
    pub output_schema: Value,
    /// JSON Schema of its configuration in a graph; `None` if it says nothing of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
}

/// What a reducer says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReducerInfo {
    /// Its name in the plugin.
    pub name: String,
    /// For people.
    pub doc: String,
}

/// An HTTP endpoint of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// Upper case.
    pub method: String,
    /// Such as `/api/items/{id}`.
    pub path: String,
}

/// What is known of a loaded plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginInfo {
    /// Its name: the file's name without ending, unless the app says otherwise.
    pub name: PluginName,
    /// Digest of its bytes as found.
    pub digest: Digest,
    /// Size of the component in bytes.
    pub size_bytes: u64,
    /// Version of `wattle:plugin` it was built for.
    pub contract: String,
    /// Interfaces it imports, such as `wattle:plugin/llm`.
    pub imports: Vec<String>,
    /// Interfaces it exports.
    pub exports: Vec<String>,
    /// Its nodes.
    pub nodes: Vec<NodeInfo>,
    /// Its tools.
    pub tools: Vec<ToolInfo>,
    /// Its reducers.
    pub reducers: Vec<ReducerInfo>,
    /// Its HTTP endpoints.
    pub routes: Vec<Route>,
    /// What it asks for, as TOML, from the custom section `wattle:manifest`.
    pub manifest: Option<String>,
}

/// One execution of a node.
#[derive(Clone, Debug)]
pub struct NodeCall {
    /// The node's name in the plugin.
    pub node: String,
    /// The graph.
    pub graph: GraphName,
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Superstep.
    pub step: u32,
    /// From 1.
    pub attempt: u32,
    /// Supersteps left.
    pub remaining_steps: u32,
    /// Tenant.
    pub tenant: Option<String>,
    /// Run context.
    pub context: Value,
    /// Input.
    pub input: Value,
    /// The node's configuration in the graph; `null` if there is none.
    pub config: Value,
    /// What failed, for a node that handles it: `{ node, task, code, message, details }`.
    pub error: Option<Value>,
}

/// What a node decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    /// Writes in order.
    pub writes: Vec<Write>,
    /// Targets in place of the edges, `END` included as text; empty for the edges.
    pub goto: Vec<String>,
    /// Further tasks.
    pub sends: Vec<SendTask>,
    /// Whether all of it is for the graph above the node's own, which ends with this superstep.
    pub for_parent: bool,
}

/// One HTTP request for a plugin's handler.
#[derive(Clone, Debug)]
pub struct WebRequest {
    /// Upper case.
    pub method: String,
    /// Path as the app sees it.
    pub path: String,
    /// The pattern that matched.
    pub route: String,
    /// Path parameters.
    pub params: Vec<(String, String)>,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// Tenant.
    pub tenant: Option<String>,
}

/// The wire form of a handed-off stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// The host's own server-sent events.
    Sse,
    /// AI SDK UI message stream.
    AiSdk,
    /// AG-UI.
    AgUi,
    /// A mapping of the app.
    Custom(String),
}

/// A stream that the host serves in place of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOff {
    /// The thread.
    pub thread: ThreadId,
    /// The run to follow; without it the newest.
    pub run: Option<RunId>,
    /// The wire form.
    pub format: StreamFormat,
    /// Only events after this one.
    pub after: Option<u64>,
    /// Cancel the run when nobody has followed it for this long after a client went away; `None`
    /// lets it run.
    pub cancel_after_ms: Option<u64>,
    /// Nodes whose model calls are the conversation, in formats that show one; all if empty.
    pub nodes: Vec<NodeName>,
}

/// The body of a plugin's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebBody {
    /// None.
    Empty,
    /// Bytes.
    Bytes(Bytes),
    /// A blob.
    Blob(BlobRef),
    /// A stream.
    HandOff(HandOff),
}

/// One HTTP response of a plugin's handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebResponse {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: WebBody,
}

/// A loaded plugin. Every call gets a fresh instance, which is gone afterwards. Dropping a
/// future ends the guest.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &PluginInfo;

    /// Runs a node. Wall time is the engine's business; CPU time, memory and output are limited
    /// here.
    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, Ended>;

    /// Calls a tool. Limits as for a node.
    async fn call_tool(&self, call: ToolCall, gate: Arc<Gate>) -> Result<ToolOutput, Ended>;

    /// Answers an HTTP request.
    async fn handle(&self, request: WebRequest, gate: Arc<Gate>) -> Result<WebResponse, Ended>;

    /// Combines writes by one of its reducers.
    async fn reduce(
        &self,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        limits: &Limits,
    ) -> Result<Value, Ended>;
}
