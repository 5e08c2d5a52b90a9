//! Steps per second of no-op graphs with 1 KB of state: one node and ten, one run at a time and
//! 64 at once, in memory and on redb, with a native closure and with a WebAssembly guest.
//!
//! Every figure is the median of several rounds, and all are measured in one process, one after
//! the other, so that they can be compared with each other. Run it by `cargo xtask bench`.

mod timed;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use timed::TimedStore;
use tokio::runtime::{Builder, Runtime};
use wattle_graph::check::{NoFacts, check_toml};
use wattle_graph::id::{AppName, Digest, PluginName};
use wattle_kit::clock::ManualClock;
use wattle_run::app::{App, GraphPack, Projections};
use wattle_run::call::runs::{Runs, StartRun};
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Plugin, Ports, Sandbox as _, Store};
use wattle_sandbox::{Sandbox, SandboxConfig};
use wattle_store::{MemoryBlobs, MemoryStore, RedbStore};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, ScriptedModel, ScriptedNet};

/// Rounds of each measurement; the median counts.
const ROUNDS: usize = 5;

/// Length of one round.
const ROUND: Duration = Duration::from_millis(1_500);

/// One line of the table.
struct Case {
    code: &'static str,
    store: &'static str,
    nodes: usize,
    runs: usize,
}

fn main() -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let guest = load_guest(&runtime)?;
    print_line(&[
        "code",
        "store",
        "nodes",
        "runs",
        "steps/s",
        "us/step",
        "task %",
        "append %",
        "flush wait %",
    ]);
    for code in ["native", "wasm"] {
        for store in ["memory", "redb"] {
            for nodes in [1, 10] {
                for runs in [1, 64] {
                    let case = Case { code, store, nodes, runs };
                    measure(&runtime, &case, &guest)?;
                }
            }
        }
    }
    Ok(())
}

/// One measured round.
struct Round {
    steps_per_second: f64,
    task: f64,
    append: f64,
    flush: f64,
}

fn measure(runtime: &Runtime, case: &Case, guest: &Arc<dyn Plugin>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let inner: Arc<dyn Store> = match case.store {
        "memory" => Arc::new(MemoryStore::new()),
        _ => Arc::new(RedbStore::open(folder.path().join("bench.redb"))?),
    };
    let store = Arc::new(TimedStore::new(inner));
    let plugin: Arc<dyn Plugin> = match case.code {
        "native" => Arc::new(native()),
        _ => guest.clone(),
    };
    let engine = engine(runtime, store.clone(), plugin, case.nodes)?;
    let mut rounds = Vec::new();
    round(runtime, &engine, &store, case)?;
    for _ in 0..ROUNDS {
        rounds.push(round(runtime, &engine, &store, case)?);
    }
    rounds.sort_by(|a, b| a.steps_per_second.total_cmp(&b.steps_per_second));
    let median = &rounds[ROUNDS / 2];
    print_line(&[
        case.code,
        case.store,
        &case.nodes.to_string(),
        &case.runs.to_string(),
        &format!("{:.0}", median.steps_per_second),
        &format!("{:.1}", 1e6 / median.steps_per_second),
        &format!("{:.0}", median.task * 100.0),
        &format!("{:.0}", median.append * 100.0),
        &format!("{:.0}", median.flush * 100.0),
    ]);
    Ok(())
}

/// Runs are started one after the other in `case.runs` lanes until the time is up.
fn round(runtime: &Runtime, engine: &Engine, store: &TimedStore, case: &Case) -> Result<Round> {
    store.reset();
    let started = Instant::now();
    let finished: usize = runtime.block_on(async {
        let lanes: Vec<_> =
            (0..case.runs).map(|_| tokio::spawn(lane(engine.clone(), started + ROUND))).collect();
        let mut finished = 0;
        for lane in lanes {
            finished += lane.await??;
        }
        Ok::<_, anyhow::Error>(finished)
    })?;
    let wall = started.elapsed().as_secs_f64();
    // One lane spends its wall time; many lanes share two cores, but each waits on its own.
    let lane_time = wall * case.runs as f64;
    Ok(Round {
        steps_per_second: (finished * case.nodes) as f64 / wall,
        task: store.task_seconds() / lane_time,
        append: store.append_seconds() / lane_time,
        flush: store.wait_seconds() / lane_time,
    })
}

