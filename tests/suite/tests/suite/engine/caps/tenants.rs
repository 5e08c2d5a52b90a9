//! Caps of a tenant's threads and their bytes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_run::caps::{Caps, TenantCaps};
use wattle_run::engine::threads::NewThread;
use wattle_run::hostcall::runs::{
    EndedRun, OnFailure, ResumeRun, RunOutcome, RunService, StartRun,
};
use wattle_run::limit;
use wattle_run::ports::store::{Owner, RunOptions, ThreadQuery};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
interrupt_before = ["again"]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
goto = ["again"]
[graphs.one.nodes.again]
plugin = "p"
"#;

/// Bytes that a run writes.
const WRITTEN: usize = 10_000;

fn writing() -> NativePlugin {
    let text = || json!({ "out": "x".repeat(WRITTEN), "$goto": ["again"] });
    NativePlugin::new("p", "1")
        .node("work", move |_, _| async move { Ok(text()) })
        .node("again", |_, _| async move { Ok(json!({ "out": "done" })) })
}

/// Creates a world in which the tenant `small` has caps and others have none.
fn world(caps: TenantCaps) -> World {
    let mut world = World::new(ONE, writing());
    let tenants = BTreeMap::from([("small".to_owned(), caps)]);
    world.cap(Caps { tenants, ..Caps::default() });
    world
}

async fn run(
    world: &World,
    tenant: Option<&str>,
    thread: Option<&ThreadId>,
) -> Result<EndedRun, Failure> {
    let request = world.request(thread, json!({}));
    let tenant = tenant.map(str::to_owned);
    let run = world.engine.start(StartRun { tenant, ..request }).await?;
    let ended = world.engine.wait(&run).await?;
    assert!(matches!(ended.outcome, RunOutcome::Interrupted { .. }), "{:?}", ended.outcome);
    Ok(ended)
}

fn is_full(refused: Result<impl std::fmt::Debug, Failure>, limit: &str) {
    let failure = refused.unwrap_err();
    let details = failure.details.as_ref().unwrap();
    assert_eq!((failure.code.as_str(), &details["limit"]), (code::LIMIT, &json!(limit)));
    assert!(failure.message.contains("tenant `small`"), "{failure}");
}

async fn threads(world: &World) -> usize {
    world.engine.ports().store.threads(&ThreadQuery::default()).await.unwrap().items.len()
}

fn new(tenant: &str) -> NewThread {
    NewThread { tenant: Some(tenant.to_owned()), ..NewThread::default() }
}

#[tokio::test]
async fn threads_of_a_tenant_are_capped_and_other_tenants_are_not() {
    let world = world(TenantCaps { threads: Some(2), ..TenantCaps::default() });
    let first = run(&world, Some("small"), None).await.unwrap().run.thread;
    let second = world.engine.create_thread(new("small")).await.unwrap();
    is_full(run(&world, Some("small"), None).await, "tenant_threads");
    is_full(world.engine.create_thread(new("small")).await, "tenant_threads");
    is_full(world.engine.copy_thread(&first, None).await, "tenant_threads");
    assert_eq!(threads(&world).await, 2, "nothing was written");

    run(&world, Some("small"), Some(&second.id)).await.unwrap();
    run(&world, Some("small"), Some(&first)).await.unwrap();
    run(&world, Some("other"), None).await.unwrap();
    run(&world, None, None).await.unwrap();

    world.engine.delete_thread(&first).await.unwrap();
    world.clock.advance_ms(u32::try_from(limit::MEASURE_INTERVAL_MS).unwrap());
    run(&world, Some("small"), None).await.unwrap();
    is_full(run(&world, Some("small"), None).await, "tenant_threads");
}

#[tokio::test]
async fn bytes_of_a_tenant_are_capped_and_other_tenants_are_not() {
    let bytes = Some(5 * WRITTEN as u64);
    let world = world(TenantCaps { bytes, ..TenantCaps::default() });
    let mut begun = Vec::new();
    let refused = loop {
        match run(&world, Some("small"), None).await {
            Ok(ended) => begun.push(ended.run.thread),
            Err(refused) => break refused,
        }
    };
    is_full(Err::<Value, _>(refused), "tenant_bytes");
    assert!((2..=5).contains(&begun.len()), "{} runs", begun.len());
    let resume = ResumeRun {
        run: None,
        thread: begun[0].clone(),
        answers: BTreeMap::new(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: Some("small".into()),
        options: RunOptions::default(),
        principal: None,
    };
    let before = world.events(&begun[0]).await;
    is_full(world.engine.resume(resume.clone()).await, "tenant_bytes");
    is_full(run(&world, Some("small"), Some(&begun[0])).await, "tenant_bytes");
    assert_eq!(world.events(&begun[0]).await, before, "nothing was written");
    run(&world, Some("other"), None).await.unwrap();

    world.engine.delete_thread(&begun.pop().unwrap()).await.unwrap();
    world.engine.delete_thread(&begun.pop().unwrap()).await.unwrap();
    world.clock.advance_ms(u32::try_from(limit::MEASURE_INTERVAL_MS).unwrap());
    let run = world.engine.resume(resume).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    let taken = world.engine.ports().store.usage(&Owner::Tenant("small".into())).await.unwrap();
    assert_eq!(taken.threads, begun.len() as u64);
}
