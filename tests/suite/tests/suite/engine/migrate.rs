//! Migration of threads to the loaded version.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::event::{EventKind, RunStatus};
use wattle_graph::failure::code;
use wattle_graph::id::NodeName;
use wattle_graph::migrate::{Change, MigrateOptions, Obstacle};
use wattle_run::engine::migrate::{MigrateThread, MigrationReport};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::Store;
use wattle_run::ports::store::ThreadStatus;
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::World;

fn graph(extra: &str) -> String {
    format!(
        r#"
[graphs.one]
entry = "work"
interrupt_before = "work"
[graphs.one.channels.out]
reducer = "append"
{extra}
[graphs.one.nodes.work]
plugin = "p"
"#
    )
}

fn version(text: &'static str) -> NativePlugin {
    NativePlugin::new("p", text).node("work", move |_, _| async move { Ok(json!({ "out": text })) })
}

fn without_breakpoint() -> String {
    graph("").replace("interrupt_before = \"work\"\n", "")
}

/// Returns the old version, whose node makes a slow call.
fn slow_version() -> NativePlugin {
    NativePlugin::new("p", "old").node("work", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": "old" }))
    })
}

async fn migrate(
    world: &World,
    thread: &wattle_graph::id::ThreadId,
    options: MigrateOptions,
    dry_run: bool,
) -> MigrationReport {
    let request = MigrateThread {
        thread: thread.clone(),
        app: None,
        tenant: None,
        options,
        dry_run,
        principal: None,
    };
    world.engine.migrate(&request).await.unwrap()
}

#[tokio::test]
async fn a_migrated_thread_continues_with_the_new_version() {
    let world = World::new(&graph(""), version("old"));
    let waiting = world.run(json!({ "out": "asked" })).await;
    let thread = &waiting.run.thread;
    world.install(&graph("[graphs.one.channels.more]\ndefault = 7"), version("new"));
    let before = world.engine.thread(thread).await.unwrap().unwrap();
    let dry = migrate(&world, thread, MigrateOptions::default(), true).await;
    assert_eq!((dry.applied, dry.obstacles.len(), dry.changes.len()), (false, 0, 1));
    assert_eq!(world.engine.thread(thread).await.unwrap().unwrap(), before, "a dry run");
    let report = migrate(&world, thread, MigrateOptions::default(), false).await;
    assert!(report.applied);
    let after = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(
        (after.version.as_str(), after.status),
        (report.to.to_hex().as_str(), ThreadStatus::Interrupted)
    );
    let ended = world.resume(thread, &[], Default::default()).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state, json!({ "out": ["asked", "new"], "more": 7 }));
}

#[tokio::test]
async fn obstacles_are_reported_and_nothing_changes() {
    let world = World::new(&graph("[graphs.one.channels.gone]"), version("old"));
    let waiting = world.run(json!({ "gone": 1 })).await;
    let thread = &waiting.run.thread;
    world.install(&graph(""), version("new"));
    let before = world.engine.thread(thread).await.unwrap().unwrap();
    let refused = migrate(&world, thread, MigrateOptions::default(), false).await;
    assert!(!refused.applied);
    assert!(matches!(&refused.obstacles[..], [Obstacle::ChannelGone { .. }]));
    assert_eq!(world.engine.thread(thread).await.unwrap().unwrap(), before);
    let drop = MigrateOptions { drop: true, ..MigrateOptions::default() };
    assert!(migrate(&world, thread, drop, false).await.applied);
    let ended = world.resume(thread, &[], Default::default()).await.unwrap();
    assert_eq!(ended.state, json!({ "out": ["new"] }));
}

#[tokio::test]
async fn a_migration_counts_the_interrupts_that_it_drops() {
    let asking = |text| {
        NativePlugin::new("p", text).node("work", |_, gate| async move {
            let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
            Ok(json!({ "out": gate.ask(question).await? }))
        })
    };
    let graph = without_breakpoint();
    let world = World::new(&graph, asking("old"));
    let waiting = world.run(json!({})).await;
    let thread = &waiting.run.thread;
    world.install(&graph, asking("new"));
    let report = migrate(&world, thread, MigrateOptions::default(), false).await;
    let node = NodeName::new("work").unwrap();
    assert_eq!(report.changes, [Change::TaskRestarted { node, interrupts: 1 }]);
    let again = world.resume(thread, &[], Default::default()).await.unwrap();
    let RunOutcome::Interrupted { interrupts, .. } = &again.outcome else { panic!("{again:?}") };
    assert_eq!(interrupts.len(), 1);
}

#[tokio::test]
async fn an_orphaned_run_is_cancelled_by_a_migration() {
    let graph = without_breakpoint();
    let mut world = World::new(&graph, slow_version());
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.install(&graph, version("new"));
    assert!(migrate(&world, &run.thread, MigrateOptions::default(), false).await.applied);
    let record = world.engine.ports().store.run(&run.run).await.unwrap().unwrap();
    assert_eq!((record.status, record.ended_ms.is_some()), (RunStatus::Cancelled, true));
    let events = world.events(&run.thread).await;
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::RunEnded(_)));
    assert_eq!(ends.map(|event| &event.run).collect::<Vec<_>>(), [&run.run]);
    assert_eq!(world.engine.recover().await, 0);
    let ended = world.resume(&run.thread, &[], Default::default()).await.unwrap();
    assert_eq!(ended.state["out"], json!(["new"]));
}

/// The old version is missing, so the run cannot be recovered.
#[tokio::test]
async fn a_migrated_thread_is_no_longer_set_aside() {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let graph = without_breakpoint();
    let old = World::with_store(&graph, slow_version(), store.clone());
    old.net.hang_next(1);
    let run = old.begin(json!({})).await.unwrap();
    old.net.hung().await;
    drop(old);
    let world = World::with_store(&graph, version("new"), store);
    world.engine.start_recovery();
    assert_eq!(world.engine.wait_recovered().await.set_aside, 1);
    assert!(migrate(&world, &run.thread, MigrateOptions::default(), false).await.applied);
    assert_eq!(world.engine.set_aside(&run.thread), None);
    let ended = world.resume(&run.thread, &[], Default::default()).await.unwrap();
    assert_eq!(ended.state["out"], json!(["new"]));
}

#[tokio::test]
async fn a_current_thread_is_not_migrated_and_an_unknown_one_is_not_found() {
    let world = World::new(&graph(""), version("old"));
    let waiting = world.run(json!({})).await;
    let report = migrate(&world, &waiting.run.thread, MigrateOptions::default(), false).await;
    assert_eq!((report.from == report.to, report.applied), (true, false));
    let missing = MigrateThread {
        thread: "missing".parse().unwrap(),
        app: None,
        tenant: None,
        options: MigrateOptions::default(),
        dry_run: false,
        principal: None,
    };
    assert_eq!(world.engine.migrate(&missing).await.unwrap_err().code, code::NOT_FOUND);
}
