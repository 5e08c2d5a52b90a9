//! Blobs of threads, apps and tenants that tasks, models and web handlers put.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_run::caller_id::CallerId;
use wattle_run::caps::{Caps, TenantCaps};
use wattle_run::free_disk::{DiskSpace, FreeDisk};
use wattle_run::gate::unwind::CallError;
use wattle_run::gate::{Gate, GuestEnv};
use wattle_run::grant::Grants;
use wattle_run::hostcall::blob::PutBlob;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService, StartRun};
use wattle_run::limit::{self, Limits};
use wattle_run::ports::Caller;
use wattle_run::quota::Quotas;
use wattle_run::stop_flag::StopFlag;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, picture};
use wattle_suite::world::{World, failure};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.from]
[graphs.one.channels.blobs]
[graphs.one.channels.put]
[graphs.one.channels.refused]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Bytes that a blob of these tests counts: the minimum.
const BLOB: u64 = limit::BLOB_MIN_BYTES;

async fn put(gate: &Gate, name: u64) -> Result<String, Failure> {
    let bytes = Bytes::from(format!("blob {name}"));
    match gate.call(PutBlob { bytes, media_type: "text/plain".into() }).await {
        Ok(blob) => Ok(blob.to_string()),
        Err(CallError::Failure(failure)) => Err(failure),
        Err(CallError::Unwind(unwind)) => panic!("{unwind:?}"),
    }
}

/// Returns a plugin whose node puts `blobs` blobs, numbered from `from`, and returns the blobs and
/// the failures.
fn putting() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let number = |name: &str| call.input.get(name).as_u64().unwrap_or_default();
        let (mut all, mut refused) = (Vec::new(), Vec::new());
        for name in number("from")..number("from") + number("blobs") {
            match put(&gate, name).await {
                Ok(blob) => all.push(blob),
                Err(failure) => refused.push(json!(failure)),
            }
        }
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "put": all, "refused": refused }))
    })
}

fn world(caps: Caps) -> World {
    let mut world = World::new(ONE, putting());
    world.cap(caps);
    world
}

fn input(from: u64, blobs: u64) -> Value {
    json!({ "from": from, "blobs": blobs })
}

/// Returns the number of blobs and the names of the caps that refused others.
fn came(ended: &EndedRun) -> (usize, Vec<String>) {
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let refused = ended.state["refused"].as_array().unwrap();
    let refused = refused.iter().map(|failure| {
        assert_eq!(failure["code"], code::LIMIT);
        assert!(failure["message"].as_str().unwrap().contains("wattle.toml"), "{failure}");
        failure["details"]["limit"].as_str().unwrap().to_owned()
    });
    (ended.state["put"].as_array().unwrap().len(), refused.collect())
}

#[tokio::test]
async fn blobs_of_a_thread_are_capped_and_a_repeated_put_does_not_count() {
    let mut world = world(Caps { thread_blobs: 3, ..Caps::default() });
    let ended = world.run(input(0, 5)).await;
    assert_eq!(came(&ended), (3, vec!["thread_blobs".to_owned(); 2]));
    let thread = ended.run.thread.clone();
    let again = async |world: &World, from, blobs| {
        let run = world.begin_on(Some(&thread), input(from, blobs)).await.unwrap();
        came(&world.engine.wait(&run).await.unwrap())
    };
    assert_eq!(again(&world, 1, 3).await, (2, vec!["thread_blobs".to_owned()]));
    world.cap(Caps { thread_blobs: 4, ..Caps::default() });
    assert_eq!(again(&world, 1, 3).await, (3, vec![]));
    assert_eq!(came(&world.run(input(0, 4)).await), (4, vec![]), "another thread");
}

#[tokio::test]
async fn a_refused_put_is_refused_again_after_a_crash() {
    let mut world = world(Caps { thread_blob_bytes: 2 * BLOB, ..Caps::default() });
    world.net.hang_next(1);
    let run = world.begin(input(0, 3)).await.unwrap();
    world.net.hung().await;
    world.cap(Caps::default());
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(came(&ended), (2, vec!["thread_blob_bytes".to_owned()]), "from the journal");
}

