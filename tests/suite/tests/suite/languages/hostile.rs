//! Twins of the misdeeds in Rust: the host ends each like its twin, with the same message, while an
//! honest node runs. A panic ends otherwise: the SDK of a twin converts an exception to a failure.
//!
//! No twin runs on StarlingMonkey, whose build takes about 20 seconds. Limits and refusals are
//! those of the host for every engine, and `conformance.rs` runs the SDK on this one. Two misdeeds
//! would end before the host gets their updates: the engine needs more memory for a text of 2 MiB
//! than the host permits, and 500 nested arrays exceed its stack, which the SDK reports as `invalid`.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, TaskFault};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_kit::need;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::RunOutcome;
use wattle_run::limit::Limits;
use wattle_run::ports::Plugin;
use wattle_suite::misdeeds::{self, Misdeed};
use wattle_suite::world::{World, failure};
use wattle_suite::{guests, server};

use super::load;

const GRAPHS: &str = r#"
[graphs.counter]
entry = "counter"
[graphs.counter.channels.number]
[graphs.counter.nodes.counter]
plugin = "misdeeds"

[graphs.spin]
entry = "spin"
[graphs.spin.nodes.spin]
plugin = "misdeeds"

[graphs.hog]
entry = "hog"
[graphs.hog.nodes.hog]
plugin = "misdeeds"

[graphs.trap]
entry = "trap"
[graphs.trap.nodes.trap]
plugin = "misdeeds"

[graphs.huge_output]
entry = "huge_output"
[graphs.huge_output.channels.size]
[graphs.huge_output.channels.text]
[graphs.huge_output.nodes.huge_output]
plugin = "misdeeds"

[graphs.deep_json]
entry = "deep_json"
[graphs.deep_json.channels.depth]
[graphs.deep_json.channels.value]
[graphs.deep_json.nodes.deep_json]
plugin = "misdeeds"

[graphs.explore]
entry = "explore"
[graphs.explore.channels.reached]
[graphs.explore.channels.refused]
[graphs.explore.nodes.explore]
plugin = "misdeeds"

[graphs.recollect]
entry = "recollect"
[graphs.recollect.channels.recollected]
[graphs.recollect.channels.forgotten]
[graphs.recollect.nodes.recollect]
plugin = "misdeeds"
"#;

/// The graph of a node that tries what WASI has.
const EXPLORE: &str = r#"
[graphs.explore]
entry = "explore"
[graphs.explore.channels.reached]
[graphs.explore.channels.refused]
[graphs.explore.channels.broken]
[graphs.explore.nodes.explore]
plugin = "misdeeds"
"#;

/// The source of the twin in TypeScript.
const TYPESCRIPT: &str = include_str!("../../../../guests/misdeeds/typescript/src/index.ts");

/// The source of the twin in Python.
const PYTHON: &str = include_str!("../../../../guests/misdeeds/python/misdeeds.py");

/// The name of the plugin, which messages contain.
const PLUGIN: &str = "misdeeds";

/// Calls of the node that tries to remember its calls.
const RECOLLECTIONS: usize = 3;

/// Details of a failure that tell what the guest said of it.
const OF_THE_GUEST: [&str; 2] = ["cause", "output"];

/// Returns a world with a plugin, which has enough memory for every language, and too little CPU
/// time to be wasted by a test.
fn world(plugin: Arc<dyn Plugin>) -> World {
    let limits = Limits { cpu_ms: 500, output_bytes: 1 << 20, ..Limits::default() };
    World::with_plugins(GRAPHS, vec![(plugin, Grants { limits, ..Grants::default() })])
}

/// Runs a misdeed and an honest node at once, and returns fault and failure of the misdeed.
async fn misbehave(world: &World, misdeed: &Misdeed) -> (TaskFault, Failure) {
    let (ended, honest) = tokio::join!(
        world.run_graph(misdeed.node, misdeed.input()),
        world.run_graph("counter", json!({ "number": 1 })),
    );
    assert_eq!((honest.outcome, &honest.state["number"]), (RunOutcome::Completed, &json!(2)));
    let mut events = world.events(&ended.run.thread).await.into_iter();
    let fault = events.find_map(|event| match event.kind {
        EventKind::TaskFailed(failed) => Some(failed.fault),
        _ => None,
    });
    let mut failure = failure(&ended);
    if let Some(Value::Object(details)) = &mut failure.details {
        details.retain(|key, _| !OF_THE_GUEST.contains(&key.as_str()));
    }
    (fault.unwrap(), failure)
}

