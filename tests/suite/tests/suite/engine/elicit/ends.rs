//! Calls that are not continued.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wattle_graph::failure::code;
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::step::{Edit, EditAs};
use wattle_run::grant::InDoubtPolicy;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{OnFailure, RunRef, RunService as _};
use wattle_run::limit::{ELICITED_MESSAGE_BYTES, SERVER_ROUNDS};
use wattle_run::ports::store::{PruneStrategy, RunOptions};
use wattle_run::time_travel::{EditThread, ForkFrom, ForkInto, ForkThread};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, unavailable};
use wattle_suite::world::{World, failure, questions};

use super::{Desk, ONE, TWO, accept, asked, book, decline, world, world_of};

#[tokio::test]
async fn held_calls_of_deleted_threads_and_cancelled_runs_are_released() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    assert_eq!(desk.waiting(), 1);
    world.engine.delete_thread(&thread).await.unwrap();
    desk.lets_go(0).await;
    let plugin = NativePlugin::new("p", "1")
        .node("a", |_, gate| async move { book(&gate, "a").await })
        .node("b", |_, gate| async move {
            gate.call(get("https://a.example/slow")).await?;
            Ok(json!({}))
        });
    let world = world_of(TWO, plugin, &desk, InDoubtPolicy::Fail);
    desk.asked.notified().await;
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    desk.asked.notified().await;
    world.engine.cancel(&run).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    desk.lets_go(0).await;
}

/// Returns an edit that ends the thread.
fn edited(thread: &ThreadId) -> EditThread {
    EditThread {
        thread: thread.clone(),
        app: None,
        graph: None,
        tenant: None,
        namespace: Namespace::root(),
        checkpoint: None,
        supersteps: vec![vec![Edit { as_node: EditAs::End, writes: Vec::new() }]],
        metadata: BTreeMap::new(),
        principal: None,
    }
}

/// Returns a fork from the first checkpoint.
fn forked(thread: &ThreadId) -> ForkThread {
    ForkThread {
        thread: thread.clone(),
        run: None,
        from: ForkFrom::Checkpoint { checkpoint: CheckpointId(1), input: None },
        into: ForkInto::InPlace,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: None,
    }
}

/// Ends the wait of a thread for an answer in the given way.
async fn end(world: &World, asked: &RunRef, how: &str) {
    let (engine, thread) = (&world.engine, &asked.thread);
    match how {
        "edit" => drop(engine.edit(edited(thread)).await.unwrap()),
        "prune" => engine.prune(thread, PruneStrategy::Delete).await.unwrap(),
        "delete the run" => {
            engine.delete_runs(thread, std::slice::from_ref(&asked.run)).await.unwrap();
        }
        "roll back" => engine.remove_run(asked).await.unwrap(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_held_call_is_released_when_its_interrupt_is_removed() {
    for how in ["edit", "prune", "delete the run", "roll back"] {
        let desk = Desk::holding();
        let world = world(ONE, &desk);
        let (ended, _) = asked(&world).await;
        end(&world, &ended.run, how).await;
        desk.lets_go(0).await;
        assert_eq!(desk.counts(), (1, 0), "{how}");
    }
}

#[tokio::test]
async fn a_new_run_releases_only_the_call_of_the_abandoned_interrupt() {
    for is_fork in [true, false] {
        let desk = Desk::holding();
        let world = world(ONE, &desk);
        let (_, thread) = asked(&world).await;
        let run = if is_fork {
            world.engine.fork(forked(&thread)).await
        } else {
            world.begin_on(Some(&thread), json!({})).await
        };
        let ended = world.engine.wait(&run.unwrap()).await.unwrap();
        assert_eq!(questions(&ended).len(), 1, "it is interrupted, too");
        desk.lets_go(1).await;
        let ended = world.answer(&thread, accept()).await;
        assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
        assert_eq!((desk.waiting(), desk.counts()), (0, (2, 1)));
    }
}

#[tokio::test]
async fn a_prune_and_a_sweep_keep_the_held_call_of_a_pending_interrupt() {
    let desk = Desk::holding();
    let world = world(ONE, &desk);
    let (_, thread) = asked(&world).await;
    world.engine.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    world.engine.sweep().await;
    assert_eq!(desk.waiting(), 1);
    let ended = world.answer(&thread, accept()).await;
    assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
    assert_eq!(desk.counts(), (1, 1));
}

/// The server has a second round after the first answer. Then another task fails, and the thread is
/// reopened.
#[tokio::test]
async fn a_reopen_releases_the_call_that_got_the_answer() {
    let desk = Arc::new(Desk::new(true, 2));
    let plugin = NativePlugin::new("p", "1")
        .node("a", |_, gate| async move { book(&gate, "a").await })
        .node("b", |_, gate| async move {
            gate.ask(InterruptRequest { payload: json!("go on?"), response_schema: None }).await?;
            gate.call(get("https://a.example/b")).await?;
            Ok(json!({}))
        });
    let world = world_of(TWO, plugin, &desk, InDoubtPolicy::Retry);
    let ended = world.run(json!({})).await;
    let (thread, open) = (&ended.run.thread, questions(&ended));
    let id = |node: &str| open.iter().find(|it| it.node.as_str() == node).unwrap().id.as_str();
    let answers = [(id("a"), accept()), (id("b"), json!("yes"))];
    world.net.fail_next(unavailable());
    let failed = world.resume(thread, &answers, OnFailure::Reopen).await.unwrap();
    assert_eq!(failure(&failed).code, code::UNAVAILABLE);
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts, open, "only the answered interrupts");
    desk.lets_go(0).await;
    // The outcome of the call is unknown, and the policy repeats it.
    let ended = world.resume(thread, &answers, OnFailure::Reopen).await.unwrap();
    assert_eq!(questions(&ended).len(), 1);
    let ended = world.answer(thread, decline()).await;
    let out = json!([{ "a": ["accept", "decline"] }]);
    assert_eq!(ended.state["out"], out, "{:?}", ended.outcome);
    assert_eq!(desk.counts(), (2, 1));
}

#[tokio::test]
async fn a_call_above_the_elicitation_limits_is_released() {
    let text = "x".repeat(ELICITED_MESSAGE_BYTES + 1);
    let desk = Arc::new(Desk { text, ..Desk::new(true, 1) });
    let ended = world(ONE, &desk).run(json!({})).await;
    assert_eq!((failure(&ended).code.as_str(), desk.waiting()), (code::LIMIT, 0));
    let desk = Arc::new(Desk::new(true, SERVER_ROUNDS + 1));
    let world = world(ONE, &desk);
    let (mut ended, thread) = asked(&world).await;
    for _ in 0..SERVER_ROUNDS {
        assert_eq!(questions(&ended).len(), 1);
        ended = world.answer(&thread, accept()).await;
    }
    let details = failure(&ended).details.unwrap();
    assert_eq!((&details["limit"], desk.waiting()), (&json!("server_rounds"), 0));
}
