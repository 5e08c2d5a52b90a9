//! Files that are loaded concurrently, and while the server serves.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use wattle::host::{Host, Overrides};
use wattle::load::Change;
use wattle::load::limits::SLOW_PLACES;
use wattle::server::{Server, ServerOptions};
use wattle_graph::definition::HumanDuration;
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::Gate;
use wattle_run::grant::Grants;
use wattle_run::ports::sandbox::{
    GuestError, LoadEffort, LoadError, NodeCall, NodeOutcome, PluginInfo, PluginToolCall,
    WebRequest, WebResponse,
};
use wattle_run::ports::{Plugin, Sandbox};

use crate::fixture::{Fixture, config, write_app};
use crate::native_sandbox::{NativeSandbox, TOOLBOX};
use crate::plugins::call_path;

/// A sandbox that compiles components whose names begin with `slow` only when a test releases them.
pub(crate) struct SlowSandbox {
    released: Semaphore,
    /// Number of slow compilations in progress.
    running: AtomicUsize,
    /// Maximum number of slow compilations at once.
    max_running: AtomicUsize,
    /// The components that were compiled.
    compiled: Mutex<BTreeSet<Bytes>>,
}

impl SlowSandbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            released: Semaphore::new(0),
            running: AtomicUsize::new(0),
            max_running: AtomicUsize::new(0),
            compiled: Mutex::default(),
        })
    }

    /// Lets a number of slow components be compiled.
    pub(crate) fn release(&self, components: usize) {
        self.released.add_permits(components);
    }

    /// Waits until this number of slow components is being compiled.
    pub(crate) async fn compiles(&self, components: usize) {
        while self.running.load(Ordering::SeqCst) != components {
            yield_now().await;
        }
    }

    async fn compile_slowly(&self) {
        let _guard = CompilationGuard(self);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_running.fetch_max(running, Ordering::SeqCst);
        self.released.acquire().await.unwrap().forget();
    }
}

/// Counts the end of a slow compilation, which can be aborted.
struct CompilationGuard<'a>(&'a SlowSandbox);

impl Drop for CompilationGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Sandbox for SlowSandbox {
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        let is_compiled = self.compiled.lock().unwrap().contains(&bytes);
        if !is_compiled {
            match (bytes.starts_with(b"native slow"), effort) {
                (_, LoadEffort::Cached) | (true, LoadEffort::Brief) => return Ok(None),
                (true, LoadEffort::Full) => self.compile_slowly().await,
                (false, _) => {}
            }
            self.compiled.lock().unwrap().insert(bytes.clone());
        }
        NativeSandbox.load_within(name, bytes, effort).await
    }
}

/// Starts a server that serves before its apps are loaded.
pub(crate) async fn serve(folder: TempDir, toml: &str, sandbox: &Arc<SlowSandbox>) -> Fixture {
    let mut config = config(folder.path(), toml);
    config.server.load_wait = HumanDuration::from_ms(0);
    let sandbox: Arc<dyn Sandbox> = sandbox.clone();
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let server = Server::start(config, ServerOptions { overrides, watch: false }).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Fixture { server, client, folder }
}

fn write_plugin(plugins: &Path, name: &str, content: &str) {
    std::fs::create_dir_all(plugins).unwrap();
    std::fs::write(plugins.join(format!("{name}.wasm")), content).unwrap();
}

async fn echo(fixture: &Fixture, app: &str) -> u16 {
    fixture.get(&format!("/apps/{app}/echo/x")).await.0
}

/// Waits until an app is loaded. Until then, requests to the app must be rejected as unavailable.
async fn is_served(fixture: &Fixture, app: &str) {
    loop {
        match echo(fixture, app).await {
            200 => return,
            status => assert_eq!(status, 503),
        }
    }
}

/// Returns what is being loaded according to the ready endpoint.
async fn loading(fixture: &Fixture) -> Value {
    let (status, ready) = fixture.get("/readyz").await;
    assert_eq!(status, 200, "{ready}");
    ready["loading"].clone()
}

