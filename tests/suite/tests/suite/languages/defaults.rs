//! What toolchains build with their default settings: each guest loads, describes itself, and runs
//! a node that asks a question and a tool. `cargo xtask clients` builds the guests from
//! `tests/clients/toolchains`.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::tool::ToolRequest;
use wattle_kit::need;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::RunOutcome;
use wattle_run::ports::Plugin;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, questions};

use super::load;

const DESK: &str = r#"
[graphs.desk]
entry = "count"
[graphs.desk.channels.text]
[graphs.desk.channels.counted]
[graphs.desk.channels.decision]
[graphs.desk.nodes.count]
plugin = "caller"
[graphs.desk.nodes.approve]
plugin = "guest"
[[graphs.desk.edges]]
from = "count"
to = "approve"
"#;

/// The name of the plugin.
const GUEST: &str = "guest";

/// What the node writes to its standard output.
const SAID: &str = "asking about two words";

/// Returns a plugin whose node calls the tool with the text of the state, and writes the result or
/// the failure.
fn caller() -> (Arc<dyn Plugin>, Grants) {
    let plugin = NativePlugin::new("caller", "1").node("count", |call, gate| async move {
        let request = ToolRequest {
            tool: "guest/count_words".to_owned(),
            call_id: String::new(),
            arguments: json!({ "text": call.input.get("text") }),
            timeout_ms: None,
            state: None,
        };
        let counted = match gate.call_tools(vec![Ok(request)]).await?.remove(0) {
            Ok(output) => output.structured.unwrap_or_default(),
            Err(failure) => json!({ "code": failure.code, "details": failure.details }),
        };
        Ok(json!({ "counted": counted }))
    });
    let tools = vec!["guest/*".parse().unwrap()];
    (Arc::new(plugin), Grants { tools, ..Grants::default() })
}

fn world(plugin: &Arc<dyn Plugin>) -> World {
    World::with_plugins(DESK, vec![caller(), (Arc::clone(plugin), Grants::default())])
}

/// Runs the tool and the node, answers the question, and returns the lines of the guest's standard
/// output.
async fn run(plugin: &Arc<dyn Plugin>) -> Vec<String> {
    let world = world(plugin);
    let ended = world.run(json!({ "text": "two words" })).await;
    let asked = questions(&ended);
    assert_eq!(asked[0].payload, json!({ "ticket": "two words" }));
    assert_eq!(asked[0].response_schema, Some(json!({ "type": "boolean" })));
    let ended = world.answer(&ended.run.thread, json!(true)).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["counted"], json!({ "words": 2 }));
    assert_eq!(ended.state["decision"], "call");
    let events = world.events(&ended.run.thread).await;
    let lines = events.into_iter().filter_map(|event| match event.kind {
        EventKind::Log(log) if log.level == "stdout" => Some(log.message),
        _ => None,
    });
    lines.collect()
}

/// Lets the tool fail without a typed failure, and returns the cause that the host finds.
async fn cause(plugin: &Arc<dyn Plugin>) -> Value {
    let ended = world(plugin).run(json!({ "text": " " })).await;
    let failure = &ended.state["counted"];
    assert_eq!(failure["code"], "trap", "{failure}");
    failure["details"]["cause"].clone()
}

/// Returns true if the name of the file in a cause has this end.
fn is_in(cause: &Value, file: &str) -> bool {
    cause["file"].as_str().is_some_and(|name| name.ends_with(file))
}

fn imports(plugin: &Arc<dyn Plugin>, interface: &str) -> bool {
    plugin.info().imports.iter().any(|import| import == interface)
}

#[tokio::test]
async fn the_default_build_of_componentize_qjs_runs() {
    let plugin = need!(load("quickjs", GUEST).await);
    // The runtime has no console.
    assert_eq!(run(&plugin).await, Vec::<String>::new());
    let cause = cause(&plugin).await;
    assert_eq!(cause["text"], "there are no words");
    assert!(is_in(&cause, "plugin.js"), "{cause}");
}

#[tokio::test]
async fn the_default_build_of_componentize_js_runs() {
    let plugin = need!(load("starlingmonkey", GUEST).await);
    assert!(imports(&plugin, "wasi:http/outgoing-handler"));
    assert!(run(&plugin).await.iter().any(|line| line == SAID));
    // The runtime takes any exception for the failure of the contract, and finds no code in it.
    let cause = cause(&plugin).await;
    assert_eq!(cause["text"], "expected a string, received [undefined]");
}

#[tokio::test]
async fn the_default_build_of_componentize_py_runs() {
    let plugin = need!(load("python", GUEST).await);
    assert!(imports(&plugin, "wasi:sockets/tcp"));
    assert!(run(&plugin).await.iter().any(|line| line == SAID));
    let cause = cause(&plugin).await;
    assert_eq!(cause["text"], "ValueError: there are no words");
    assert!(is_in(&cause, "plugin.py"), "{cause}");
}

#[tokio::test]
async fn a_module_of_c_with_its_standard_library_runs() {
    let plugin = need!(load("c", GUEST).await);
    assert!(imports(&plugin, "wasi:filesystem/types"));
    assert!(run(&plugin).await.iter().any(|line| line == SAID));
    let cause = cause(&plugin).await;
    assert_eq!(cause["text"], "Assertion failed: words > 0");
    assert!(is_in(&cause, "plugin.c"), "{cause}");
}
