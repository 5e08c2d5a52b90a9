//! An engine with a store and an app that has one graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use tokio::runtime::Handle;
use wattle::load::compiler::{COMMAND_NICENESS, process_compiler};
use wattle_graph::check::{AnyPlugin, check_toml};
use wattle_graph::id::{AppName, Digest, PluginName};
use wattle_kit::clock::ManualClock;
use wattle_run::app::{App, GraphVersion};
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::hostcall::runs::{RunRef, RunService, StartRun};
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::store::{Durability, RunOptions};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Plugin, Ports, Sandbox as _, Store};
use wattle_sandbox::{CompileLimits, Sandbox, SandboxConfig};
use wattle_store::{InMemoryBlobs, VolatileMemory};
use wattle_suite::scripted::{NoSql, ScriptedModel, ScriptedNet};

use crate::{graphs, served};

/// The name of app and graph.
const NAME: &str = "bench";

/// Returns the plugin under test: closures, or a WebAssembly guest with a fresh instance for each
/// task. The guest is compiled in a separate process, as by a host, so that the peak memory of this
/// process does not include the compiler.
pub(crate) async fn plugin(code: &str) -> Result<Arc<dyn Plugin>> {
    match code {
        "native" => Ok(Arc::new(graphs::native("p"))),
        "wasm" => {
            let compiler =
                process_compiler(served::binary()?, COMMAND_NICENESS, CompileLimits::default());
            let sandbox = Sandbox::new(&SandboxConfig { compiler, ..SandboxConfig::default() })?;
            let bytes = wattle_suite::guests::bytes("wattle-guest-misdeeds");
            Ok(sandbox.load(&PluginName::new("p")?, bytes).await?)
        }
        other => bail!("unknown code `{other}`; use `native` or `wasm`"),
    }
}

/// Creates an engine that runs the graph `toml` on this runtime.
pub(crate) fn engine(
    runtime: Handle,
    store: Arc<dyn Store>,
    plugin: Arc<dyn Plugin>,
    toml: &str,
) -> Result<Engine> {
    let graph = check_toml("graph.toml", toml, &AnyPlugin)
        .map_err(|problems| anyhow!("{problems:?}"))?
        .pop()
        .context("no graph")?;
    let native: Arc<dyn Plugin> = Arc::new(graphs::native("n"));
    let plugins: BTreeMap<_, _> =
        [(PluginName::new("p")?, plugin), (PluginName::new("n")?, native)].into();
    let graphs = [(graph.name.clone(), Arc::new(GraphVersion::new(graph, &plugins)))].into();
    let catalog = Catalog::new();
    catalog.install(App {
        version: "0".into(),
        digest: Digest::of(NAME.as_bytes()),
        graphs,
        plugins,
        ..App::empty(AppName::new(NAME)?)
    });
    Ok(Engine::new(
        ports(store),
        catalog,
        EngineConfig { runtime: Some(runtime), ..EngineConfig::default() },
    ))
}

fn ports(store: Arc<dyn Store>) -> Ports {
    Ports {
        store,
        blobs: Arc::new(InMemoryBlobs::new()),
        links: BlobLinks::new(NAME.as_bytes()),
        memory: Arc::new(VolatileMemory::new()),
        model: Arc::new(ScriptedModel::default()),
        net: Arc::new(ScriptedNet::default()),
        sql: Arc::new(NoSql),
        tools: Arc::new(NoToolServers),
        clock: Arc::new(ManualClock::at_ms(0)),
        observer: Arc::new(NoObserver),
    }
}

/// Executes one run on a new thread and waits for its end.
pub(crate) async fn run(
    engine: &Engine,
    input: &Value,
    durability: Durability,
) -> Result<(RunRef, Value)> {
    let request = StartRun {
        options: RunOptions { durability, ..RunOptions::default() },
        ..StartRun::new(AppName::new(NAME)?, input.clone())
    };
    let run = engine.start(request).await?;
    let ended = engine.wait(&run).await?;
    Ok((run, ended.state))
}
