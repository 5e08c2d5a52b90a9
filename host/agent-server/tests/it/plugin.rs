//! A plugin whose nodes are closures, and adapters for ports that a test does not use.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, ChannelName, Digest, PluginName};
use wattle_graph::llm::{Completion, CompletionRequest};
use wattle_graph::tool::ToolOutput;
use wattle_run::caller_id::CallerId;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::{Grants, SqlRule};
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::hostcall::sql::{Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::sandbox::{
    GuestError, NodeCall, NodeInfo, NodeOutcome, PluginInfo, PluginToolCall, WebRequest,
    WebResponse,
};
use wattle_run::ports::sql::SqlTransaction;
use wattle_run::ports::{BlobStore, Caller, Clock, Model, Net, Plugin, Sql};

type Work = std::pin::Pin<Box<dyn Future<Output = Result<NodeOutcome, GuestError>> + Send>>;
type Node = Arc<dyn Fn(NodeCall, Arc<Gate>) -> Work + Send + Sync>;

/// A plugin whose nodes are Rust closures.
pub(crate) struct Closures {
    info: PluginInfo,
    nodes: BTreeMap<String, Node>,
}

impl Closures {
    pub(crate) fn new(name: &str) -> Self {
        let info = PluginInfo {
            name: PluginName::new(name).unwrap(),
            digest: Digest::of(name.as_bytes()),
            size_bytes: 0,
            contract: "0.1.0".into(),
            imports: Vec::new(),
            exports: Vec::new(),
            nodes: Vec::new(),
            tools: Vec::new(),
            reducers: Vec::new(),
            routes: Vec::new(),
            refused: Vec::new(),
            manifest: None,
        };
        Self { info, nodes: BTreeMap::new() }
    }

    /// Adds a node that returns an object of channel updates.
    pub(crate) fn node<F, Fut>(mut self, name: &str, run: F) -> Self
    where
        F: Fn(NodeCall, Arc<Gate>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, CallError>> + Send + 'static,
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
}

fn ended(stop: CallError) -> GuestError {
    match stop {
        CallError::Failure(failure) => GuestError::Failure(failure),
        CallError::Unwind(unwind) => GuestError::Unwound(unwind),
    }
}

fn outcome(value: Value) -> NodeOutcome {
    let Value::Object(fields) = value else { return NodeOutcome::default() };
    let write = |(name, value): (String, Value)| Write {
        channel: ChannelName::new(&name).unwrap(),
        value,
        overwrite: false,
    };
    NodeOutcome { writes: fields.into_iter().map(write).collect(), ..NodeOutcome::default() }
}

#[async_trait]
impl Plugin for Closures {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        self.nodes[&call.node](call, gate).await
    }

    async fn call_tool(&self, _: PluginToolCall, _: Arc<Gate>) -> Result<ToolOutput, GuestError> {
        Err(GuestError::Host(Failure::unsupported("tools")))
    }

    async fn handle(&self, _: WebRequest, _: Arc<Gate>) -> Result<WebResponse, GuestError> {
        Err(GuestError::Host(Failure::unsupported("web")))
    }

    async fn reduce(
        &self,
        _: &AppName,
        _: &str,
        _: Option<Value>,
        _: Vec<Value>,
        _: &Grants,
    ) -> Result<Value, GuestError> {
        Err(GuestError::Host(Failure::unsupported("reducers")))
    }
}

/// Adapters for ports that a test does not use. Their methods fail with `unsupported`.
pub(crate) struct Nothing;

#[async_trait]
impl Model for Nothing {
    fn has_route(&self, _: &Caller, _: &str) -> bool {
        false
    }

    fn route(&self, _: &Caller, _: &str) -> Option<RouteInfo> {
        None
    }

    async fn complete(
        &self,
        _: &Caller,
        _: &CompletionRequest,
        _: &dyn BlobStore,
        _: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        Err(Failure::unsupported("llm"))
    }

    async fn set_route(&self, _: &Caller, _: &str, _: Value) -> Result<(), Failure> {
        Err(Failure::unsupported("llm"))
    }

    async fn get_route(&self, _: &Caller, _: &str) -> Result<Option<Value>, Failure> {
        Err(Failure::unsupported("llm"))
    }

    async fn remove_route(&self, _: &Caller, _: &str) -> Result<(), Failure> {
        Err(Failure::unsupported("llm"))
    }
}

#[async_trait]
impl Net for Nothing {
    async fn send(
        &self,
        _: &Caller,
        _: &Grants,
        _: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        Err(Failure::unsupported("http"))
    }
}

#[async_trait]
impl Sql for Nothing {
    async fn dialect(&self, _: &str) -> Result<&'static str, Failure> {
        Err(Failure::unsupported("sql"))
    }

    async fn query(
        &self,
        _: CallerId,
        _: &str,
        _: &SqlRule,
        _: &SqlLimits,
        _: &str,
        _: &[SqlValue],
    ) -> Result<Rows, Failure> {
        Err(Failure::unsupported("sql"))
    }

    async fn begin(
        &self,
        _: CallerId,
        _: &str,
        _: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        Err(Failure::unsupported("sql"))
    }
}

/// A clock that runs from a fixed start.
pub(crate) struct Ticking(pub(crate) Instant);

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        1_736_908_245_123 + i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}
