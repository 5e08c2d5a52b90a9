//! An engine with a memory store, scripted ports and one app, which can be killed and started again
//! on the same store.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wattle_graph::check::{AnyPlugin, check_toml};
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, GraphName, ThreadId};
use wattle_graph::limit::GraphLimits;
use wattle_kit::clock::ManualClock;
use wattle_run::app::{App, GraphVersion, PluginGrants};
use wattle_run::caps::Caps;
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::{Grants, ToolGrant};
use wattle_run::hostcall::runs::{
    CreateRun, EndedRun, InterruptView, Multitask, OnFailure, ResumeRun, RunOutcome, RunRef,
    RunService, StartRun, ThreadCreation,
};
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::store::{
    LeaseHolder, RunKind, RunOptions, RunSpec, StaleAnswers, ThreadSearch,
};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Memory, Net, Plugin, Ports, Sql, Store, ToolServers};
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};

use crate::native::NativePlugin;
use crate::scripted::{NoSql, ScriptedModel, ScriptedNet};

/// The start time of the world's clock: 2025-01-15T10:30:45.123+08:00.
pub const START_MS: i64 = 1_736_908_245_123;

/// An engine with one app named `test`.
pub struct World {
    /// The current engine.
    pub engine: Engine,
    /// The clock, which advances only on request.
    pub clock: ManualClock,
    /// The model, which counts calls.
    pub model: Arc<ScriptedModel>,
    /// The HTTP port, which counts calls.
    pub net: Arc<ScriptedNet>,
    ports: Ports,
    catalog: Arc<Catalog>,
    caps: Caps,
    runtime: Option<Runtime>,
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl World {
    /// Creates a world with one graph, in TOML, and one plugin.
    pub fn new(graph: &str, plugin: NativePlugin) -> Self {
        Self::with_sql(graph, plugin, Arc::new(NoSql), Grants::default())
    }

    /// Creates a world with databases. The grants are extended by the model route `chat`.
    pub fn with_sql(graph: &str, plugin: NativePlugin, sql: Arc<dyn Sql>, grants: Grants) -> Self {
        Self::with_plugin(graph, Arc::new(plugin), sql, grants)
    }

    /// Creates a world with any plugin, such as a component, and databases.
    pub fn with_plugin(
        graph: &str,
        plugin: Arc<dyn Plugin>,
        sql: Arc<dyn Sql>,
        grants: Grants,
    ) -> Self {
        Self::build(graph, vec![(plugin, grants)], sql, Arc::new(NoToolServers))
    }

    /// Creates a world with one graph and any plugins, such as components, with their grants.
    pub fn with_plugins(graph: &str, plugins: Vec<(Arc<dyn Plugin>, Grants)>) -> Self {
        Self::build(graph, plugins, Arc::new(NoSql), Arc::new(NoToolServers))
    }

    /// Creates a world with one graph, whose nodes are in the first of several plugins. It may call
    /// the tools of all other plugins and of the server `far`.
    pub fn with_tools(
        graph: &str,
        plugins: Vec<NativePlugin>,
        servers: Arc<dyn ToolServers>,
    ) -> Self {
        let references = plugins.iter().map(|plugin| format!("{}/*", plugin.info().name));
        let far = servers.has_server("far").then(|| "mcp:far/*".to_owned());
        let references = references.skip(1).chain(far);
        let tools: Vec<ToolGrant> =
            references.map(|text| text.parse().expect("a reference")).collect();
        let plugins = plugins.into_iter().enumerate().map(|(place, plugin)| {
            let tools = if place == 0 { tools.clone() } else { Vec::new() };
            (Arc::new(plugin) as Arc<dyn Plugin>, Grants { tools, ..Grants::default() })
        });
        Self::build(graph, plugins.collect(), Arc::new(NoSql), servers)
    }

    /// Creates a world with one graph and one plugin, which may call the tools of servers that its
    /// grants name.
    pub fn with_servers(
        graph: &str,
        plugin: NativePlugin,
        servers: Arc<dyn ToolServers>,
        grants: Grants,
    ) -> Self {
        let plugin: Arc<dyn Plugin> = Arc::new(plugin);
        Self::build(graph, vec![(plugin, grants)], Arc::new(NoSql), servers)
    }

    /// Creates a world with one graph and one plugin on any store.
    pub fn with_store(graph: &str, plugin: NativePlugin, store: Arc<dyn Store>) -> Self {
        let plugins = vec![(Arc::new(plugin) as Arc<dyn Plugin>, Grants::default())];
        let memory = Arc::new(VolatileMemory::new());
        Self::build_on((store, memory), graph, plugins, Arc::new(NoSql), Arc::new(NoToolServers))
    }

    /// Creates a world with one graph and one plugin, with an HTTP port in place of the scripted
    /// one.
    pub fn with_net(graph: &str, plugin: NativePlugin, net: Arc<dyn Net>) -> Self {
        let mut world = Self::new(graph, plugin);
        world.ports.net = net;
        world.restart();
        world
    }

    /// Creates a world with one graph and one plugin on any long-term memory.
    pub fn with_memory(
        graph: &str,
        plugin: NativePlugin,
        memory: Arc<dyn Memory>,
        grants: Grants,
    ) -> Self {
        let plugins = vec![(Arc::new(plugin) as Arc<dyn Plugin>, grants)];
        let stores = (Arc::new(InMemoryStore::new()) as Arc<dyn Store>, memory);
        Self::build_on(stores, graph, plugins, Arc::new(NoSql), Arc::new(NoToolServers))
    }

    fn build(
        graph: &str,
        plugins: Vec<(Arc<dyn Plugin>, Grants)>,
        sql: Arc<dyn Sql>,
        tools: Arc<dyn ToolServers>,
    ) -> Self {
        let memory = Arc::new(VolatileMemory::new());
        Self::build_on((Arc::new(InMemoryStore::new()), memory), graph, plugins, sql, tools)
    }

    fn build_on(
        (store, memory): (Arc<dyn Store>, Arc<dyn Memory>),
        graph: &str,
        mut plugins: Vec<(Arc<dyn Plugin>, Grants)>,
        sql: Arc<dyn Sql>,
        tools: Arc<dyn ToolServers>,
    ) -> Self {
        let clock = ManualClock::at_ms(START_MS).in_zone("Asia/Shanghai");
        let (model, net) = (Arc::new(ScriptedModel::default()), Arc::new(ScriptedNet::default()));
        let ports = Ports {
            store,
            blobs: Arc::new(InMemoryBlobs::new()),
            links: BlobLinks::new(b"test"),
            memory,
            model: model.clone(),
            net: net.clone(),
            sql,
            tools,
            clock: Arc::new(clock.clone()),
            observer: Arc::new(NoObserver),
        };
        for (_, grants) in &mut plugins {
            grants.llm.insert("chat".into());
        }
        let catalog = Catalog::new();
        catalog.install(app(graph, plugins));
        let caps = Caps::default();
        let (engine, runtime) = start(&ports, &catalog, &caps);
        Self { engine, clock, model, net, ports, catalog, caps, runtime: Some(runtime) }
    }

    /// Ends every run where it is, like a crash, and starts a new engine on the same store. Only
    /// [`Engine::recover`] continues the runs.
    pub async fn crash(&mut self) {
        // Batches that the engine queued before this moment become durable.
        tokio::task::yield_now().await;
        self.restart();
    }

    /// Starts a new engine with other caps on the same store.
    pub fn cap(&mut self, caps: Caps) {
        self.caps = caps;
        self.restart();
    }

    fn restart(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        let (engine, runtime) = start(&self.ports, &self.catalog, &self.caps);
        self.engine = engine;
        self.runtime = Some(runtime);
    }

    /// Installs the same code with other limits of graphs, and without grants.
    pub fn limit_graphs(&self, graph: &str, plugin: NativePlugin, limits: GraphLimits) {
        self.catalog.install(limited(graph, vec![(Arc::new(plugin), Grants::default())], limits));
    }

    /// Installs other code under the same name.
    pub fn install(&self, graph: &str, plugin: NativePlugin) {
        let grants = Grants { llm: ["chat".to_owned()].into(), ..Grants::default() };
        self.catalog.install(app(graph, vec![(Arc::new(plugin), grants)]));
    }

    /// Starts a run on a new thread.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn begin(&self, input: Value) -> Result<RunRef, Failure> {
        self.begin_on(None, input).await
    }

