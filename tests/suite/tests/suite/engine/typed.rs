//! A typed component that knows nothing of the host: `wattle-guest-typed` as a tool of a node.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::id::PluginName;
use wattle_graph::tool::ToolRequest;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::RunOutcome;
use wattle_run::ports::Plugin;
use wattle_suite::guests;
use wattle_suite::native::NativePlugin;
use wattle_suite::server::sandbox;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.calls]
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Returns a plugin whose node lists its tools, calls those of its input, and writes the results.
fn caller() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let tools: Vec<String> = gate.tools().await?.into_iter().map(|info| info.name).collect();
        let mut results = Vec::new();
        for wanted in call.input["calls"].as_array().into_iter().flatten() {
            let request = ToolRequest {
                tool: wanted[0].as_str().unwrap_or_default().to_owned(),
                call_id: String::new(),
                arguments: wanted[1].clone(),
                timeout_ms: None,
                state: None,
            };
            results.push(match gate.call_tool(request).await {
                Ok(output) => json!({ "value": output.structured, "is_error": output.is_error }),
                Err(CallError::Failure(failure)) => json!({ "failed": failure.message }),
                Err(unwind) => return Err(unwind),
            });
        }
        Ok(json!({ "out": { "tools": tools, "results": results } }))
    })
}

/// Returns a world with the caller and the component, which has the given grants.
async fn world(grants: Grants) -> World {
    let name = PluginName::new("shop").unwrap();
    let shop = sandbox().load(&name, guests::bytes("wattle-guest-typed")).await.unwrap();
    let tools = vec!["shop/*".parse().unwrap()];
    let caller: Arc<dyn Plugin> = Arc::new(caller());
    let plugins = vec![(caller, Grants { tools, ..Grants::default() }), (shop, grants)];
    World::with_plugins(ONE, plugins)
}

#[tokio::test]
async fn a_node_calls_functions_of_a_typed_component() {
    let world = world(Grants::default()).await;
    let line = |price: Value| json!({ "sku": "a", "quantity": 2, "price": price });
    let ended = world
        .run(json!({ "calls": [
            ["orders_total", { "lines": [line(json!(2.25)), line(json!(1))] }],
            ["shop/orders_total", { "lines": [] }],
            ["orders_total", { "lines": [line(json!("1"))] }],
        ] }))
        .await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let out = &ended.state["out"];
    let mut tools: Vec<&str> =
        out["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    tools.sort_unstable();
    assert_eq!(tools, ["orders_total", "place_read", "place_variable", "place_write"]);
    let results = &out["results"];
    assert_eq!(results[0], json!({ "value": 6.5, "is_error": false }));
    assert_eq!(results[1], json!({ "value": "no lines", "is_error": true }));
    let failed = results[2]["failed"].as_str().unwrap();
    assert!(failed.contains("at $.lines[0].price: expected a number, got a string"), "{failed}");
    let events = world.events(&ended.run.thread).await;
    let journaled = events.iter().filter(|event| match &event.kind {
        EventKind::Called(called) => called.function == "tools.call",
        _ => false,
    });
    assert_eq!(journaled.count(), 3);
}

#[tokio::test]
async fn a_typed_component_finds_nothing_around_it() {
    let ended = world(Grants::default())
        .await
        .run(json!({ "calls": [
            ["place_variable", { "name": "PATH" }],
            ["place_read", { "path": "/etc/hostname" }],
            ["place_write", { "path": "found", "text": "x" }],
        ] }))
        .await;
    let results = &ended.state["out"]["results"];
    assert_eq!(results[0], json!({ "value": null, "is_error": false }));
    assert!(results[1]["is_error"] == true && results[2]["is_error"] == true, "{results}");
}
