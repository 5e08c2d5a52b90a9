//! The graph that a mortal engine runs, with most kinds of stored data.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::ports::sandbox::NodeCall;

use crate::native::NativePlugin;
use crate::scripted::{get, prompt, said};

/// A graph with a model call, sends, a barrier, a subgraph with an interrupt, and a retry.
pub const GRAPHS: &str = r#"
[graphs.main]
entry = "think"
[graphs.main.channels.thought]
[graphs.main.channels.answer]
[graphs.main.channels.trail]
reducer = "append"
[graphs.main.nodes.think]
plugin = "p"
goto = ["work"]
[graphs.main.nodes.work]
plugin = "p"
[graphs.main.nodes.left]
plugin = "p"
node = "pay"
[graphs.main.nodes.right]
plugin = "p"
node = "pay"
[graphs.main.nodes.join]
plugin = "p"
node = "pay"
[graphs.main.nodes.nested]
graph = "inner"
[graphs.main.nodes.flaky]
plugin = "p"
retry = { attempts = 3, initial = "1ms", jitter = false }
[[graphs.main.edges]]
from = "think"
to = ["left", "right"]
[[graphs.main.edges]]
from = ["left", "right"]
to = "join"
[[graphs.main.edges]]
from = "join"
to = "nested"
[[graphs.main.edges]]
from = "nested"
to = "flaky"

[graphs.inner]
entry = "first"
[graphs.inner.channels.answer]
[graphs.inner.channels.trail]
reducer = "append"
[graphs.inner.nodes.first]
plugin = "p"
node = "pay"
[graphs.inner.nodes.ask]
plugin = "p"
[[graphs.inner.edges]]
from = "first"
to = "ask"
"#;

/// The number of tasks that `think` sends.
pub const SENDS: usize = 3;

/// Makes a payment under a name. The idempotency key contains the task id, so that a repetition
/// differs from a second payment.
async fn pay(gate: &Gate, call: &NodeCall, name: &str) -> Result<Value, CallError> {
    let paid = gate
        .call(HttpRequest {
            method: "POST".into(),
            idempotency_key: Some(format!("{}:{name}", call.task)),
            ..get(&format!("/echo/{name}"))
        })
        .await?;
    Ok(json!({ "trail": format!("{name} {}", paid.status) }))
}

async fn think(call: NodeCall, gate: Arc<Gate>) -> Result<Value, CallError> {
    let thought = said(&gate.call(prompt("think")).await?);
    let paid = pay(&gate, &call, "think").await?;
    let sends: Vec<Value> =
        (0..SENDS).map(|item| json!({ "node": "work", "input": { "item": item } })).collect();
    Ok(json!({ "thought": thought, "trail": paid["trail"], "$send": sends }))
}

async fn ask(call: NodeCall, gate: Arc<Gate>) -> Result<Value, CallError> {
    pay(&gate, &call, "before-the-question").await?;
    let question = InterruptRequest { payload: json!({ "sure": "?" }), response_schema: None };
    let answer = gate.ask(question).await?;
    let paid = pay(&gate, &call, "after-the-answer").await?;
    Ok(json!({ "answer": answer, "trail": paid["trail"] }))
}

/// Returns the plugin with the nodes.
pub fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("think", think)
        .node("ask", ask)
        .node("work", |call, gate| async move {
            let name = format!("work-{}", call.input.get("item"));
            pay(&gate, &call, &name).await
        })
        .node("pay", |call, gate| async move {
            let name = format!("{}-{}", call.graph, call.step);
            pay(&gate, &call, &name).await
        })
        .node("flaky", |call, gate| async move {
            let paid = pay(&gate, &call, "once").await?;
            if call.attempt == 1 {
                return Err(Failure::new(code::UNAVAILABLE, "not yet").retryable().into());
            }
            let again = pay(&gate, &call, "flaky").await?;
            Ok(json!({ "trail": [paid["trail"], again["trail"]] }))
        })
}