    /// Starts a run on a thread.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn begin_on(
        &self,
        thread: Option<&ThreadId>,
        input: Value,
    ) -> Result<RunRef, Failure> {
        self.engine.start(self.request(thread, input)).await
    }

    /// Returns the graph to run: if there are several, the one with the name `main`.
    fn main_graph(&self) -> Option<GraphName> {
        let app = self.catalog.app(&AppName::new("test").expect("a valid name"))?;
        app.graphs.keys().find(|name| name.as_str() == "main").cloned()
    }

    /// Returns the request of a run, which the test can change.
    ///
    /// # Panics
    ///
    /// Never.
    pub fn request(&self, thread: Option<&ThreadId>, input: Value) -> StartRun {
        StartRun {
            graph: self.main_graph(),
            thread: thread.cloned(),
            ..StartRun::new(AppName::new("test").expect("a valid name"), input)
        }
    }

    /// Starts a run on a new thread with run options.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn begin_as(&self, input: Value, options: RunOptions) -> Result<RunRef, Failure> {
        self.engine.start(StartRun { options, ..self.request(None, input) }).await
    }

    /// Starts a run with run options, and waits until it ends or is interrupted.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub async fn run_as(&self, input: Value, options: RunOptions) -> EndedRun {
        let run = self.begin_as(input, options).await.expect("the run starts");
        self.engine.wait(&run).await.expect("the run ends")
    }

    /// Starts a run and waits until it ends or is interrupted.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub async fn run(&self, input: Value) -> EndedRun {
        let run = self.begin(input).await.expect("the run starts");
        self.engine.wait(&run).await.expect("the run ends")
    }

    /// Starts a run of a graph, and waits until it ends or is interrupted.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub async fn run_graph(&self, graph: &str, input: Value) -> EndedRun {
        let graph = Some(GraphName::new(graph).expect("a valid name"));
        let request = StartRun { graph, ..self.request(None, input) };
        let run = self.engine.start(request).await.expect("the run starts");
        self.engine.wait(&run).await.expect("the run ends")
    }

    /// Returns the request of a run on an existing thread, after its other runs. The test can
    /// change the request.
    pub fn create_run(&self, thread: &ThreadId, kind: RunKind) -> CreateRun {
        CreateRun {
            thread: Some(thread.clone()),
            creation: ThreadCreation::Never,
            run: None,
            tenant: None,
            strategy: Multitask::Enqueue,
            options: RunOptions::default(),
            may_stay_pending: false,
            spec: RunSpec {
                kind,
                stale_answers: StaleAnswers::Reject,
                app: self.request(None, Value::Null).app,
                graph: None,
                context: Value::Null,
                metadata: BTreeMap::new(),
                due_ms: START_MS,
                ttl: None,
                client: Value::Null,
                principal: None,
            },
        }
    }

    /// Requests a run on a thread without other runs, and waits until it ends or is interrupted.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn run_on(&self, thread: &ThreadId, kind: RunKind) -> Result<EndedRun, Failure> {
        let request = self.create_run(thread, kind);
        let request = CreateRun { strategy: Multitask::Reject, ..request };
        let run = self.engine.create_run(request).await?;
        self.engine.wait(&RunRef { thread: run.thread, run: run.id }).await
    }

    /// Answers pending interrupts, and waits until the run ends or is interrupted.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn resume(
        &self,
        thread: &ThreadId,
        answers: &[(&str, Value)],
        on_failure: OnFailure,
    ) -> Result<EndedRun, Failure> {
        let answers =
            answers.iter().map(|(id, answer)| ((*id).to_owned(), answer.clone())).collect();
        let request = ResumeRun {
            run: None,
            thread: thread.clone(),
            answers,
            on_failure,
            app: None,
            tenant: None,
            options: RunOptions::default(),
            principal: None,
        };
        let run = self.engine.resume(request).await?;
        self.engine.wait(&run).await
    }

    /// Answers the only pending interrupt, and waits until the run ends or is interrupted.
    ///
    /// # Panics
    ///
    /// If the engine refuses the answer.
    pub async fn answer(&self, thread: &ThreadId, answer: Value) -> EndedRun {
        self.resume(thread, &[("", answer)], OnFailure::Keep).await.expect("the answer is taken")
    }

    /// Returns the threads in the list of pending interrupts, each with its interrupts.
    ///
    /// # Panics
    ///
    /// If the store fails.
    pub async fn pending_interrupts(&self) -> Vec<(ThreadId, Vec<InterruptView>)> {
        let page = self.engine.pending_interrupts(ThreadSearch::default()).await;
        let threads = page.expect("the threads can be read").threads.into_iter();
        threads.map(|thread| (thread.record.id, thread.interrupts)).collect()
    }

    /// Returns all events of a thread.
    ///
    /// # Panics
    ///
    /// If the store fails.
    pub async fn events(&self, thread: &ThreadId) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.seq);
            let page = self.engine.events(thread, after, usize::MAX).await;
            let page = page.expect("the log can be read");
            if page.is_empty() {
                return events;
            }
            events.extend(page);
        }
    }

    /// Returns the number of matching events of a thread.
    pub async fn count(&self, thread: &ThreadId, matches: impl Fn(&EventKind) -> bool) -> usize {
        self.events(thread).await.iter().filter(|event| matches(&event.kind)).count()
    }
}

