//! A typed component that knows nothing of the host: `wattle-guest-typed` as a tool of a node.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_graph::id::PluginName;
use wattle_graph::tool::ToolRequest;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::{FolderAccess, FolderRule, Grants};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService as _};
use wattle_run::ports::Plugin;
use wattle_suite::guests;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
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
        for wanted in call.input.get("calls").as_array().into_iter().flatten() {
            let request = ToolRequest {
                tool: wanted[0].as_str().unwrap_or_default().to_owned(),
                call_id: String::new(),
                arguments: wanted[1].clone(),
                timeout_ms: None,
                state: None,
            };
            results.push(match gate.call_tool(request).await {
                Ok(output) => json!({ "value": output.structured, "is_error": output.is_error }),
                Err(CallError::Failure(failure)) => {
                    json!({ "failed": failure.message, "code": failure.code })
                }
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
    world_with(shop, grants)
}

fn world_with(shop: Arc<dyn Plugin>, grants: Grants) -> World {
    let tools = vec!["shop/*".parse().unwrap()];
    let caller: Arc<dyn Plugin> = Arc::new(caller());
    let plugins = vec![(caller, Grants { tools, ..Grants::default() }), (shop, grants)];
    World::with_plugins(ONE, plugins)
}

fn folder(path: &Path, guest: &str, access: FolderAccess) -> FolderRule {
    FolderRule { path: path.to_owned(), guest: guest.to_owned(), access }
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

#[tokio::test]
async fn a_typed_component_gets_the_environment_and_the_folders_that_it_is_granted() {
    let host = TempDir::new().unwrap();
    let (inbox, reports) = (host.path().join("inbox"), host.path().join("reports"));
    for folder in [&inbox, &reports] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(inbox.join("order.txt"), "two apples").unwrap();
    fs::write(host.path().join("secret.txt"), "secret").unwrap();
    symlink("../secret.txt", inbox.join("link.txt")).unwrap();
    let grants = Grants {
        environment: [("REGION".to_owned(), "north".to_owned())].into(),
        folders: vec![
            folder(&inbox, "/inbox", FolderAccess::ReadOnly),
            folder(&reports, "/reports", FolderAccess::ReadWrite),
        ],
        ..Grants::default()
    };
    let ended = world(grants)
        .await
        .run(json!({ "calls": [
            ["place_variable", { "name": "REGION" }],
            ["place_variable", { "name": "PATH" }],
            ["place_read", { "path": "/inbox/order.txt" }],
            ["place_write", { "path": "/reports/day.txt", "text": "done" }],
            ["place_write", { "path": "/inbox/order.txt", "text": "none" }],
            ["place_read", { "path": "/inbox/../secret.txt" }],
            ["place_read", { "path": "/inbox/link.txt" }],
        ] }))
        .await;
    let results = ended.state["out"]["results"].as_array().unwrap();
    let values: Vec<&Value> = results[..4].iter().map(|result| &result["value"]).collect();
    assert_eq!(values, [&json!("north"), &Value::Null, &json!("two apples"), &Value::Null]);
    assert!(results[..4].iter().all(|result| result["is_error"] == false), "{results:?}");
    assert!(results[4..].iter().all(|result| result["is_error"] == true), "{results:?}");
    assert_eq!(fs::read_to_string(reports.join("day.txt")).unwrap(), "done");
    assert_eq!(fs::read_to_string(inbox.join("order.txt")).unwrap(), "two apples");
}

#[tokio::test]
async fn a_granted_folder_that_is_missing_is_unavailable() {
    let missing = folder(Path::new("/nowhere/at/all"), "/inbox", FolderAccess::ReadOnly);
    let grants = Grants { folders: vec![missing], ..Grants::default() };
    let call = json!({ "calls": [["place_variable", { "name": "REGION" }]] });
    let ended = world(grants).await.run(call).await;
    let result = &ended.state["out"]["results"][0];
    assert_eq!(result["code"], code::UNAVAILABLE);
    let message = result["failed"].as_str().unwrap();
    assert!(message.contains("`/inbox`") && !message.contains("nowhere"), "{message}");
}

/// The journal below the call has nothing of what the tool wrote.
#[tokio::test]
async fn a_call_of_a_tool_that_may_write_files_is_in_doubt_after_a_crash() {
    let slow = NativePlugin::new("shop", "1").tool("write", |_, gate| async move {
        gate.call(get("https://a.example/slow")).await?;
        Ok(json!("written"))
    });
    let reports = folder(Path::new("/srv/reports"), "/reports", FolderAccess::ReadWrite);
    let grants = Grants { folders: vec![reports], ..Grants::default() };
    let mut world = world_with(Arc::new(slow), grants);
    world.net.hang_next(1);
    let run = world.begin(json!({ "calls": [["shop/write", {}]] })).await.unwrap();
    world.net.hung().await;
    let calls = world.net.calls();
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"]["results"][0]["code"], code::IN_DOUBT);
    assert_eq!(world.net.calls(), calls, "the tool is not called again");
}

#[tokio::test]
async fn a_tool_that_may_write_files_goes_on_after_the_answer_of_a_person() {
    let asking = NativePlugin::new("shop", "1").tool("write", |_, gate| async move {
        let payload = json!("write?");
        let answer = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
        Ok(json!({ "answer": answer }))
    });
    let reports = folder(Path::new("/srv/reports"), "/reports", FolderAccess::ReadWrite);
    let grants = Grants { folders: vec![reports], ..Grants::default() };
    let world = world_with(Arc::new(asking), grants);
    let waiting = world.run(json!({ "calls": [["shop/write", {}]] })).await;
    let is_waiting = matches!(waiting.outcome, RunOutcome::Interrupted { .. });
    assert!(is_waiting, "{:?}", waiting.outcome);
    let ended = world.answer(&waiting.run.thread, json!("yes")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"]["results"][0]["value"], json!({ "answer": "yes" }));
}
