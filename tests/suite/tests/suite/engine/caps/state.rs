//! The limits of the state of a graph, and of the outcomes of a superstep that are not applied yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::limit::GraphLimits;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{World, failure};

/// Bytes of the text that a task writes.
const PIECE: usize = 1_000;

/// Texts that fit, with what else counts for each of them.
const FITTING: usize = 8;

/// The limit of these tests.
const ALLOWED: u64 = 10_000;

/// A graph that appends a text in each superstep, without end.
const LOOP: &str = r#"
[graphs.main]
entry = "work"
recursion_limit = 1000
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.work]
plugin = "p"
goto = ["work"]
"#;

/// A graph with one task, which sends [`SENDS`] tasks that run one after the other.
const FAN_OUT: &str = r#"
[graphs.main]
entry = "split"
max_concurrency = 1
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes]
split = { plugin = "p", goto = ["work"] }
work = { plugin = "p" }
"#;

const SENDS: usize = 20;

/// The task that waits for a service, from 0.
const WAITING: usize = 5;

fn text() -> String {
    "x".repeat(PIECE)
}

fn looping() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("work", |_, _| async move { Ok(json!({ "log": text(), "$goto": ["work"] })) })
}

/// Returns the plugin of [`FAN_OUT`]. It counts the executions of `work`.
fn fanning(executed: &Arc<AtomicUsize>) -> NativePlugin {
    let executed = executed.clone();
    let send = |number: usize| json!({ "node": "work", "input": { "number": number } });
    let sends: Vec<Value> = (0..SENDS).map(send).collect();
    NativePlugin::new("p", "1")
        .node("split", move |_, _| {
            let sends = sends.clone();
            async move { Ok(json!({ "$send": sends })) }
        })
        .node("work", move |call, gate| {
            executed.fetch_add(1, Ordering::SeqCst);
            async move {
                if *call.input.get("number") == json!(WAITING) {
                    gate.call(get("https://example.com/slow")).await?;
                }
                Ok(json!({ "log": text() }))
            }
        })
}

fn state_limit(state_bytes: u64) -> GraphLimits {
    GraphLimits { state_bytes, ..GraphLimits::default() }
}

fn outcome_limit(step_outcome_bytes: u64) -> GraphLimits {
    GraphLimits { step_outcome_bytes, ..GraphLimits::default() }
}

/// Checks that a failure names the limit and what to do.
fn is_limit(failure: &Failure, limit: &str) {
    let details = failure.details.as_ref().unwrap();
    assert_eq!((failure.code.as_str(), &details["limit"]), (code::LIMIT, &json!(limit)));
    for part in ["blobs", &format!("raise `limits.{limit}`")] {
        assert!(failure.message.contains(part), "{failure}");
    }
}

fn items(state: &Value) -> usize {
    state["log"].as_array().map_or(0, Vec::len)
}

fn is_finished(kind: &EventKind) -> bool {
    matches!(kind, EventKind::TaskFinished(_))
}

#[tokio::test]
async fn a_run_whose_state_grows_without_end_fails() {
    let world = World::new(LOOP, looping());
    world.limit_graphs(LOOP, looping(), state_limit(ALLOWED));
    let ended = world.run(json!({})).await;
    let full = failure(&ended);
    is_limit(&full, "state_bytes");
    assert!(full.message.contains("channel `log` has the most"), "{full}");
    let before = items(&ended.state);
    assert!((FITTING..=FITTING + 1).contains(&before), "{before}");
    let view = world.engine.thread(&ended.run.thread).await.unwrap().unwrap();
    assert_eq!(view.state, ended.state, "the last state that fits can be read");

    // With a higher limit, the run continues from there.
    world.limit_graphs(LOOP, looping(), state_limit(2 * ALLOWED));
    let ended = world.resume(&ended.run.thread, &[], OnFailure::Keep).await.unwrap();
    is_limit(&failure(&ended), "state_bytes");
    assert!(items(&ended.state) >= 2 * FITTING);
}

#[tokio::test]
async fn an_input_above_the_limit_of_the_state_is_refused() {
    let world = World::new(LOOP, looping());
    world.limit_graphs(LOOP, looping(), state_limit(ALLOWED));
    let input = json!({ "log": vec![text(); 2 * FITTING] });
    is_limit(&world.begin(input).await.unwrap_err(), "state_bytes");
}

#[tokio::test]
async fn a_run_fails_if_the_outcomes_of_a_superstep_are_too_large_together() {
    let executed = Arc::<AtomicUsize>::default();
    let world = World::new(FAN_OUT, fanning(&executed));
    world.limit_graphs(FAN_OUT, fanning(&executed), outcome_limit(ALLOWED));
    let ended = world.run(json!({})).await;
    let thread = ended.run.thread.clone();
    is_limit(&failure(&ended), "step_outcome_bytes");
    // The outcome that does not fit is not logged, and no task starts after it.
    assert_eq!(world.count(&thread, is_finished).await, 1 + FITTING);
    assert_eq!(executed.load(Ordering::SeqCst), FITTING + 1);

    // Another run counts the outcomes of the tasks that have finished.
    let ended = world.resume(&thread, &[], OnFailure::Keep).await.unwrap();
    is_limit(&failure(&ended), "step_outcome_bytes");
    assert_eq!(world.count(&thread, is_finished).await, 1 + FITTING);
    assert_eq!(executed.load(Ordering::SeqCst), FITTING + 2);

    // With a higher limit, they are applied with those of the other tasks.
    world.limit_graphs(FAN_OUT, fanning(&executed), GraphLimits::default());
    let ended = world.resume(&thread, &[], OnFailure::Keep).await.unwrap();
    assert_eq!((&ended.outcome, items(&ended.state)), (&RunOutcome::Completed, SENDS));
    assert_eq!(executed.load(Ordering::SeqCst), SENDS + 2);
}

#[tokio::test]
async fn a_recovered_run_counts_the_outcomes_in_its_log() {
    let executed = Arc::<AtomicUsize>::default();
    let mut world = World::new(FAN_OUT, fanning(&executed));
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    // Fewer outcomes than have finished.
    let limit = (WAITING - 1) * PIECE;
    world.limit_graphs(FAN_OUT, fanning(&executed), outcome_limit(limit as u64));
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    is_limit(&failure(&ended), "step_outcome_bytes");
    assert_eq!(executed.load(Ordering::SeqCst), WAITING + 1, "no task was executed again");
}
