//! Crashes at any point: subgraphs continue from their durable events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{Notify, oneshot};
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Ticket};
use wattle_store::InMemoryStore;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::World;

use super::{FAN, INNER, fan, graphs, graphs_with, paying};

#[tokio::test]
async fn a_crash_inside_of_a_subgraph_repeats_no_finished_call() {
    for sub in ["", "state = \"own\"", "state = \"none\""] {
        let plugin = paying().node("two", |_, gate| async move {
            let said = said(&gate.call(prompt("two")).await?);
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "log": said }))
        });
        let mut world = World::new(&graphs_with(sub), plugin);
        world.net.hang_next(1);
        let run = world.begin(json!({})).await.unwrap();
        world.net.hung().await;
        world.crash().await;
        assert_eq!(world.engine.recover().await, 1);
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Completed, "{sub}");
        assert_eq!(ended.state["log"], json!(["before", "answer 1", "answer 2", "after"]), "{sub}");
        assert_eq!((world.model.calls(), world.net.calls()), (2, 2), "{sub}");
    }
}

#[tokio::test]
async fn supersteps_of_a_subgraph_count_after_a_crash() {
    let steps_left = async |sub: &str, crashes: bool| {
        let plugin = paying().node("two", |call, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "log": call.remaining_steps }))
        });
        let mut world = World::new(&graphs_with(sub), plugin);
        world.net.hang_next(usize::from(crashes));
        let run = world.begin(json!({})).await.unwrap();
        if crashes {
            world.net.hung().await;
            world.crash().await;
            assert_eq!(world.engine.recover().await, 1);
        }
        world.engine.wait(&run).await.unwrap().state["log"][2].clone()
    };
    for sub in ["", "state = \"own\"", "state = \"none\""] {
        let left = steps_left(sub, true).await;
        assert!(left.is_u64(), "{sub}");
        assert_eq!(left, steps_left(sub, false).await, "{sub}");
    }
}

#[tokio::test]
async fn a_finished_subgraph_does_not_run_again_with_its_sibling() {
    let graph = graphs().replace("entry = \"before\"", "entry = [\"before\", \"sub\"]");
    let plugin = paying().node("before", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "log": "before" }))
    });
    // Without this edge `sub` runs only in the first superstep.
    let graph = graph.replacen("[[graphs.main.edges]]\nfrom = \"before\"\nto = \"sub\"\n", "", 1);
    let mut world = World::new(&graph, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    while world.count(&run.thread, |kind| is_end_of(kind, "sub")).await == 0 {
        tokio::task::yield_now().await;
    }
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["log"], json!(["before", "answer 1", "two", "after"]));
    assert_eq!(world.model.calls(), 1);
}

fn is_end_of(kind: &wattle_graph::event::EventKind, node: &str) -> bool {
    use wattle_graph::event::EventKind;
    matches!(kind, EventKind::TaskFinished(done) if done.node.as_str() == node)
}

/// A store that accepts some batches and then none until `take` is called again.
struct Freezing {
    below: Arc<dyn Store>,
    left: AtomicUsize,
    frozen: Notify,
}

impl Freezing {
    fn take(&self, batches: usize) {
        self.left.store(batches, Ordering::SeqCst);
    }
}

#[async_trait]
impl Layer for Freezing {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, left: AtomicUsize::new(usize::MAX), frozen: Notify::new() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let left =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() {
            return self.below.append(thread, batch).await;
        }
        self.frozen.notify_one();
        let (answer, ticket) = oneshot::channel();
        // The ticket must stay pending, so its sender must not be dropped.
        std::mem::forget(answer);
        Ticket::waiting(ticket, || ())
    }
}

/// Crashes a run with subgraphs after each number of batches.
async fn cut_everywhere(graph: &str, plugin: impl Fn() -> wattle_suite::native::NativePlugin) {
    let whole = World::new(graph, plugin());
    let expected = whole.run(json!({})).await;
    assert_eq!(expected.outcome, RunOutcome::Completed);
    let paid = whole.model.calls();
    let mut cuts = 0;
    for batches in 1.. {
        let store = Arc::new(Layered::<Freezing>::over(Arc::new(InMemoryStore::new())));
        store.take(batches);
        let mut world = World::with_store(graph, plugin(), store.clone());
        let began = tokio::select! {
            () = store.frozen.notified() => None,
            began = world.begin(json!({})) => Some(began.unwrap()),
        };
        let Some(run) = began else { continue };
        let ended = tokio::select! {
            () = store.frozen.notified() => None,
            ended = world.engine.wait(&run) => Some(ended.unwrap()),
        };
        if ended.is_some() {
            break;
        }
        world.crash().await;
        store.take(usize::MAX);
        assert_eq!(world.engine.recover().await, 1);
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Completed, "cut after {batches} batches");
        let (state, log) =
            (ended.state, |state: &serde_json::Value| state["log"].as_array().map(Vec::len));
        assert_eq!(log(&state), log(&expected.state), "cut after {batches} batches: {state}");
        // Each result in progress at the crash is requested again, and no other.
        assert!(world.model.calls() <= paid + 2, "cut after {batches} batches");
        cuts += 1;
    }
    assert!(cuts > 5, "{cuts}");
}

#[tokio::test]
async fn a_crash_after_any_batch_leads_to_the_same_state_with_subgraphs() {
    for sub in ["", "state = \"own\"", "state = \"none\""] {
        cut_everywhere(&graphs_with(sub), paying).await;
    }
    cut_everywhere(&format!("{FAN}{INNER}"), || {
        fan(2)
            .node("one", |_, gate| async move {
                Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
            })
            .node("two", |_, _| async { Ok(json!({ "log": "two" })) })
    })
    .await;
}
