//! Calls whose numbers are taken before they are made, as guests of `wasi:http` make them.

use serde_json::{Value, json};
use wattle_graph::event::{Called, EventKind};
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, unavailable};
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
retry = { attempts = 2, initial = "1ms" }
"#;

async fn calls(world: &World, ended: &EndedRun) -> Vec<Called> {
    let events = world.events(&ended.run.thread).await;
    let called = events.into_iter().filter_map(|event| match event.kind {
        EventKind::Called(called) => Some(*called),
        _ => None,
    });
    called.collect()
}

/// The numbers decide which results a re-executed guest gets, not the order in which the calls were
/// made.
#[tokio::test]
async fn a_call_has_the_number_of_its_ticket_and_its_result_after_a_crash() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let first = gate.begin_call(None)?;
        let second = gate.begin_call(Some(first.batch()))?;
        gate.now_ms()?;
        let second = second.call(get("https://a.example/second")).await?;
        let first = first.call(get("https://a.example/first")).await?;
        gate.call(get("https://a.example/slow")).await?;
        let body = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        Ok(json!({ "out": [body(&first.body)["call"], body(&second.body)["call"]] }))
    });
    let mut world = World::new(ONE, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"], json!([2, 1]));
    // One call more after the crash: the one that had no result.
    assert_eq!(world.net.calls(), 4);
    let calls = calls(&world, &ended).await;
    let seen: Vec<_> = calls.iter().map(|it| (it.call, it.batch, it.summary.as_str())).collect();
    let expected = [
        (2, 2, ""),
        (1, 0, "GET https://a.example/second"),
        (0, 0, "GET https://a.example/first"),
        (3, 3, "GET https://a.example/slow"),
    ];
    assert_eq!(seen, expected);
}

/// Otherwise a failure stays in the journal if another call of the batch has a higher number.
#[tokio::test]
async fn failed_calls_of_a_batch_are_repeated_together() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let first = gate.begin_call(None)?;
        let second = gate.begin_call(Some(first.batch()))?;
        let first = first.call(get("https://a.example/first")).await;
        second.call(get("https://a.example/second")).await?;
        match first {
            Ok(response) => Ok(json!({ "out": response.status })),
            Err(CallError::Failure(failure)) => Err(failure.into()),
            Err(unwind) => Err(unwind),
        }
    });
    let world = World::new(ONE, plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((&ended.state["out"], world.net.calls()), (&json!(200), 3));
}
