//! Retention of threads: time to live, pruning, copies and deleted runs.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunRef, RunService, StartRun};
use wattle_run::ports::Store;
use wattle_run::ports::store::{CheckpointQuery, Durability, PruneStrategy, RunOptions, ThreadTtl};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{prompt, said};
use wattle_suite::world::World;

use super::calling;

const LINE: &str = r#"
[graphs.line]
entry = "a"
edges = [{ from = "a", to = "b" }]
[graphs.line.channels.out]
reducer = "append"
[graphs.line.nodes.a]
plugin = "p"
[graphs.line.nodes.b]
plugin = "p"
"#;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

fn world() -> World {
    let plugin = NativePlugin::new("p", "1")
        .node(
            "a",
            |_, gate| async move { Ok(json!({ "out": said(&gate.call(prompt("a")).await?) })) },
        )
        .node("b", |_, gate| async move {
            let question = wattle_run::hostcall::interrupt::InterruptRequest {
                payload: json!("go on?"),
                response_schema: None,
            };
            let answer = gate.ask(question).await?;
            Ok(json!({ "out": answer }))
        });
    World::new(LINE, plugin)
}

/// Returns a world with a thread that is set aside because the version of its code is missing, with
/// its first run, which has ended, and its orphaned run.
async fn set_aside() -> (World, RunRef, RunRef) {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let old = World::with_store(ONE, calling("1"), store.clone());
    let ended = old.run(json!({})).await.run;
    old.net.hang_next(1);
    let orphaned = old.begin_on(Some(&ended.thread), json!({})).await.unwrap();
    old.net.hung().await;
    drop(old);
    let world = World::with_store(ONE, calling("2"), store);
    world.engine.start_recovery();
    assert_eq!(world.engine.wait_recovered().await.set_aside, 1);
    (world, ended, orphaned)
}

fn request(ttl: ThreadTtl) -> StartRun {
    StartRun { ttl: Some(ttl), ..StartRun::new("test".parse().unwrap(), json!({})) }
}

async fn checkpoints(world: &World, thread: &wattle_graph::id::ThreadId) -> usize {
    let store = &world.engine.ports().store;
    store.checkpoints(thread, &CheckpointQuery::default()).await.unwrap().items.len()
}

#[tokio::test]
async fn a_thread_is_deleted_exactly_after_its_time_to_live() {
    let world = world();
    let ttl = ThreadTtl { after_ms: 1_000, strategy: PruneStrategy::Delete };
    let run = world.engine.start(request(ttl)).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    world.clock.advance_ms(999);
    assert_eq!(world.engine.sweep().await, 0);
    world.clock.advance_ms(1);
    assert_eq!(world.engine.sweep().await, 1);
    assert!(world.engine.thread(&run.thread).await.unwrap().is_none());
}

/// The time to live counts from the last change of the thread, which is the start of the run.
#[tokio::test]
async fn a_thread_whose_run_is_to_be_recovered_outlives_its_time_to_live() {
    let mut world = World::new(ONE, calling("1"));
    world.net.hang_next(1);
    let ttl = ThreadTtl { after_ms: 1_000, strategy: PruneStrategy::Delete };
    let run = world.engine.start(request(ttl)).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.clock.advance_ms(1_000);
    assert_eq!(world.engine.sweep().await, 0);
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((ended.outcome, &ended.state["out"]), (RunOutcome::Completed, &json!("done")));
    world.clock.advance_ms(1_000);
    assert_eq!(world.engine.sweep().await, 1);
    assert!(world.engine.thread(&run.thread).await.unwrap().is_none());
}

#[tokio::test]
async fn a_thread_with_keep_latest_is_pruned_once_and_continues() {
    let world = world();
    let ttl = ThreadTtl { after_ms: 1_000, strategy: PruneStrategy::KeepLatest };
    let run = world.engine.start(request(ttl)).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    assert_eq!(checkpoints(&world, &run.thread).await, 2);
    world.clock.advance_ms(1_000);
    assert_eq!(world.engine.sweep().await, 1);
    assert_eq!(world.engine.sweep().await, 0, "no events since then");
    assert_eq!(checkpoints(&world, &run.thread).await, 1);
    let ended = world.answer(&run.thread, json!("yes")).await;
    assert_eq!(ended.state["out"], json!(["answer 1", "yes"]));
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn a_copy_has_the_same_interrupt_and_continues_independently() {
    let world = world();
    let waiting = world.run(json!({})).await;
    let copy = world.engine.copy_thread(&waiting.run.thread, None).await.unwrap();
    let one = world.answer(&waiting.run.thread, json!("one")).await;
    let two = world.answer(&copy, json!("two")).await;
    assert_eq!(one.state["out"], json!(["answer 1", "one"]));
    assert_eq!(two.state["out"], json!(["answer 1", "two"]));
    assert_eq!(world.model.calls(), 1, "the copy repeats no call");
    let taken = world.engine.copy_thread(&copy, Some(waiting.run.thread)).await.unwrap_err();
    assert_eq!(taken.code, code::CONFLICT);
}

#[tokio::test]
async fn deleting_a_run_deletes_only_its_checkpoints() {
    let world = world();
    let first = world.run(json!({})).await;
    let thread = &first.run.thread;
    let second = world.resume(thread, &[("", json!("yes"))], OnFailure::Keep).await.unwrap();
    assert_eq!(second.state["out"], json!(["answer 1", "yes"]));
    world.engine.delete_runs(thread, &[second.run.run]).await.unwrap();
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(view.state["out"], json!(["answer 1"]));
    assert_eq!(checkpoints(&world, thread).await, 2);
}

/// The orphaned run needs the state that earlier runs have left.
#[tokio::test]
async fn a_thread_with_an_orphaned_run_loses_no_other_run() {
    let (world, ended, orphaned) = set_aside().await;
    let thread = &orphaned.thread;
    let pruned = world.engine.prune(thread, PruneStrategy::KeepLatest).await;
    assert_eq!(pruned.unwrap_err().code, code::BUSY);
    let deleted = world.engine.delete_runs(thread, std::slice::from_ref(&ended.run)).await;
    assert_eq!(deleted.unwrap_err().code, code::BUSY);
    world.engine.delete_runs(thread, &[orphaned.run]).await.unwrap();
    assert_eq!(world.engine.set_aside(thread), None);
    world.engine.delete_runs(thread, &[ended.run]).await.unwrap();
    assert!(world.engine.thread(thread).await.unwrap().is_none());
}

#[tokio::test]
async fn a_thread_that_a_prune_deletes_is_no_longer_set_aside() {
    let (world, _, orphaned) = set_aside().await;
    world.engine.prune(&orphaned.thread, PruneStrategy::Delete).await.unwrap();
    assert_eq!(world.engine.set_aside(&orphaned.thread), None);
    assert_eq!(world.engine.recovery().set_aside, 0);
}

#[tokio::test]
async fn pruning_keeps_a_pending_interrupt_with_durability_exit() {
    let mut world = world();
    let options = RunOptions { durability: Durability::Exit, ..RunOptions::default() };
    let waiting = world.run_as(json!({}), options).await;
    let thread = &waiting.run.thread;
    world.engine.prune(thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(checkpoints(&world, thread).await, 1);
    world.crash().await;
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts.len(), 1);
    let ended = world.answer(thread, json!("yes")).await;
    assert_eq!(ended.state["out"], json!(["answer 1", "yes"]));
    assert_eq!(world.model.calls(), 1);
}