async fn of_tenant(world: &World, tenant: &str, from: u64, blobs: u64) -> (usize, Vec<String>) {
    let request = world.request(None, input(from, blobs));
    let run = world.engine.start(StartRun { tenant: Some(tenant.into()), ..request }).await;
    came(&world.engine.wait(&run.unwrap()).await.unwrap())
}

#[tokio::test]
async fn blob_bytes_of_apps_and_tenants_are_capped_until_threads_are_deleted() {
    let bytes = |blobs: u64| TenantCaps { blob_bytes: Some(blobs * BLOB), ..TenantCaps::default() };
    let world = world(Caps {
        app_blob_bytes: Some(6 * BLOB),
        tenant: bytes(2),
        tenants: BTreeMap::from([("large".to_owned(), bytes(3))]),
        ..Caps::default()
    });
    let tenant_full = |count| vec!["tenant_blob_bytes".to_owned(); count];
    assert_eq!(of_tenant(&world, "small", 0, 3).await, (2, tenant_full(1)));
    assert_eq!(of_tenant(&world, "small", 7, 1).await, (0, tenant_full(1)), "another thread");
    assert_eq!(of_tenant(&world, "large", 10, 4).await, (3, tenant_full(1)));
    let ended = world.run(input(20, 3)).await;
    assert_eq!(came(&ended), (1, vec!["app_blob_bytes".to_owned(); 2]), "without a tenant");

    world.engine.delete_thread(&ended.run.thread).await.unwrap();
    assert_eq!(came(&world.run(input(30, 1)).await).0, 0, "the measurement is too recent");
    world.clock.advance_ms(u32::try_from(limit::MEASURE_INTERVAL_MS).unwrap());
    assert_eq!(came(&world.run(input(20, 1)).await), (1, vec![]));
}

/// Returns the gate of a web handler of an app.
fn handler(world: &World, app: &str, quotas: &Arc<Quotas>) -> Gate {
    let caller = Caller {
        app: AppName::new(app).unwrap(),
        plugin: PluginName::new("p").unwrap(),
        tenant: None,
        owner: CallerId::default(),
    };
    let setting = GuestEnv {
        ports: Arc::new(world.engine.ports().clone()),
        caller,
        grants: Arc::default(),
        app: Arc::new(wattle_suite::world::app(
            ONE,
            vec![(Arc::new(putting()), Grants::default())],
        )),
        cancel: StopFlag::default(),
        quotas: quotas.clone(),
        schemas: Arc::default(),
    };
    Gate::for_web(setting, Arc::new(world.engine.clone()))
}

#[tokio::test]
async fn blobs_of_web_handlers_count_until_the_grace_period_ends() {
    let world = World::new(ONE, putting());
    let caps = Caps { handler_blob_bytes: 2 * BLOB, ..Caps::default() };
    let quotas = Arc::new(Quotas::new(caps));
    for call in 0..2 {
        put(&handler(&world, "test", &quotas), call).await.unwrap();
    }
    let refused = put(&handler(&world, "test", &quotas), 3).await.unwrap_err();
    assert_eq!(refused.details.unwrap()["limit"], "handler_blob_bytes");
    put(&handler(&world, "other", &quotas), 3).await.unwrap();
    world.clock.advance_ms(u32::try_from(limit::UNMENTIONED_MS).unwrap());
    put(&handler(&world, "test", &quotas), 3).await.unwrap();
}

#[tokio::test]
async fn blobs_are_refused_below_the_floor_of_free_disk_space() {
    let world = World::new(ONE, putting());
    let full = || -> std::io::Result<DiskSpace> {
        Ok(DiskSpace { total_bytes: 1 << 40, free_bytes: limit::FREE_DISK_BYTES - 1 })
    };
    let disk = FreeDisk::new(Arc::new(full), None);
    let quotas = Arc::new(Quotas::default().with_free_disk(disk));
    let refused = put(&handler(&world, "test", &quotas), 1).await.unwrap_err();
    assert_eq!((&*refused.code, refused.retryable), (code::UNAVAILABLE, true));
    assert_eq!(refused.details.unwrap()["limit"], "free_disk");
}

