//! Retention of threads: time to live, pruning, copies and deleted runs.

use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService, StartRun};
use wattle_run::ports::store::{CheckpointQuery, Durability, PruneStrategy, RunOptions, ThreadTtl};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::World;

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
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": "done" }))
    });
    let mut world = World::new(ONE, plugin);
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