#[tokio::test]
async fn a_slow_component_does_not_delay_other_apps() {
    let slow = SlowSandbox::new();
    let fixture = serve(tempfile::tempdir().unwrap(), "", &slow).await;
    for app in ["greeter", "slow", "zeta"] {
        write_app(&fixture.folder.path().join("plugins"), app);
    }
    let mut reload = Box::pin(fixture.server.reload());
    for app in ["greeter", "zeta"] {
        while status_beside(&mut reload, echo(&fixture, app)).await != 200 {}
    }
    assert_eq!(status_beside(&mut reload, echo(&fixture, "slow")).await, 503);
    slow.release(1);
    let changes = reload.await;
    assert!(matches!(changes[..], [_, _, Change::App { .. }]), "{changes:?}");
    assert_eq!(echo(&fixture, "slow").await, 200);
}

/// Returns the status of a response that the server sends while it is loading.
async fn status_beside(
    reload: &mut (impl Future<Output = Vec<Change>> + Unpin),
    status: impl Future<Output = u16>,
) -> u16 {
    tokio::select! {
        changes = reload => panic!("the reload did not wait: {changes:?}"),
        status = status => status,
    }
}

#[tokio::test]
async fn the_start_and_the_end_of_a_compilation_are_reported() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    write_app(&folder.path().join("plugins"), "slow");
    let sandbox: Arc<dyn Sandbox> = slow.clone();
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let host = Box::pin(Host::open(config(folder.path(), ""), overrides)).await.unwrap();
    let mut changes = host.loader.refresh().await;
    let Some(Change::Compiling { path, bytes: 11, .. }) = changes.next().await else { panic!() };
    assert!(path.ends_with("plugins/slow/slow.wasm"), "{}", path.display());
    slow.release(1);
    assert!(matches!(changes.next().await, Some(Change::Compiled { .. })));
    assert!(matches!(changes.next().await, Some(Change::App { .. })));
    assert_eq!(changes.next().await, None);
    host.close().await;
}

#[tokio::test]
async fn a_server_serves_while_an_app_is_loaded_which_is_unavailable() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    for app in ["greeter", "slow"] {
        write_app(&folder.path().join("plugins"), app);
    }
    let fixture = serve(folder, "[apps.slow]\nmount = \"/\"\n", &slow).await;
    is_served(&fixture, "greeter").await;
    slow.compiles(1).await;
    let expected = json!({ "total": 1, "apps": ["slow"], "plugins": [] });
    assert_eq!(loading(&fixture).await, expected);
    let warnings = fixture.server.warnings();
    assert!(!warnings.iter().any(|warning| warning.contains("[apps.slow]")), "{warnings:?}");

    for path in ["/apps/slow/echo/x", "/echo/x", "/api/v1/apps/slow", "/api/v1/plugins/slow"] {
        let response = fixture.client.get(fixture.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 503, "{path}");
        assert!(response.headers().contains_key("retry-after"), "{path}");
        let problem: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(problem["code"], "unavailable", "{problem}");
        assert_eq!(problem["details"], json!({ "loading": ["slow"] }), "{problem}");
    }
    let start = json!({ "input": { "name": "Ada" } });
    assert_eq!(fixture.post("/api/v1/apps/slow/runs", &start).await.0, 503);
    assert_eq!(fixture.post("/api/v1/apps/greeter/runs", &start).await.0, 202);
    // The graph name has no app prefix, so the graph may belong to the app that is being loaded.
    assert_eq!(fixture.get("/assistants/Nope").await.0, 503);
    assert_eq!(fixture.get("/assistants/slow%2FGreet").await.0, 503);
    assert_eq!(echo(&fixture, "nobody").await, 404);

    slow.release(1);
    is_served(&fixture, "slow").await;
    while !loading(&fixture).await.is_null() {}
    assert_eq!(fixture.get("/echo/x").await.0, 200);
    assert_eq!(fixture.get("/assistants/Nope").await.0, 422);
    assert_eq!(fixture.get("/api/v1/plugins/nobody").await.0, 404);
}

