//! A server over an in-memory engine with one app, and requests to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;
use wattle_agent_server::{AgentServer, AgentServerConfig, UnknownKeys, WebhookSettings};
use wattle_api::{ApiConfig, ApiState, router_with};
use wattle_graph::check::{AnyPlugin, check_toml};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Digest};
use wattle_run::app::{App, GraphVersion, PluginGrants};
use wattle_run::caps::Caps;
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::store::Store;
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Clock, Memory, Model, Net, Plugin, Ports};
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};

use crate::plugin::{Closures, Nothing, Ticking};

/// `agent` writes a message and raises an interrupt. `slow` waits for a signal of the test.
/// `broken` fails. `outer` runs `agent` as a subgraph.
const GRAPHS: &str = r#"
[graphs.agent]
entry = "greet"
[graphs.agent.channels]
messages = { reducer = "messages" }
value = {}
items = { reducer = "append" }
[graphs.agent.nodes.greet]
plugin = "p"
[graphs.agent.nodes.ask]
plugin = "p"
[[graphs.agent.edges]]
from = "greet"
to = "ask"

[graphs.slow]
entry = "hold"
[graphs.slow.channels]
items = { reducer = "append" }
word = {}
[graphs.slow.nodes.hold]
plugin = "p"

[graphs.broken]
entry = "fail"
[graphs.broken.channels]
value = {}
[graphs.broken.nodes.fail]
plugin = "p"

[graphs.outer]
entry = "inner"
[graphs.outer.channels]
messages = { reducer = "messages" }
value = {}
items = { reducer = "append" }
[graphs.outer.nodes.inner]
graph = "agent"

[graphs.context]
entry = "tell"
context_schema = { type = "object", properties = { user = { type = "string" } } }
[graphs.context.channels]
value = {}
[graphs.context.nodes.tell]
plugin = "p"
"#;

/// A server over an in-memory engine.
pub(crate) struct Host {
    pub(crate) router: Router,
    pub(crate) engine: Engine,
    /// Whether nodes of `slow` may complete.
    pub(crate) release: watch::Sender<bool>,
    /// Number of nodes of `slow` that were started.
    pub(crate) started: watch::Receiver<usize>,
    pub(crate) state: ApiState,
    pub(crate) server: AgentServer,
    settings: AgentServerConfig,
    stop: watch::Sender<bool>,
}

/// The adapters and caps that a test replaces.
pub(crate) struct HostOptions {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: Arc<dyn Memory>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) net: Arc<dyn Net>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) webhooks: WebhookSettings,
    pub(crate) unknown_keys: UnknownKeys,
    pub(crate) caps: Caps,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            store: Arc::new(InMemoryStore::new()),
            memory: Arc::new(VolatileMemory::new()),
            model: Arc::new(Nothing),
            net: Arc::new(Nothing),
            clock: Arc::new(Ticking(Instant::now())),
            webhooks: WebhookSettings::default(),
            unknown_keys: UnknownKeys::default(),
            caps: Caps::default(),
        }
    }
}

/// A response whose body was read.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestResponse {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the body of a response with status 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
    }

    /// Returns the server-sent events of a stream: kind, data, id.
    #[track_caller]
    pub(crate) fn frames(&self) -> Vec<(String, Value, String)> {
        assert_eq!(self.status, 200, "{}", self.text);
        let blocks = self.text.split("\r\n\r\n").filter(|block| block.starts_with("event: "));
        let frame = |block: &str| {
            let field = |name: &str| {
                let line = block.split("\r\n").find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().to_owned()
            };
            let data = serde_json::from_str(&field("data: ")).unwrap();
            (field("event: "), data, field("id: "))
        };
        blocks.map(frame).collect()
    }
}

fn plugin(released: watch::Receiver<bool>, started: watch::Sender<usize>) -> Closures {
    Closures::new("p")
        .node("greet", |_, gate| async move {
            gate.emit(Emission::Custom { name: "progress".into(), data: json!({ "at": "greet" }) })
                .await?;
            Ok(json!({
                "messages": [{ "id": "m-1", "role": "assistant", "content": "Hello" }],
                "items": ["greeted"],
            }))
        })
        .node("ask", |_, gate| async move {
            let question =
                InterruptRequest { payload: json!("Are we good?"), response_schema: None };
            let answer = gate.ask(question).await?;
            Ok(json!({ "items": ["asked"], "value": answer }))
        })
        .node("hold", move |call, _| {
            let mut released = released.clone();
            started.send_modify(|started| *started += 1);
            async move {
                let _ = released.wait_for(|is_released| *is_released).await;
                let word = call.input.get("word").into_owned();
                Ok(json!({ "items": [word] }))
            }
        })
        .node("fail", |_, _| async move { Err(Failure::new(code::INVALID, "no way").into()) })
        .node("tell", |call, _| async move { Ok(json!({ "value": call.context })) })
}

