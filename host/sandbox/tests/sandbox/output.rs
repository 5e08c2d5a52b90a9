//! Tests of the output that a guest writes before it fails: the failure has the cause, and the end
//! of the output.

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, NodeOutcome};
use wattle_run::stop_flag::StopFlag;

use crate::{guest, load, load_error, stub_ports};

const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"app.py\", line 12, in run\n    \
                         raise ValueError(\"no rows\")\nValueError: no rows";

async fn run(bytes: bytes::Bytes) -> Result<NodeOutcome, GuestError> {
    let plugin = load(bytes).await.unwrap();
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    plugin.run_node(stub_ports::call(), gate).await
}

/// Returns the failure of a trap, and its details.
fn trap(ended: Result<NodeOutcome, GuestError>) -> (Failure, Value) {
    match ended {
        Err(GuestError::Trap(failure)) => (failure.clone(), failure.details.unwrap()),
        other => panic!("no trap: {other:?}"),
    }
}

/// The last line has no line break, as in the output of an aborted program.
#[tokio::test]
async fn traceback_is_the_cause_of_a_trap() {
    let body = format!("{} (unreachable)", guest::say(TRACEBACK));
    let (failure, details) = trap(run(guest::foreign(&body)).await);
    let message = "node `n` of plugin `guest` trapped: ValueError: no rows (app.py:12)";
    assert_eq!(failure.message, message);
    assert_eq!(details["trap"], "unreachable");
    let cause = json!({ "text": "ValueError: no rows", "file": "app.py", "line": 12 });
    assert_eq!(details["cause"], cause);
    assert_eq!(details["output"], json!({ "stdout": TRACEBACK }));
}

#[tokio::test]
async fn output_without_a_cause_is_in_the_details_of_a_trap() {
    let body = format!("{} (unreachable)", guest::say("\u{1b}[31mloading\n"));
    let (failure, details) = trap(run(guest::foreign(&body)).await);
    assert!(failure.message.contains("trapped: it panicked, or reached code"), "{failure}");
    assert!(failure.message.ends_with("; its output ends with `[31mloading`"), "{failure}");
    assert_eq!(
        (&details["cause"], &details["output"]["stdout"]),
        (&Value::Null, &json!("[31mloading\n"))
    );
}

/// The function `run` of the guest has no name.
#[tokio::test]
async fn indexes_of_functions_without_a_name_are_only_in_the_details_of_a_trap() {
    let (failure, details) = trap(run(guest::foreign("(unreachable)")).await);
    assert!(failure.message.ends_with("code that is marked as unreachable"), "{failure}");
    assert!(details["frames"][0].as_str().unwrap().starts_with("function "), "{details}");
}

/// The output is that of componentize-js.
#[tokio::test]
async fn exception_that_the_runtime_cannot_convert_has_advice() {
    let output = "expected a string, received [undefined]\nStack:\n  encode@plugin.js:3:7\n\n\
                  Redirecting call to abort() to mozalloc_abort\n\n";
    let body = format!("{} (unreachable)", guest::say(output));
    let (failure, details) = trap(run(guest::foreign(&body)).await);
    assert_eq!(details["cause"]["text"], "expected a string, received [undefined]");
    assert!(failure.message.contains("received [undefined] (plugin.js:3); if the"), "{failure}");
    assert!(failure.message.ends_with("and throw a value of that type"), "{failure}");
}

#[tokio::test]
async fn earlier_error_is_not_the_cause_of_a_stack_overflow() {
    let body = format!("{} (drop (call $recurse)) (i32.const 512)", guest::say(TRACEBACK));
    let recurse = "(func $recurse (result i32) (i32.add (call $recurse) (i32.const 1)))";
    let (failure, details) = trap(run(guest::foreign_with(recurse, &body)).await);
    assert_eq!((&details["trap"], &details["cause"]), (&json!("stack-overflow"), &Value::Null));
    assert!(!failure.message.contains("ValueError"), "{failure}");
}

#[tokio::test]
async fn message_of_the_level_panic_is_the_cause_of_a_trap() {
    let body = format!("{} (unreachable)", guest::panic("no rows"));
    let (failure, details) = trap(run(guest::node(guest::LOG, &body)).await);
    assert!(failure.message.ends_with("trapped: no rows (app.rs:7)"), "{failure}");
    assert_eq!(details["cause"], json!({ "text": "no rows", "file": "app.rs", "line": 7 }));
}

#[tokio::test]
async fn load_error_of_a_plugin_that_panics_in_its_description_has_the_cause() {
    let panic = format!("{} (unreachable)", guest::panic("no schema"));
    let traceback = format!("{} (unreachable)", guest::say(TRACEBACK));
    let output = format!("{} (unreachable)", guest::say("loading\nno schema\n"));
    for (bytes, cause) in [
        (guest::node_describing(guest::LOG, &panic), "no schema (app.rs:7)"),
        (guest::foreign_describing(&traceback), "ValueError: no rows (app.py:12)"),
        (guest::foreign_describing(&output), "its output ends with `loading\nno schema`"),
    ] {
        let error = load_error(bytes).await;
        assert_eq!(error.code, "describe");
        assert!(error.message.ends_with(cause), "{error}");
    }
}

#[tokio::test]
async fn description_may_write_log_messages() {
    let describe = format!("{} (i32.const 192)", guest::panic("nothing happened"));
    let plugin = load(guest::node_describing(guest::LOG, &describe)).await.unwrap();
    assert_eq!(plugin.info().nodes[0].name, "n");
}
