//! A plugin whose nodes are closures. The engine runs it like a component.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, ChannelName, Digest, PluginName};
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::Grants;
use wattle_run::ports::Plugin;
use wattle_run::ports::sandbox::{
    GuestError, NodeCall, NodeInfo, NodeOutcome, PluginInfo, PluginToolCall, ToolHints, ToolInfo,
    WebBody, WebRequest, WebResponse,
};

type Node = Arc<
    dyn Fn(NodeCall, Arc<Gate>) -> BoxFuture<'static, Result<NodeOutcome, GuestError>>
        + Send
        + Sync,
>;

type Tool = Arc<
    dyn Fn(PluginToolCall, Arc<Gate>) -> BoxFuture<'static, Result<ToolOutput, GuestError>>
        + Send
        + Sync,
>;

type Web = Arc<
    dyn Fn(WebRequest, Arc<Gate>) -> BoxFuture<'static, Result<WebResponse, GuestError>>
        + Send
        + Sync,
>;

type Reducer = Arc<dyn Fn(Option<Value>, Vec<Value>) -> BoxFuture<'static, Value> + Send + Sync>;

/// A plugin in plain Rust.
pub struct NativePlugin {
    info: PluginInfo,
    nodes: BTreeMap<String, Node>,
    tools: BTreeMap<String, Tool>,
    reducers: BTreeMap<String, Reducer>,
    web: Option<Web>,
}

/// The result of a node, a tool or the web handler of such a plugin.
pub type Answer = Result<Value, CallError>;

impl NativePlugin {
    /// Creates a plugin without nodes. Its digest is that of `version`.
    ///
    /// # Panics
    ///
    /// If the name is not valid.
    pub fn new(name: &str, version: &str) -> Self {
        let info = PluginInfo {
            name: PluginName::new(name).expect("a valid plugin name"),
            digest: Digest::of(version.as_bytes()),
            size_bytes: 0,
            contract: "0.1.0".into(),
            imports: Vec::new(),
            exports: vec!["wattle:plugin/node".into()],
            nodes: Vec::new(),
            tools: Vec::new(),
            reducers: Vec::new(),
            routes: Vec::new(),
            refused: Vec::new(),
            manifest: None,
        };
        let (nodes, tools, reducers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { info, nodes, tools, reducers, web: None }
    }

    /// Adds a node that returns an object of channel updates. The keys `$goto` (list of names) and
    /// `$send` (list of `{node, input}`) select the next tasks, `$parent` returns the outcome to
    /// the parent graph, and `$overwrite` names channels whose value is overwritten.
    pub fn node<F, Fut>(mut self, name: &str, run: F) -> Self
    where
        F: Fn(NodeCall, Arc<Gate>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.info.nodes.push(NodeInfo {
            name: name.to_owned(),
            doc: String::new(),
            input_schema: json!({}),
            output_schema: json!({}),
            config_schema: None,
            reads: None,
        });
        let node: Node = Arc::new(move |call, gate| {
            let work = run(call, gate);
            Box::pin(async move { work.await.map(outcome).map_err(ended) })
        });
        self.nodes.insert(name.to_owned(), node);
        self
    }

    /// Adds a tool whose arguments are an object and whose result is its structured output.
    pub fn tool<F, Fut>(mut self, name: &str, run: F) -> Self
    where
        F: Fn(PluginToolCall, Arc<Gate>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.info.tools.push(ToolInfo {
            name: name.to_owned(),
            description: format!("The tool {name}"),
            arguments_schema: json!({ "type": "object" }),
            accepts_invalid: false,
            hints: ToolHints::default(),
            reference: None,
            unavailable: None,
        });
        let tool: Tool = Arc::new(move |call, gate| {
            let work = run(call, gate);
            Box::pin(async move {
                match work.await {
                    Ok(value) => {
                        Ok(ToolOutput { structured: Some(value), ..ToolOutput::default() })
                    }
                    Err(stop) => Err(ended(stop)),
                }
            })
        });
        self.tools.insert(name.to_owned(), tool);
        self
    }

    /// Adds a reducer, which combines the current value and the writes of a superstep.
    pub fn reducer<F, Fut>(mut self, name: &str, run: F) -> Self
    where
        F: Fn(Option<Value>, Vec<Value>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Value> + Send + 'static,
    {
        let reducer: Reducer = Arc::new(move |current, writes| Box::pin(run(current, writes)));
        self.reducers.insert(name.to_owned(), reducer);
        self
    }

    /// Sets the web handler, which responds with the JSON that it returns.
    pub fn web<F, Fut>(mut self, run: F) -> Self
    where
        F: Fn(WebRequest, Arc<Gate>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let web: Web = Arc::new(move |request, gate| {
            let work = run(request, gate);
            Box::pin(async move {
                let body = WebBody::Bytes(work.await.map_err(ended)?.to_string().into());
                Ok(WebResponse { status: 200, headers: Vec::new(), body })
            })
        });
        self.web = Some(web);
        self
    }
}

fn ended(stop: CallError) -> GuestError {
    match stop {
        CallError::Failure(failure) => GuestError::Failure(failure),
        CallError::Unwind(unwind) => GuestError::Unwound(unwind),
    }
}

fn outcome(value: Value) -> NodeOutcome {
    let mut outcome = NodeOutcome::default();
    let Value::Object(mut fields) = value else { return outcome };
    let overwritten = fields.remove("$overwrite").unwrap_or_default();
    let overwritten: Vec<String> = serde_json::from_value(overwritten).unwrap_or_default();
    for (name, value) in fields {
        match name.as_str() {
            "$parent" => outcome.for_parent = value == json!(true),
            "$goto" => outcome.goto = serde_json::from_value(value).unwrap_or_default(),
            "$send" => outcome.sends = serde_json::from_value(value).unwrap_or_default(),
            _ => outcome.writes.push(Write {
                channel: ChannelName::new(&name).expect("a valid channel name"),
                value,
                overwrite: overwritten.contains(&name),
            }),
        }
    }
    outcome
}

#[async_trait]
impl Plugin for NativePlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        match self.nodes.get(&call.node) {
            Some(node) => node(call, gate).await,
            None => Err(GuestError::Host(Failure::internal(format!("no node `{}`", call.node)))),
        }
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        match self.tools.get(&call.tool) {
            Some(tool) => tool(call, gate).await,
            None => Err(GuestError::Host(Failure::internal(format!("no tool `{}`", call.tool)))),
        }
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        match &self.web {
            Some(web) => web(request, gate).await,
            None => Err(GuestError::Host(Failure::unsupported("web"))),
        }
    }

    async fn reduce(
        &self,
        _app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        _grants: &Grants,
    ) -> Result<Value, GuestError> {
        if let Some(reducer) = self.reducers.get(reducer) {
            return Ok(reducer(current, updates).await);
        }
        Err(GuestError::Failure(Failure::new("invalid", format!("no reducer `{reducer}`"))))
    }
}