fn app(graphs: &str, plugin: Closures) -> App {
    let plugin: Arc<dyn Plugin> = Arc::new(plugin);
    let name = plugin.info().name.clone();
    let plugins: BTreeMap<_, _> = [(name.clone(), plugin)].into();
    let graphs = check_toml("graph.toml", graphs, &AnyPlugin).unwrap();
    let grants = Grants { llm: ["chat".to_owned()].into(), ..Grants::default() };
    App {
        version: "0".into(),
        digest: Digest::of(b"test"),
        graphs: graphs
            .into_iter()
            .map(|graph| (graph.name.clone(), Arc::new(GraphVersion::new(graph, &plugins))))
            .collect(),
        plugins,
        grants: PluginGrants::from([(name, Arc::new(grants))]).into(),
        ..App::empty(AppName::new("test").unwrap())
    }
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with_config(ApiConfig::default())
    }

    pub(crate) fn with_config(config: ApiConfig) -> Self {
        Self::with_options(config, HostOptions::default())
    }

    /// Creates a server with the given adapters and caps.
    pub(crate) fn with_options(config: ApiConfig, options: HostOptions) -> Self {
        let (release, released) = watch::channel(true);
        let (starts, started) = watch::channel(0);
        let app = app(GRAPHS, plugin(released, starts));
        Self::of(config, app, options, (release, started))
    }

    /// Creates a server with the graphs `graphs` and one plugin, which may call a model.
    pub(crate) fn with_model(graphs: &str, plugin: Closures, model: Arc<dyn Model>) -> Self {
        let (release, started) = (watch::channel(true).0, watch::channel(0).1);
        let options = HostOptions { model, ..HostOptions::default() };
        Self::of(ApiConfig::default(), app(graphs, plugin), options, (release, started))
    }

    fn of(
        config: ApiConfig,
        app: App,
        options: HostOptions,
        (release, started): (watch::Sender<bool>, watch::Receiver<usize>),
    ) -> Self {
        let catalog = Catalog::new();
        catalog.install(app);
        let ports = Ports {
            store: options.store,
            blobs: Arc::new(InMemoryBlobs::new()),
            links: BlobLinks::new(b"test"),
            memory: options.memory,
            model: options.model,
            net: options.net,
            sql: Arc::new(Nothing),
            tools: Arc::new(NoToolServers),
            clock: options.clock,
            observer: Arc::new(NoObserver),
        };
        let engine_config = EngineConfig { caps: options.caps, ..EngineConfig::default() };
        let engine = Engine::new(ports, catalog, engine_config);
        let (stop, stopping) = watch::channel(false);
        let state = ApiState::new(engine.clone(), config, stopping);
        let settings =
            AgentServerConfig { webhooks: options.webhooks, unknown_keys: options.unknown_keys };
        let server = AgentServer::with_config(&state, settings.clone());
        let router = router(&state, &server);
        Self { router, engine, release, started, state, server, settings, stop }
    }

    /// Stops the background tasks and streams of the server.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops the server and creates another one over the same engine.
    pub(crate) fn restart(self) -> Self {
        self.stop();
        let (stop, stopping) = watch::channel(false);
        let mut state = self.state;
        state.stopping = stopping;
        let server = AgentServer::with_config(&state, self.settings.clone());
        let router = router(&state, &server);
        Self { router, state, server, stop, ..self }
    }

    /// Creates another server over the same engine, as after a restart.
    pub(crate) fn another_server(&self) -> (AgentServer, Router) {
        let server = AgentServer::new(&self.state);
        let router = router(&self.state, &server);
        (server, router)
    }

    /// Makes nodes of `slow` wait from now on.
    pub(crate) fn hold(&self) {
        self.release.send_replace(false);
    }

    /// Waits until `count` nodes of `slow` were started.
    pub(crate) async fn wait_for_started(&self, count: usize) {
        self.started.clone().wait_for(|started| *started >= count).await.unwrap();
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        read(self.raw(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(request("GET", path, None)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.send(request("POST", path, Some(body))).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> TestResponse {
        self.send(request(method, path, body)).await
    }

    /// Creates a thread.
    pub(crate) async fn thread(&self) -> String {
        let made = self.post("/threads", json!({ "metadata": {} })).await.ok();
        made["thread_id"].as_str().unwrap().to_owned()
    }
}

/// Returns the router of both APIs.
fn router(state: &ApiState, server: &AgentServer) -> Router {
    let state = state.clone().with_client_jobs(Arc::new(server.clone()));
    router_with(state, wattle_agent_server::router(server.clone()))
}

pub(crate) async fn read(response: Response) -> TestResponse {
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    TestResponse {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

pub(crate) fn request(method: &str, path: &str, body: Option<Value>) -> Request<Body> {
    let builder = Request::builder().method(method).uri(path).header("host", "localhost");
    match body {
        Some(body) => builder
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap(),
        None => builder.body(Body::empty()).unwrap(),
    }
}
