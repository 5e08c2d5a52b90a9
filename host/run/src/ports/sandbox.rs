//! Port: the execution of guests. This port depends on the gate, which the sandbox passes to every
//! guest; the gate and the other ports do not depend on this port.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::check::NodeReads;
use wattle_graph::event::{Send as SendTask, Write};
use wattle_graph::id::{
    AppName, ChannelName, Digest, GraphName, NodeName, PluginName, RunId, TaskId, ThreadId,
};
use wattle_graph::json_text::JsonWithText;
use wattle_graph::plan::{CutInput, TaskInput};

pub use crate::hostcall::tools::{PluginToolCall, ToolHints, ToolInfo};

use crate::gate::Gate;
pub use crate::gate::unwind::GuestError;
use crate::grant::Grants;
use crate::ports::blob::BlobRef;
use crate::ports::openapi::EndpointDescription;
use wattle_graph::tool::ToolOutput;

/// Loads plugins.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Checks and compiles a component (or a core module that contains its component type), and
    /// reads its description. Called when a file appears or changes. A failed load must leave
    /// nothing behind, whatever the bytes are. Returns `None` if the load takes more than `effort`,
    /// or if a load of the same bytes that may take more is under way.
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError>;

    /// Loads a plugin with [`LoadEffort::Full`].
    async fn load(&self, name: &PluginName, bytes: Bytes) -> Result<Arc<dyn Plugin>, LoadError> {
        let loaded = self.load_within(name, bytes, LoadEffort::Full).await?;
        loaded.ok_or_else(|| LoadError {
            plugin: name.clone(),
            code: "invalid",
            message: "it was not compiled".into(),
            hint: "load it again".into(),
        })
    }
}

/// The work that a load may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadEffort {
    /// The component is not compiled: its code is in memory or in a cache.
    Cached,
    /// The component is compiled if that takes few seconds of CPU time.
    Brief,
    /// The component is compiled within all limits of the sandbox.
    Full,
}

/// The code of the error for a component whose compiled code does not fit in the memory of the code
/// of all loaded components. The load may succeed once other code is unloaded.
pub const CODE_MEMORY: &str = "code-memory";

/// The error for a file that is not a valid plugin, or that cannot be loaded at present. The hint
/// says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin `{plugin}` cannot be loaded: {message}\n  hint: {hint}")]
pub struct LoadError {
    /// The plugin.
    pub plugin: PluginName,
    /// A stable code: `not-wasm`, `core-module`, `wit-version`, `missing-export`, `unknown-import`,
    /// `invalid`, `describe`, `limit`, `panic`, [`CODE_MEMORY`].
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// The description of a node, as its plugin gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Name in the plugin.
    pub name: String,
    /// Description for people.
    pub doc: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// JSON Schema of the writes.
    pub output_schema: Value,
    /// JSON Schema of the node's configuration in a graph, if the plugin gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// The channels that the node reads, if the plugin gives them apart from the input schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<NodeReads>,
}

/// The description of a reducer, as its plugin gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReducerInfo {
    /// Name in the plugin.
    pub name: String,
    /// Description for people.
    pub doc: String,
}

/// An HTTP endpoint of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebRoute {
    /// Method in upper case.
    pub method: String,
    /// Pattern of the path, such as `/api/items/{id}`.
    pub path: String,
    /// OpenAPI description, if the plugin gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openapi: Option<EndpointDescription>,
}

/// A function of a typed component that is not a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedFunction {
    /// The function, such as `acme:shop/orders.open`.
    pub function: String,
    /// Why it is not a tool.
    pub reason: String,
}

/// The description of a loaded plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginInfo {
    /// Name of the plugin: the file name without extension, unless the app sets another one.
    pub name: PluginName,
    /// Digest of the bytes that were loaded.
    pub digest: Digest,
    /// Size of the component in bytes.
    pub size_bytes: u64,
    /// Version of `wattle:plugin` that the plugin was built for. Empty for a typed component: a
    /// component without an interface of the contract, whose functions are tools.
    pub contract: String,
    /// Imported interfaces, such as `wattle:plugin/llm`.
    pub imports: Vec<String>,
    /// Exported interfaces, and exported functions of a typed component.
    pub exports: Vec<String>,
    /// Nodes of the plugin.
    pub nodes: Vec<NodeInfo>,
    /// Tools of the plugin.
    pub tools: Vec<ToolInfo>,
    /// Reducers of the plugin.
    pub reducers: Vec<ReducerInfo>,
    /// HTTP endpoints of the plugin.
    pub routes: Vec<WebRoute>,
    /// Functions of a typed component that are not tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedFunction>,
    /// The needs of the plugin, as TOML, from the custom section `wattle:manifest`.
    pub manifest: Option<String>,
}

