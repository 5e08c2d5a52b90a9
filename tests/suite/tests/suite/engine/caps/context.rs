//! The cap of the context of a run.

use serde_json::{Value, json};
use wattle_graph::failure::code;
use wattle_graph::id::GraphName;
use wattle_run::caps::Caps;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService, StartRun};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, questions};

/// `call` starts `inner` with a context of a given size.
const GRAPHS: &str = r#"
[graphs.main]
entry = "call"
[graphs.main.channels]
bytes = {}
out = {}
[graphs.main.nodes.call]
plugin = "p"
[graphs.inner]
entry = "tell"
[graphs.inner.channels.out]
[graphs.inner.nodes.tell]
plugin = "p"
"#;

const CAP: u64 = 100;

/// Returns a context that has a number of bytes as JSON.
fn context(bytes: u64) -> Value {
    let text =
        "x".repeat(usize::try_from(bytes).unwrap() - json!({ "user": "" }).to_string().len());
    json!({ "user": text })
}

fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("call", |call, gate| async move {
            let bytes = call.input.get("bytes").as_u64().unwrap_or_default();
            let request = StartRun {
                graph: Some(GraphName::new("inner").unwrap()),
                context: context(bytes),
                ..StartRun::new(gate.caller().app.clone(), json!({}))
            };
            let told = match gate.start_run(request).await {
                Ok(run) => gate.wait_run(&run).await?.state["out"]["user"].clone(),
                Err(CallError::Failure(failure)) => {
                    failure.details.map_or(Value::Null, |details| details["limit"].clone())
                }
                Err(stop) => return Err(stop),
            };
            let answer =
                gate.ask(InterruptRequest { payload: json!("?"), response_schema: None }).await?;
            Ok(json!({ "out": [told, answer] }))
        })
        .node("tell", |call, _| async move { Ok(json!({ "out": call.context })) })
}

fn world(run_context_bytes: u64) -> World {
    let mut world = World::new(GRAPHS, plugin());
    world.cap(Caps { run_context_bytes, ..Caps::default() });
    world
}

#[tokio::test]
async fn a_run_with_a_context_above_the_cap_is_refused() {
    let mut world = world(CAP);
    let request = |world: &World, bytes| StartRun {
        context: context(bytes),
        ..world.request(None, json!({ "bytes": 20 }))
    };
    let refused = world.engine.start(request(&world, CAP + 1)).await.unwrap_err();
    assert_eq!(refused.code, code::LIMIT, "{refused}");
    let details = json!({ "limit": "run_context_bytes", "field": "context", "allowed": CAP });
    assert_eq!(refused.details, Some(details));
    let run = world.engine.start(request(&world, CAP)).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    // The thread keeps its context under a lower cap.
    world.cap(Caps { run_context_bytes: CAP / 2, ..Caps::default() });
    let ended = world.answer(&run.thread, json!("!")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
}

/// The node gets the recorded failure when it runs again under a higher cap.
#[tokio::test]
async fn a_subgraph_with_a_context_above_the_cap_is_refused() {
    let mut world = world(CAP);
    let ended = world.run(json!({ "bytes": CAP + 1 })).await;
    assert_eq!(questions(&ended).len(), 1);
    world.cap(Caps::default());
    let ended = world.answer(&ended.run.thread, json!("!")).await;
    assert_eq!(ended.state["out"], json!(["run_context_bytes", "!"]));
    let ended = world.run(json!({ "bytes": CAP + 1 })).await;
    let ended = world.answer(&ended.run.thread, json!("!")).await;
    assert_eq!(ended.state["out"], json!([context(CAP + 1)["user"], "!"]));
}