#[tokio::test]
async fn a_folder_of_slow_components_delays_no_other_file() {
    const COMPONENTS: usize = 40;
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    let plugins = folder.path().join("plugins");
    for number in 0..COMPONENTS {
        write_plugin(&plugins, &format!("slow{number}"), &format!("native slow{number}"));
    }
    let fixture = serve(folder, "", &slow).await;
    slow.compiles(SLOW_PLACES).await;
    assert_eq!(loading(&fixture).await["total"], COMPONENTS);
    // An app that must be compiled, and a later version of it.
    write_app(&plugins, "greeter");
    assert!(matches!(fixture.server.reload().await[..], [Change::App { .. }]));
    assert_eq!(echo(&fixture, "greeter").await, 200);
    std::fs::write(plugins.join("greeter/greeter.wasm"), "native again").unwrap();
    assert!(matches!(fixture.server.reload().await[..], [Change::App { .. }]));
    // The other components are compiled when one component is complete.
    slow.release(1);
    while loading(&fixture).await["total"] != COMPONENTS - 1 {}
    slow.compiles(SLOW_PLACES).await;
    // The loads end because their files are removed.
    for number in 0..COMPONENTS {
        std::fs::remove_file(plugins.join(format!("slow{number}.wasm"))).unwrap();
    }
    assert!(matches!(fixture.server.reload().await[..], [Change::Removed { .. }]));
    assert!(loading(&fixture).await.is_null());
    slow.compiles(0).await;
    assert_eq!(slow.max_running.load(Ordering::SeqCst), SLOW_PLACES);
}

#[tokio::test]
async fn a_new_version_of_a_file_replaces_the_one_that_is_loaded() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    let plugins = folder.path().join("plugins");
    write_plugin(&plugins, "shared", "native slow");
    let fixture = serve(folder, "", &slow).await;
    slow.compiles(1).await;
    write_plugin(&plugins, "shared", "native and quick");
    assert!(matches!(fixture.server.reload().await[..], [Change::Plugin { .. }]));
    slow.compiles(0).await;
    let (status, found) = fixture.get("/api/v1/plugins/shared").await;
    assert_eq!((status, &found[0]["size_bytes"]), (200, &json!("native and quick".len())));
}

#[tokio::test]
async fn an_app_is_loaded_when_the_plugins_that_it_uses_are_loaded() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let graph = "[graphs.G]\nentry = \"greet\"\n[graphs.G.channels.name]\n\
                 [graphs.G.channels.greeting]\n[graphs.G.nodes.greet]\nplugin = \"shared\"\n";
    std::fs::write(plugins.join("greeter/graph.toml"), graph).unwrap();
    write_plugin(&plugins, "shared", "native slow");
    let fixture = serve(folder, "", &slow).await;
    slow.compiles(1).await;
    assert_eq!(echo(&fixture, "greeter").await, 503);
    let expected = json!({ "total": 2, "apps": ["greeter"], "plugins": ["shared"] });
    assert_eq!(loading(&fixture).await, expected);
    slow.release(1);
    is_served(&fixture, "greeter").await;
    while !loading(&fixture).await.is_null() {}
    assert_eq!(fixture.get("/api/v1/problems").await.1, json!([]));
}

/// A sandbox whose plugins check on which thread their description is read.
#[derive(Default)]
struct Described {
    is_read_elsewhere: Arc<AtomicBool>,
}

#[async_trait]
impl Sandbox for Described {
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        _: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        Ok(Some(Arc::new(DescribedPlugin {
            plugin: NativeSandbox.load(name, bytes).await?,
            home: thread::current().id(),
            runtime: Handle::current(),
            is_read_elsewhere: self.is_read_elsewhere.clone(),
        })))
    }
}

struct DescribedPlugin {
    plugin: Arc<dyn Plugin>,
    /// The only thread of the runtime.
    home: ThreadId,
    runtime: Handle,
    is_read_elsewhere: Arc<AtomicBool>,
}

