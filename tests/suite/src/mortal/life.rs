//! One life of the process: it recovers the orphaned run, answers the pending interrupt and returns
//! the result.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use wattle_graph::id::ThreadId;
use wattle_kit::clock::ManualClock;
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::{
    EndedRun, OnFailure, ResumeRun, RunOutcome, RunRef, RunService as _, ThreadView,
};
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::store::{LeaseHolder, RunOptions, ThreadStatus};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Plugin, Ports, Store};
use wattle_store::{InMemoryBlobs, PostgresConfig, PostgresStore, RedbStore, VolatileMemory};

use crate::mortal::services::Services;
use crate::mortal::store::{Moment, MortalStore};
use crate::mortal::{journey, start};
use crate::scripted::NoSql;
use crate::world;

/// The arguments of the process.
pub struct Order {
    /// The URL of a PostgreSQL database, or the path of a file.
    pub store: String,
    /// The thread to run or continue.
    pub thread: ThreadId,
    /// The base URL of the services.
    pub services: String,
    /// The write at which the process dies.
    pub death: Option<(Moment, usize)>,
}

/// Runs or continues the thread until its run has ended. Returns the state and the number of
/// writes.
///
/// # Errors
///
/// Any error that keeps the run from its end.
pub async fn live(order: &Order) -> Result<Value> {
    let store = Arc::new(MortalStore::over(open(&order.store).await?));
    if let Some((moment, number)) = order.death {
        store.die_at(moment, number);
    }
    let engine = engine(store.clone(), &order.services);
    engine.recover().await;
    let state = loop {
        let ended = match engine.thread(&order.thread).await? {
            None => engine.wait(&engine.start(start(&order.thread)?).await?).await?,
            Some(view) if view.status == ThreadStatus::Idle => break view.state,
            Some(view) => go_on(&engine, view).await?,
        };
        if let RunOutcome::Failed { failure } = ended.outcome {
            bail!("the run failed: {failure}");
        }
    };
    engine.shutdown(Duration::ZERO).await;
    Ok(json!({ "state": state, "writes": store.writes() }))
}

async fn open(store: &str) -> Result<Arc<dyn Store>> {
    if store.starts_with("postgres:") {
        return Ok(Arc::new(PostgresStore::open(&PostgresConfig::new(store)).await?));
    }
    Ok(Arc::new(RedbStore::open(Path::new(store))?))
}

fn engine(store: Arc<dyn Store>, services: &str) -> Engine {
    let services = Arc::new(Services::new(services));
    let ports = Ports {
        store,
        blobs: Arc::new(InMemoryBlobs::new()),
        links: BlobLinks::new(b"test"),
        memory: Arc::new(VolatileMemory::new()),
        model: services.clone(),
        net: services,
        sql: Arc::new(NoSql),
        tools: Arc::new(NoToolServers),
        clock: Arc::new(ManualClock::at_ms(world::START_MS)),
        observer: Arc::new(NoObserver),
    };
    let grants = Grants { llm: ["chat".to_owned()].into(), ..Grants::default() };
    let plugin: Arc<dyn Plugin> = Arc::new(journey::plugin());
    let catalog = Catalog::new();
    catalog.install(world::app(journey::GRAPHS, vec![(plugin, grants)]));
    // All lives have the same holder, so the next one acquires the leases of this one immediately.
    let holder = Some(LeaseHolder("crash".to_owned()));
    Engine::new(ports, catalog, EngineConfig { holder, ..EngineConfig::default() })
}

/// Waits for the recovered run, or answers the pending interrupt.
async fn go_on(engine: &Engine, view: ThreadView) -> Result<EndedRun> {
    let run = match view.status {
        ThreadStatus::Running => {
            let run = view.run.context("a thread that runs has no run")?;
            RunRef { thread: view.thread, run }
        }
        ThreadStatus::Interrupted => {
            let answers = [(String::new(), json!("yes"))].into();
            let resume = ResumeRun {
                run: None,
                thread: view.thread,
                answers,
                on_failure: OnFailure::Keep,
                app: None,
                tenant: None,
                options: RunOptions::default(),
                principal: None,
            };
            engine.resume(resume).await?
        }
        other => bail!("the thread is {other:?}: {:?}", view.failure),
    };
    Ok(engine.wait(&run).await?)
}