fn start(ports: &Ports, catalog: &Arc<Catalog>, caps: &Caps) -> (Engine, Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let config = EngineConfig {
        runtime: Some(runtime.handle().clone()),
        // The next engine has the same holder, so after a crash it need not wait until the old
        // leases have expired.
        holder: Some(LeaseHolder("world".to_owned())),
        caps: caps.clone(),
        ..EngineConfig::default()
    };
    (Engine::new(ports.clone(), catalog.clone(), config), runtime)
}

/// Creates an app named `test` from graphs in TOML and plugins.
///
/// # Panics
///
/// If the graphs are not valid.
pub fn app(graph: &str, plugins: Vec<(Arc<dyn Plugin>, Grants)>) -> App {
    limited(graph, plugins, GraphLimits::default())
}

/// Creates an app named `test` with other limits of graphs, like [`app`].
///
/// # Panics
///
/// If the graphs are not valid.
pub fn limited(graph: &str, plugins: Vec<(Arc<dyn Plugin>, Grants)>, limits: GraphLimits) -> App {
    let graphs = match check_toml("graph.toml", graph, &AnyPlugin) {
        Ok(graphs) => graphs,
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("the test's graph is not valid:\n{}", problems.join("\n"));
        }
    };
    let mut grants = PluginGrants::new();
    let mut code: BTreeMap<_, _> = BTreeMap::new();
    for (plugin, granted) in plugins {
        let name = plugin.info().name.clone();
        grants.insert(name.clone(), Arc::new(granted));
        code.insert(name, plugin);
    }
    let plugins = code;
    let graphs = graphs
        .into_iter()
        .map(|graph| graph.with_limits(limits))
        .map(|graph| (graph.name.clone(), Arc::new(GraphVersion::new(graph, &plugins))))
        .collect();
    App {
        version: "0".into(),
        digest: Digest::of(b"test"),
        graphs,
        plugins,
        grants: grants.into(),
        settings: Arc::new(json!({ "color": "green" })),
        ..App::empty(AppName::new("test").expect("a valid name"))
    }
}

/// Returns the pending interrupts of an interrupted run.
///
/// # Panics
///
/// If the run is not interrupted.
pub fn questions(ended: &EndedRun) -> Vec<InterruptView> {
    match &ended.outcome {
        RunOutcome::Interrupted { interrupts, .. } => interrupts.clone(),
        other => panic!("the run is not interrupted: {other:?}"),
    }
}

/// Returns the failure of a failed run.
///
/// # Panics
///
/// If the run did not fail.
pub fn failure(ended: &EndedRun) -> Failure {
    match &ended.outcome {
        RunOutcome::Failed { failure } => failure.clone(),
        other => panic!("the run did not fail: {other:?}"),
    }
}