#[async_trait]
impl Plugin for DescribedPlugin {
    /// Returns the description of the plugin. On any thread other than the only thread of the
    /// runtime, first waits until the runtime has executed a new task, which the runtime cannot do
    /// while its thread is blocked.
    fn info(&self) -> &PluginInfo {
        if thread::current().id() != self.home {
            let (tell, told) = channel();
            self.runtime.spawn(async move { tell.send(()) });
            told.recv().unwrap();
            self.is_read_elsewhere.store(true, Ordering::Relaxed);
        }
        self.plugin.info()
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        self.plugin.run_node(call, gate).await
    }

    async fn call_tool(
        &self,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        self.plugin.call_tool(call, gate).await
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        self.plugin.handle(request, gate).await
    }

    async fn reduce(
        &self,
        app: &AppName,
        reducer: &str,
        current: Option<Value>,
        updates: Vec<Value>,
        grants: &Grants,
    ) -> Result<Value, GuestError> {
        self.plugin.reduce(app, reducer, current, updates, grants).await
    }
}

/// The check of graphs reads the descriptions of plugins.
#[tokio::test]
async fn the_check_of_graphs_does_not_block_other_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let described = Described::default();
    let is_read_elsewhere = described.is_read_elsewhere.clone();
    let sandbox: Arc<dyn Sandbox> = Arc::new(described);
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let options = ServerOptions { overrides, watch: false };
    let server = Server::start(config(folder.path(), ""), options).await.unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let changes = server.reload().await;
    assert!(matches!(changes[..], [Change::App { .. }]), "{changes:?}");
    assert!(is_read_elsewhere.load(Ordering::Relaxed));
}

#[tokio::test]
async fn grants_of_a_removed_plugin_file_do_not_apply_to_an_app_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let standalone = plugins.join("greeter.wasm");
    std::fs::write(&standalone, "native standalone").unwrap();
    let table = "[grants.greeter]\ntenant_routes = [\"chat\"]\n";
    let sandbox: Arc<dyn Sandbox> = Arc::new(NativeSandbox);
    let overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    let host = Box::pin(Host::open(config(folder.path(), table), overrides)).await.unwrap();
    std::fs::remove_file(standalone).unwrap();
    host.loader.refresh().await.all(|_| {}).await;
    let app = host.engine.catalog().app(&"greeter".parse().unwrap()).unwrap();
    assert!(app.grants_of(&"greeter".parse().unwrap()).tenant_routes.is_empty());
    host.close().await;
}

#[tokio::test]
async fn a_cycle_with_a_node_that_may_raise_an_interrupt_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let graph = "[graphs.G]\nentry = \"ask\"\nnodes.ask = {}\n\
                 edges = [{ from = \"ask\", to = \"ask\" }]\n";
    std::fs::write(plugins.join("greeter/graph.toml"), graph).unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let changes = &fixture.server.changes;
    assert!(matches!(changes[..], [Change::App { .. }]), "{changes:?}");
}

#[tokio::test]
async fn a_standalone_plugin_is_not_called_as_an_app_that_is_being_loaded() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    let plugins = folder.path().join("plugins");
    write_app(&plugins, TOOLBOX.0);
    write_plugin(&plugins.join(TOOLBOX.0), TOOLBOX.0, "native slow");
    write_plugin(&plugins, TOOLBOX.0, "native");
    let fixture = serve(folder, "", &slow).await;
    slow.compiles(1).await;
    let call = call_path(TOOLBOX.0, TOOLBOX.1);
    let (status, problem) = fixture.post(&call, &json!({ "input": {} })).await;
    assert_eq!(status, 409, "{problem}");
    slow.release(1);
}

#[tokio::test]
async fn a_call_of_a_standalone_plugin_that_is_being_loaded_can_be_retried() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    write_plugin(&folder.path().join("plugins"), TOOLBOX.0, "native slow");
    let fixture = serve(folder, "", &slow).await;
    slow.compiles(1).await;
    let call = call_path(TOOLBOX.0, TOOLBOX.1);
    let (status, problem) = fixture.post(&call, &json!({ "input": {} })).await;
    assert_eq!((status, &problem["code"]), (503, &json!("unavailable")), "{problem}");
    slow.release(1);
}
