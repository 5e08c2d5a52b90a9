//! The limit of tasks of a run, in all of its graphs.

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_graph::limit::GraphLimits;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{World, failure};

/// A graph with one task, which sends to as many subgraphs as its input requests, each with `tasks`
/// tasks in sequence.
const GRAPHS: &str = r#"
[graphs.main]
entry = "split"
[graphs.main.channels]
graphs = {}
each = {}
tasks = { reducer = "min" }
[graphs.main.nodes]
split = { plugin = "p", goto = ["sub"] }
sub = { graph = "nested" }
[graphs.nested]
entry = "work"
[graphs.nested.channels]
tasks = { reducer = "min" }
[graphs.nested.nodes]
work = { plugin = "p", goto = ["work"] }
"#;

fn working() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("split", |call, _| async move {
            let number = |name: &str| call.input.get(name).as_u64().unwrap_or_default();
            let send = json!({ "node": "sub", "input": { "tasks": number("each") } });
            Ok(json!({ "$send": vec![send; number("graphs") as usize] }))
        })
        .node("work", |call, gate| async move {
            let left = call.input.get("tasks").as_u64().unwrap_or_default();
            if left == 3 {
                gate.call(get("https://example.com/slow")).await?;
            }
            let next: &[&str] = if left > 1 { &["work"] } else { &[] };
            Ok(json!({ "tasks": left.saturating_sub(1), "$goto": next }))
        })
}

fn world(run_tasks: u64) -> World {
    let world = World::new(GRAPHS, working());
    world.limit_graphs(GRAPHS, working(), GraphLimits { run_tasks, ..GraphLimits::default() });
    world
}

fn input(graphs: u64, each: u64) -> Value {
    json!({ "graphs": graphs, "each": each })
}

fn finished(kind: &EventKind) -> bool {
    matches!(kind, EventKind::TaskFinished(_))
}

#[tokio::test]
async fn tasks_of_subgraphs_count_for_the_run() {
    // One task that splits, three subgraphs, and three times five tasks.
    let world = world(19);
    let ended = world.run(input(3, 5)).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(world.count(&ended.run.thread, finished).await, 19);
    // The tasks of another run count separately.
    let run = world.begin_on(Some(&ended.run.thread), input(3, 5)).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_run_fails_at_the_limit_of_tasks_of_all_its_graphs() {
    let world = world(18);
    let ended = world.run(input(3, 5)).await;
    let full = failure(&ended);
    let details = full.details.as_ref().unwrap();
    assert_eq!((full.code.as_str(), &details["limit"]), (code::LIMIT, &json!("run_tasks")));
    assert!(full.message.contains("raise `limits.run_tasks`"), "{full}");
    assert!(world.count(&ended.run.thread, finished).await < 18);
    // Another run continues with the unfinished tasks and has its own limit.
    let ended = world.resume(&ended.run.thread, &[], OnFailure::Keep).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn a_recovered_run_counts_its_finished_tasks() {
    for (allowed, completes) in [(7, true), (6, false)] {
        let mut world = world(allowed);
        world.net.hang_next(1);
        let run = world.begin(input(1, 5)).await.unwrap();
        world.net.hung().await;
        world.crash().await;
        assert_eq!(world.engine.recover().await, 1);
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(ended.outcome == RunOutcome::Completed, completes, "{:?}", ended.outcome);
        if !completes {
            assert_eq!(failure(&ended).details.unwrap()["limit"], "run_tasks");
        }
    }
}
