//! One of two hosts that share a database, for trials in which a host loses its connection to it.
//!
//! The host starts runs that make payments, and takes over the threads of the other host. After its
//! standard input was closed, it exits as soon as it executes no run. Every payment names the host
//! that made it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use wattle::config::ClockConfig;
use wattle::host::clock::HostClock;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::runs::RunService as _;
use wattle_run::ports::observer::NoObserver;
use wattle_run::ports::sandbox::NodeCall;
use wattle_run::ports::store::{LeaseHolder, ThreadQuery};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::ports::{BlobLinks, Plugin, Ports};
use wattle_store::{InMemoryBlobs, PostgresConfig, PostgresStore, VolatileMemory};

use crate::mortal::services::Services;
use crate::mortal::start;
use crate::native::NativePlugin;
use crate::scripted::{NoSql, get};
use crate::world;

/// The shortest lease duration.
pub const LEASE: Duration = Duration::from_secs(2);

/// Payments of a run.
pub const PAYMENTS: u64 = 8;

/// Delay of each payment in milliseconds, so that a run lasts about half a lease.
const DELAY_MS: u32 = 120;

/// Interval between checks that no run is active.
const PAUSE: Duration = Duration::from_millis(50);

const GRAPHS: &str = r#"
[graphs.main]
entry = "pay"
[graphs.main.channels.paid]
[graphs.main.nodes.pay]
plugin = "p"
goto = ["pay"]
"#;

/// The arguments of the process.
pub struct Order {
    /// The URL of a PostgreSQL database.
    pub store: String,
    /// The name of the host.
    pub name: String,
    /// The base URL of the services.
    pub services: String,
    /// The threads on which the host starts runs.
    pub threads: Vec<ThreadId>,
}

/// Runs until the standard input is closed and the host executes no run.
///
/// # Errors
///
/// Any error of the store or the engine.
pub async fn compete(order: Order) -> Result<()> {
    let store = PostgresConfig::new(&order.store).with_lease(LEASE);
    let store = Arc::new(PostgresStore::open(&store).await?);
    let engine = engine(store, &order)?;
    for thread in &order.threads {
        engine.start(start(thread)?).await?;
    }
    let recovering = engine.clone();
    let recovery = tokio::spawn(async move { recovering.share_runs().await });
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    recovery.abort();
    while is_at_work(&engine).await? {
        tokio::time::sleep(PAUSE).await;
    }
    engine.shutdown(Duration::ZERO).await;
    Ok(())
}

async fn is_at_work(engine: &Engine) -> Result<bool> {
    let threads = engine.ports().store.threads(&ThreadQuery::default()).await?;
    Ok(threads.items.iter().any(|thread| engine.is_active(&thread.id)))
}

fn engine(store: Arc<PostgresStore>, order: &Order) -> Result<Engine> {
    let services = format!("{}/echo/{}", order.services, order.name);
    let services = Arc::new(Services::new(&services));
    let ports = Ports {
        store,
        blobs: Arc::new(InMemoryBlobs::new()),
        links: BlobLinks::new(b"test"),
        memory: Arc::new(VolatileMemory::new()),
        model: services.clone(),
        net: services,
        sql: Arc::new(NoSql),
        tools: Arc::new(NoToolServers),
        clock: Arc::new(HostClock::new(&ClockConfig::default())?),
        observer: Arc::new(NoObserver),
    };
    let plugin: Arc<dyn Plugin> = Arc::new(NativePlugin::new("p", "1").node("pay", pay));
    let catalog = Catalog::new();
    catalog.install(world::app(GRAPHS, vec![(plugin, Grants::default())]));
    let holder = Some(LeaseHolder(order.name.clone()));
    Ok(Engine::new(ports, catalog, EngineConfig { holder, ..EngineConfig::default() }))
}

/// Makes a payment. Every other payment has an idempotency key and may be repeated.
async fn pay(call: NodeCall, gate: Arc<Gate>) -> Result<Value, CallError> {
    let number = call.input.get("paid").as_u64().unwrap_or_default();
    let (kind, key) = match number % 2 {
        0 => ("once", None),
        _ => ("keyed", Some(call.task.to_string())),
    };
    let request = HttpRequest {
        method: "POST".into(),
        idempotency_key: key,
        delay_ms: Some(DELAY_MS),
        ..get(&format!("/{kind}/{}/{number}", call.thread))
    };
    match gate.call(request).await {
        // It is unknown whether the payment was made, so it is not repeated.
        Err(CallError::Failure(failure)) if failure.code == code::IN_DOUBT => {}
        answer => drop(answer?),
    }
    let next: &[&str] = if number + 1 < PAYMENTS { &["pay"] } else { &[] };
    Ok(json!({ "paid": number + 1, "$goto": next }))
}