async fn lane(engine: Engine, until: Instant) -> Result<usize> {
    let document = json!({ "n": 0, "text": "x".repeat(1_000) });
    let mut finished = 0;
    while Instant::now() < until {
        let request = StartRun {
            app: AppName::new("bench")?,
            graph: None,
            input: json!({ "document": document }),
            thread: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            tenant: None,
        };
        let run = engine.start(request).await?;
        let ended = engine.wait(&run).await?;
        anyhow::ensure!(ended.state["document"]["n"].as_u64() > Some(0), "{ended:?}");
        engine.delete_thread(&run.thread).await?;
        finished += 1;
    }
    Ok(finished)
}

fn native() -> NativePlugin {
    NativePlugin::new("p", "1").node("touch", |call, _| async move {
        let mut document = call.input["document"].clone();
        document["n"] = json!(document["n"].as_i64().unwrap_or(0) + 1);
        Ok(json!({ "document": document }))
    })
}

fn load_guest(runtime: &Runtime) -> Result<Arc<dyn Plugin>> {
    let sandbox = Sandbox::new(&SandboxConfig::default())?;
    let bytes = wattle_suite::guests::bytes("wattle-guest-misdeeds");
    Ok(runtime.block_on(sandbox.load(&PluginName::new("p")?, bytes))?)
}

fn engine(
    runtime: &Runtime,
    store: Arc<TimedStore>,
    plugin: Arc<dyn Plugin>,
    nodes: usize,
) -> Result<Engine> {
    let ports = Ports {
        store,
        blobs: Arc::new(MemoryBlobs::new()),
        links: BlobLinks::new(b"bench"),
        model: Arc::new(ScriptedModel::default()),
        net: Arc::new(ScriptedNet::default()),
        sql: Arc::new(NoSql),
        tools: Arc::new(NoToolServers),
        clock: Arc::new(ManualClock::at_ms(0)),
        observer: Arc::new(NoObserver),
    };
    let graph = check_toml("graph.toml", &line(nodes), &NoFacts)
        .map_err(|problems| anyhow!("{problems:?}"))?
        .pop()
        .context("no graph")?;
    let name = PluginName::new("p")?;
    let plugins: BTreeMap<_, _> = [(name, plugin)].into();
    let graphs = [(graph.name.clone(), Arc::new(GraphPack::new(graph, &plugins)))].into();
    let catalog = Catalog::new();
    catalog.install(App {
        projections: Projections::default(),
        name: AppName::new("bench")?,
        doc: String::new(),
        version: "0".into(),
        digest: Digest::of(b"bench"),
        graphs,
        plugins,
        grants: BTreeMap::new(),
        settings: Arc::new(json!({})),
        web: None,
        mount: None,
    });
    let config = EngineConfig { runtime: Some(runtime.handle().clone()) };
    Ok(Engine::new(ports, catalog, config))
}

/// A graph of `nodes` nodes in a line, in TOML.
fn line(nodes: usize) -> String {
    let mut text = String::from("[graphs.line]\nentry = \"n0\"\n[graphs.line.channels.document]\n");
    for node in 0..nodes {
        text.push_str(&format!("[graphs.line.nodes.n{node}]\nplugin = \"p\"\nnode = \"touch\"\n"));
    }
    for node in 1..nodes {
        text.push_str(&format!(
            "[[graphs.line.edges]]\nfrom = \"n{}\"\nto = \"n{node}\"\n",
            node - 1
        ));
    }
    text
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn print_line(cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>12}")).collect();
    println!("{}", cells.join(" "));
}