#[tokio::test]
async fn a_read_of_a_blob_counts_as_a_call_with_its_bytes() {
    for (limits, name, expected) in [
        // The first call puts the blob.
        (Limits { host_calls: 11, ..Limits::default() }, "host_calls", 10),
        (Limits { host_call_bytes: 20_900, ..Limits::default() }, "host_call_bytes", 20),
    ] {
        let reads = Arc::new(AtomicU32::new(0));
        let counted = reads.clone();
        let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
            let reads = counted.clone();
            async move {
                let bytes = Bytes::from(vec![7; 1_000]);
                let blob = gate.call(PutBlob { bytes, media_type: "text/plain".into() }).await?;
                for _ in 0..100 {
                    gate.blob_get(&blob.to_string(), 0, None).await?;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                Ok(json!({}))
            }
        });
        let grants = Grants { limits, ..Grants::default() };
        let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
        let failed = failure(&world.run(json!({})).await);
        assert_eq!(failed.code, code::LIMIT, "{failed}");
        assert_eq!(failed.details.unwrap()["limit"], name);
        assert_eq!(reads.load(Ordering::Relaxed), expected, "{name}");
    }
}

#[tokio::test]
async fn a_call_with_an_invalid_blob_reference_counts() {
    for is_link in [true, false] {
        let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| async move {
            for _ in 0..100 {
                let ended = if is_link {
                    gate.blob_link("blob:x").await.map(drop)
                } else {
                    gate.blob_get("blob:x", 0, None).await.map(drop)
                };
                if let Err(CallError::Unwind(unwind)) = ended {
                    return Err(CallError::Unwind(unwind));
                }
            }
            Ok(json!({}))
        });
        let limits = Limits { host_calls: 50, ..Limits::default() };
        let grants = Grants { limits, ..Grants::default() };
        let world = World::with_sql(ONE, plugin, Arc::new(NoSql), grants);
        let details = failure(&world.run(json!({})).await).details.unwrap();
        assert_eq!(details["limit"], "host_calls");
    }
}

#[tokio::test]
async fn a_large_blob_is_read_in_ranges() {
    let world = World::new(ONE, putting());
    let quotas = Arc::new(Quotas::new(Caps::default()));
    let gate = handler(&world, "test", &quotas);
    let allowed = limit::BLOB_READ_BYTES;
    let bytes = Bytes::from(vec![0; usize::try_from(allowed).unwrap() + 1]);
    let blob = world.engine.ports().blobs.put(bytes, "text/plain").await.unwrap().to_string();
    for length in [None, Some(allowed + 1)] {
        let Err(CallError::Failure(refused)) = gate.blob_get(&blob, 0, length).await else {
            panic!("{length:?} is more than a read returns");
        };
        assert_eq!(refused.code, code::LIMIT);
        assert!(refused.message.contains("in ranges"), "{refused}");
        assert_eq!(refused.details.unwrap()["limit"], "blob_read_bytes");
    }
    let rest = gate.blob_get(&blob, 1, None).await.unwrap();
    assert_eq!(rest.len() as u64, allowed);
    // A read of this size takes the whole budget of a handler.
    let gate = handler(&world, "test", &quotas);
    assert_eq!(gate.blob_get(&blob, allowed, Some(1)).await.unwrap().len(), 1);
    let Err(CallError::Failure(outside)) = gate.blob_get(&blob, allowed, Some(2)).await else {
        panic!("the range lies outside of the blob");
    };
    assert_eq!(outside.code, code::INVALID);
}

#[tokio::test]
async fn generated_images_count_as_blobs() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut refused = Vec::new();
        for text in ["a cat", "a dog"] {
            match gate.call(picture(text)).await {
                Ok(_) => {}
                Err(CallError::Failure(failure)) => refused.push(json!(failure)),
                Err(unwind) => return Err(unwind),
            }
        }
        Ok(json!({ "put": [], "refused": refused }))
    });
    let mut world = World::new(ONE, plugin);
    world.cap(Caps { thread_blob_bytes: BLOB, ..Caps::default() });
    let (_, refused) = came(&world.run(json!({})).await);
    assert_eq!(refused, ["thread_blob_bytes"]);
}
