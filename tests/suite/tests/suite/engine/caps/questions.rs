//! The cap of pending interrupts of a thread.

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_run::caps::Caps;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, RunOutcome, RunService};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, failure, questions};

/// Graphs whose tasks each raise an interrupt, half of them in subgraphs.
const GRAPHS: &str = r#"
[graphs.main]
entry = "split"
[graphs.main.channels]
count = {}
out = { reducer = "append" }
[graphs.main.nodes]
split = { plugin = "p", goto = ["ask", "inner"] }
ask = { plugin = "p" }
inner = { graph = "nested" }
[graphs.nested]
entry = "ask"
[graphs.nested.channels]
number = {}
out = { reducer = "append" }
[graphs.nested.nodes]
ask = { plugin = "p" }
"#;

fn asking() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("split", |call, _| async move {
            let count = call.input.get("count").as_u64().unwrap_or_default();
            let send = |number: u64| {
                let node = if number.is_multiple_of(2) { "ask" } else { "inner" };
                json!({ "node": node, "input": { "number": number } })
            };
            Ok(json!({ "$send": (0..count).map(send).collect::<Vec<_>>() }))
        })
        .node("ask", |_, gate| async move {
            let answer =
                gate.ask(InterruptRequest { payload: json!("?"), response_schema: None }).await?;
            Ok(json!({ "out": [answer] }))
        })
}

fn world(thread_questions: u64) -> World {
    let mut world = World::new(GRAPHS, asking());
    world.cap(Caps { thread_questions, ..Caps::default() });
    world
}

/// Answers `count` of the pending interrupts and waits for the run.
async fn answer(world: &World, ended: &EndedRun, count: usize) -> EndedRun {
    let view = world.engine.thread(&ended.run.thread).await.unwrap().unwrap();
    let ids: Vec<String> = view.interrupts.into_iter().map(|open| open.id).collect();
    let answers: Vec<(&str, Value)> =
        ids.iter().take(count).map(|id| (id.as_str(), json!("!"))).collect();
    world.resume(&ended.run.thread, &answers, OnFailure::Keep).await.unwrap()
}

fn asked(kind: &EventKind) -> bool {
    matches!(kind, EventKind::InterruptRaised(_))
}

#[tokio::test]
async fn interrupts_up_to_the_cap_are_raised_and_answered() {
    let world = world(4);
    let ended = world.run(json!({ "count": 4 })).await;
    assert_eq!(questions(&ended).len(), 4);
    let ended = answer(&world, &ended, 4).await;
    assert_eq!(
        (ended.outcome, ended.state["out"].as_array().unwrap().len()),
        (RunOutcome::Completed, 4)
    );
}

#[tokio::test]
async fn a_superstep_above_the_cap_fails_and_continues_after_answers() {
    let mut world = world(4);
    let ended = world.run(json!({ "count": 6 })).await;
    let full = failure(&ended);
    let details = full.details.as_ref().unwrap();
    assert_eq!((full.code.as_str(), &details["limit"]), (code::LIMIT, &json!("thread_questions")));
    assert!(full.message.contains("increase `limits.thread_questions`"), "{full}");
    assert_eq!(world.count(&ended.run.thread, asked).await, 4);

    world.crash().await;
    let ended = answer(&world, &ended, 2).await;
    assert_eq!(questions(&ended).len(), 4, "{:?}", ended.outcome);
    assert_eq!(world.count(&ended.run.thread, asked).await, 6);
    let ended = answer(&world, &ended, 4).await;
    assert_eq!(
        (ended.outcome, ended.state["out"].as_array().unwrap().len()),
        (RunOutcome::Completed, 6)
    );
}
