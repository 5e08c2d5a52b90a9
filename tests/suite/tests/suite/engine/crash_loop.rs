//! Runs that are recovered again and again: without progress, their threads are set aside.

use std::time::Duration;

use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::hostcall::runs::{RunOutcome, RunRef, RunService};
use wattle_run::ports::store::RecoveryCount;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt};
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Returns a plugin whose node calls a service and a model in turn, three times.
fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for _ in 0..3 {
            gate.call(get("https://example.com/slow")).await?;
            gate.call(prompt("next")).await?;
        }
        Ok(json!({ "out": "done" }))
    })
}

/// Returns a world with a run whose first call hangs.
async fn hanging() -> (World, RunRef) {
    let world = World::new(ONE, plugin());
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    (world, run)
}

/// Crashes the host while the first call hangs. The recovered run hangs at the same call. Returns
/// the number of recovered runs.
async fn crash_and_recover(world: &mut World) -> usize {
    world.crash().await;
    world.net.hang_next(1);
    let recovered = world.engine.recover().await;
    if recovered > 0 {
        world.net.hung().await;
    }
    recovered
}

async fn recovery_count(world: &World, run: &RunRef) -> RecoveryCount {
    let record = world.engine.ports().store.run(&run.run).await.unwrap();
    record.unwrap().recovery_count
}

#[tokio::test]
async fn the_third_recovery_without_progress_sets_the_thread_aside() {
    let (mut world, run) = hanging().await;
    for number in 1..=2 {
        assert_eq!(crash_and_recover(&mut world).await, 1);
        assert_eq!(recovery_count(&world, &run).await.without_progress, number);
    }
    let calls = world.net.calls();
    assert_eq!(crash_and_recover(&mut world).await, 0);
    let aside = world.engine.set_aside(&run.thread).unwrap();
    assert_eq!((aside.failure.code.as_str(), aside.run.as_ref()), (code::LIMIT, Some(&run.run)));
    let details = aside.failure.details.unwrap();
    let expected = json!({
        "limit": "recoveries_without_progress", "allowed": 3, "thread_id": run.thread,
        "run_id": run.run,
    });
    assert_eq!(details, expected);
    let retry = format!("`wattle thread retry {}`", run.thread);
    assert!(aside.failure.message.contains(&retry), "{}", aside.failure.message);

    // Neither the host nor its next start executes the run again.
    world.clock.advance_ms(31_000);
    assert_eq!(world.engine.retry_set_aside().await, 0);
    assert_eq!(world.engine.set_aside(&run.thread).unwrap().attempts, 2);
    assert_eq!(crash_and_recover(&mut world).await, 0);
    assert_eq!(world.net.calls(), calls);

    // A request does, and begins the count again.
    world.net.hang_next(0);
    assert_eq!(world.engine.retry_recovery(&run.thread).await.unwrap(), run);
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    assert_eq!(world.engine.set_aside(&run.thread), None);
    assert_eq!(recovery_count(&world, &run).await, RecoveryCount::default());
}

#[tokio::test]
async fn a_run_with_progress_between_crashes_is_always_recovered() {
    let (mut world, run) = hanging().await;
    for _ in 0..2 {
        // The call that hung returns, and the next one hangs.
        world.crash().await;
        world.model.hang_next(1);
        assert_eq!(world.engine.recover().await, 1);
        world.model.hung().await;
        assert_eq!(recovery_count(&world, &run).await.without_progress, 1);
        assert_eq!(crash_and_recover(&mut world).await, 1);
        assert_eq!(recovery_count(&world, &run).await.without_progress, 1);
    }
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn recoveries_after_a_shutdown_do_not_count() {
    let (mut world, run) = hanging().await;
    assert_eq!(crash_and_recover(&mut world).await, 1);
    for _ in 0..3 {
        world.engine.shutdown(Duration::ZERO).await;
        assert!(recovery_count(&world, &run).await.is_handed_over);
        assert_eq!(crash_and_recover(&mut world).await, 1);
        let crashed_once = RecoveryCount { without_progress: 1, is_handed_over: false };
        assert_eq!(recovery_count(&world, &run).await, crashed_once);
    }
    assert_eq!(crash_and_recover(&mut world).await, 1);
    assert_eq!(crash_and_recover(&mut world).await, 0);
}
