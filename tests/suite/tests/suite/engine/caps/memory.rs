//! Caps of the long-term memory: documents of a tenant and of no tenant, and cached outcomes of an
//! app.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::AppName;
use wattle_run::caps::{Caps, TenantCaps};
use wattle_run::grant::{Grants, MemoryAccess, MemoryRule};
use wattle_run::hostcall::memory::PutDocument;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService, StartRun};
use wattle_run::ports::memory::{MemoryScope, PutItem};
use wattle_store::VolatileMemory;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, failure};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.key]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

const CACHED: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.key]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
cache = {}
"#;

/// Bytes of the text of each document and each outcome.
const BYTES: usize = 10_000;

/// A cap that two documents or outcomes fit into, and no third.
const CAP: u64 = 3 * BYTES as u64 - 1;

fn item(key: &str) -> PutItem {
    let value = json!("x".repeat(BYTES));
    let namespace = vec!["notes".to_owned()];
    PutItem { namespace, key: key.to_owned(), value, ttl_ms: None, refresh_on_read: false }
}

/// Creates a world whose guest puts a document under the key of its input.
fn world(caps: Caps) -> World {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let key = call.input.get("key").as_str().unwrap_or_default().to_owned();
        gate.call(PutDocument(item(&key))).await?;
        Ok(json!({ "out": "put" }))
    });
    let rule = MemoryRule { namespace: Vec::new(), access: MemoryAccess::ReadWrite };
    let grants = Grants { memory: vec![rule], ..Grants::default() };
    let mut world = World::with_memory(ONE, plugin, Arc::new(VolatileMemory::new()), grants);
    world.cap(caps);
    world
}

async fn put(world: &World, tenant: Option<&str>, key: &str) -> EndedRun {
    let request = world.request(None, json!({ "key": key }));
    let tenant = tenant.map(str::to_owned);
    let run = world.engine.start(StartRun { tenant, ..request }).await.unwrap();
    world.engine.wait(&run).await.unwrap()
}

fn is_full(failure: &Failure, limit: &str) {
    let details = failure.details.as_ref().unwrap();
    assert_eq!((failure.code.as_str(), &details["limit"]), (code::LIMIT, &json!(limit)));
    assert_eq!(details["allowed"], CAP);
}

#[tokio::test]
async fn documents_of_guests_and_clients_share_a_cap() {
    let world = world(Caps { memory_bytes: CAP, ..Caps::default() });
    let nobody = MemoryScope::Tenant(None);
    assert_eq!(put(&world, None, "a").await.outcome, RunOutcome::Completed);
    world.engine.put_document(&nobody, item("b")).await.unwrap();
    is_full(&failure(&put(&world, None, "c").await), "memory_bytes");
    is_full(&world.engine.put_document(&nobody, item("c")).await.unwrap_err(), "memory_bytes");
    // Each tenant has a cap of its own, of the same size unless it is set.
    for key in ["a", "b"] {
        assert_eq!(put(&world, Some("acme"), key).await.outcome, RunOutcome::Completed);
    }
    is_full(&failure(&put(&world, Some("acme"), "c").await), "tenant_memory_bytes");

    let memory = &world.engine.ports().memory;
    memory.delete(&nobody, &["notes".to_owned()], "a").await.unwrap();
    assert_eq!(put(&world, None, "c").await.outcome, RunOutcome::Completed);
    is_full(&failure(&put(&world, None, "d").await), "memory_bytes");
}

/// A host that shares its memory with no other one knows the exact usage.
#[tokio::test]
async fn a_document_that_is_replaced_often_counts_once() {
    let tenants = BTreeMap::from([(
        "small".to_owned(),
        TenantCaps { memory_bytes: Some(CAP), ..TenantCaps::default() },
    )]);
    let world = world(Caps { tenants, ..Caps::default() });
    for _ in 0..10 {
        assert_eq!(put(&world, Some("small"), "a").await.outcome, RunOutcome::Completed);
    }
    assert_eq!(put(&world, Some("small"), "b").await.outcome, RunOutcome::Completed);
    is_full(&failure(&put(&world, Some("small"), "c").await), "tenant_memory_bytes");
    assert_eq!(put(&world, Some("large"), "c").await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn outcomes_beyond_the_cap_of_an_app_are_not_cached() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |_, _| async move { Ok(json!({ "out": "x".repeat(BYTES) })) });
    let mut world = World::new(CACHED, plugin);
    world.cap(Caps { app_cache_bytes: CAP, ..Caps::default() });
    let is_cached = async |key: &str| {
        let ended = put(&world, None, key).await;
        assert_eq!(ended.outcome, RunOutcome::Completed);
        let is_cached = |kind: &EventKind| matches!(kind, EventKind::TaskFinished(it) if it.cached);
        let warns = |kind: &EventKind| match kind {
            EventKind::Log(log) => log.message.contains("app_cache_bytes"),
            _ => false,
        };
        let thread = &ended.run.thread;
        (world.count(thread, is_cached).await == 1, world.count(thread, warns).await == 1)
    };
    for key in ["a", "b"] {
        assert_eq!(is_cached(key).await, (false, false));
        assert_eq!(is_cached(key).await, (true, false));
    }
    for _ in 0..2 {
        assert_eq!(is_cached("c").await, (false, true));
    }
    let app = AppName::new("test").unwrap();
    assert_eq!(world.engine.clear_cache(None, &app, None, None).await.unwrap(), 2);
    assert_eq!(is_cached("c").await, (false, false));
    assert_eq!(is_cached("c").await, (true, false));
}