/// Checks that the misdeeds of a plugin end like those in Rust, and that neither remembers
/// anything.
async fn compare(twin: &World) {
    let name = PluginName::new(PLUGIN).unwrap();
    let rust = guests::bytes("wattle-guest-misdeeds");
    let rust = world(server::sandbox().load(&name, rust).await.unwrap());
    for misdeed in misdeeds::ALL {
        let (fault, failure) = misbehave(twin, misdeed).await;
        assert_eq!((fault, failure.code.as_str()), (misdeed.fault(), misdeed.code), "{failure}");
        assert_eq!((fault, failure), misbehave(&rust, misdeed).await, "{}", misdeed.node);
    }
    for world in [twin, &rust] {
        for _ in 0..RECOLLECTIONS {
            let ended = world.run_graph("recollect", json!({})).await;
            assert_eq!(ended.outcome, RunOutcome::Completed);
            for places in ["recollected", "forgotten"] {
                assert_eq!(ended.state[places], json!([]), "{places}");
            }
        }
    }
}

/// Checks that a plugin reaches nothing around it. Returns the names of the exceptions that its
/// attempts end with.
async fn explore(twin: &World) -> Value {
    let ended = twin.run_graph("explore", json!({})).await;
    assert_eq!((ended.outcome, &ended.state["reached"]), (RunOutcome::Completed, &json!([])));
    let has_response = |event: &EventKind| match event {
        EventKind::Called(call) => call.function == "http.send" && call.result.is_ok(),
        _ => false,
    };
    assert_eq!(twin.count(&ended.run.thread, has_response).await, 0);
    ended.state["refused"].clone()
}

/// Returns the line of a source that throws the exception.
fn line_of_exception(source: &str) -> usize {
    source.lines().position(|line| line.contains("(\"a misdeed\")")).unwrap() + 1
}

/// Runs the node that throws an exception. Returns the message and the details of the failure.
async fn throw(twin: &World) -> (String, Value) {
    let failure = failure(&twin.run_graph("trap", json!({})).await);
    assert_eq!(failure.code, code::INTERNAL, "{failure}");
    (failure.message, failure.details.unwrap())
}

#[tokio::test]
async fn twins_in_typescript_end_like_the_misdeeds_in_rust() {
    let twin = world(need!(load("misdeeds-typescript", PLUGIN).await));
    compare(&twin).await;
    // The engine has none of the objects and functions that the attempts use.
    for (attempt, exception) in explore(&twin).await.as_object().unwrap() {
        assert_eq!(exception, "TypeError", "{attempt}");
    }
    let (message, details) = throw(&twin).await;
    let place = format!("src/index.ts:{}", line_of_exception(TYPESCRIPT));
    assert!(message.ends_with(&format!("RangeError: a misdeed ({place})")), "{message}");
    assert_eq!(details["exception"], "RangeError", "{details}");
    assert_eq!(details["stack"][0], format!("blunder ({place})"), "{details}");
}

#[tokio::test]
async fn twins_in_python_end_like_the_misdeeds_in_rust() {
    let twin = world(need!(load("misdeeds-python", PLUGIN).await));
    compare(&twin).await;
    let refused = json!({
        "read a file": "OSError",
        "list the root": "OSError",
        "write a file": "OSError",
        "environment": "KeyError",
        "arguments": "IndexError",
        "look up a name": "OSError",
        "connect": "OSError",
        "bind": "OSError",
        "start a process": "OSError",
        "start a thread": "RuntimeError",
    });
    assert_eq!(explore(&twin).await, refused);
    let (message, details) = throw(&twin).await;
    let line = line_of_exception(PYTHON);
    let text = format!("ValueError: a misdeed (misdeeds.py:{line})");
    assert!(message.ends_with(&text), "{message}");
    assert_eq!(details["exception"], "ValueError", "{details}");
    let frame = json!(format!("  File \"misdeeds.py\", line {line}, in trap"));
    assert!(details["traceback"].as_array().unwrap().contains(&frame), "{details}");
}

#[tokio::test]
async fn a_script_that_calls_wasi_itself_reaches_nothing() {
    let plugin = need!(load("misdeeds-quickjs", PLUGIN).await);
    let imports = &plugin.info().imports;
    for interface in ["wasi:filesystem/preopens", "wasi:sockets/tcp", "wasi:sockets/udp"] {
        assert!(imports.iter().any(|it| it == interface), "{imports:?}");
    }
    let world = World::with_plugins(EXPLORE, vec![(plugin, Grants::default())]);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["broken"], json!([]), "each attempt reaches the host");
    assert_eq!(ended.state["reached"], json!([]));
    let all = ["files", "environment", "arguments", "connect", "bind", "look up a name"];
    assert_eq!(ended.state["refused"], json!(all));
}