/// One execution of a node.
#[derive(Clone, Debug)]
pub struct NodeCall {
    /// Name of the node in the plugin.
    pub node: String,
    /// The graph.
    pub graph: GraphName,
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Number of the superstep.
    pub step: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Supersteps that the recursion limit still allows.
    pub remaining_steps: u32,
    /// Tenant.
    pub tenant: Option<String>,
    /// Run context.
    pub context: Arc<JsonWithText>,
    /// Input, with the whole conversation.
    pub input: TaskInput,
    /// The conversation in the input; `None` if the node declares none.
    pub conversation: Option<InputConversation>,
    /// The node's configuration in the graph; `null` if there is none.
    pub config: Arc<JsonWithText>,
    /// The failure, if the node is an error handler: `{ node, task, code, message, details }`.
    pub error: Option<Value>,
}

impl NodeCall {
    /// Returns the input as a guest gets it: with the current turn of the conversation.
    pub fn guest_input(&self) -> CutInput<'_> {
        let cut = self.conversation.as_ref().map(|it| (it.channel.as_str(), it.from));
        CutInput::new(&self.input, cut)
    }
}

/// The conversation in the input of a node: a list of messages, of which a guest gets the current
/// turn. An input without a list there has a conversation without messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputConversation {
    /// The channel, which is also the name of the field of the input.
    pub channel: ChannelName,
    /// Position of the first message that a guest gets: that of the current turn, see
    /// [`turn_start`](wattle_graph::conversation::turn_start), or 0 for a node that reads the whole
    /// list.
    pub from: usize,
    /// Number of messages in the list.
    pub length: usize,
}

/// The outcome of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    /// Writes in order.
    pub writes: Vec<Write>,
    /// Names of the nodes to run next in place of the edges; `END` ends the path. Empty to follow
    /// the edges.
    pub goto: Vec<String>,
    /// Further tasks of the next superstep.
    pub sends: Vec<SendTask>,
    /// True if the outcome is for the parent graph. The node's own graph then ends with this
    /// superstep.
    pub for_parent: bool,
}

/// An HTTP request for the web handler of a plugin.
#[derive(Clone, Debug)]
pub struct WebRequest {
    /// Method in upper case.
    pub method: String,
    /// Path within the app.
    pub path: String,
    /// Pattern of the route that matched.
    pub route: String,
    /// Path parameters.
    pub params: Vec<(String, String)>,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// Tenant.
    pub tenant: Option<String>,
}

/// The format of a stream of events that a web handler delegates to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// The host's own server-sent events.
    Sse,
    /// AI SDK UI message stream.
    AiSdk,
    /// AG-UI.
    AgUi,
    /// A stream projection of the app, by name.
    Custom(String),
}

/// A stream that the host serves in place of the web handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOff {
    /// The thread.
    pub thread: ThreadId,
    /// The run to follow. Default: the newest run.
    pub run: Option<RunId>,
    /// Format of the stream.
    pub format: StreamFormat,
    /// Only events after this sequence number.
    pub after: Option<u64>,
    /// Time in milliseconds after which the run is cancelled if a client has disconnected and no
    /// client follows the run. `None` lets the run continue.
    pub cancel_after_ms: Option<u64>,
    /// Nodes whose model calls form the conversation, in formats that show one. Empty for all
    /// nodes.
    pub nodes: Vec<NodeName>,
}

/// The body of a plugin's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebBody {
    /// No body.
    Empty,
    /// Bytes.
    Bytes(Bytes),
    /// A blob.
    Blob(BlobRef),
    /// A stream.
    HandOff(HandOff),
}

/// The response of a web handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebResponse {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: WebBody,
}

/// A loaded plugin. Every call gets a fresh instance, which is dropped afterwards. Dropping a
/// future ends the guest.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// Returns the description of the plugin.
    fn info(&self) -> &PluginInfo;

    /// Executes a node. The implementation limits CPU time, memory and output; the engine limits
    /// the wall time.
    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError>;

    /// Calls a tool, under the same limits as a node.
    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError>;

    /// Handles an HTTP request.
    async fn handle(&self, request: WebRequest, gate: Arc<Gate>)
    -> Result<WebResponse, GuestError>;

    /// Combines writes with a reducer of the plugin, for an app. The grants are those of the plugin
    /// in the app; a reducer uses only their limits. The engine limits the wall time.
    async fn reduce(
        &self,
        app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        grants: &Grants,
    ) -> Result<Value, GuestError>;
}
