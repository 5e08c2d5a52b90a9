//! Tests of components that use the asynchronous ABI.

use std::time::Instant;

use bytes::Bytes;
use futures::FutureExt as _;
use serde_json::json;
use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;
use wattle_run::app::App;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, NodeOutcome, Plugin};
use wattle_run::stop_flag::StopFlag;

use crate::node::{CALL_SEND, NOTHING, SEND};
use crate::typed::call;
use crate::{guest, load, load_error, stub_ports};

/// The callback code `YIELD` of the asynchronous ABI. wasmtime calls the callback of a function
/// that returns this code.
const YIELD: &str = "(i32.const 1)";

/// Number of calls, which is larger than the number of places for guests of this ABI.
const MORE_THAN_PLACES: usize = 40;

/// Number of polls within which the call of a guest that only yields ends.
const TURNS: usize = 10;

async fn run(bytes: Bytes, limits: Limits) -> Result<NodeOutcome, GuestError> {
    let plugin = load(bytes).await.unwrap();
    plugin.run_node(stub_ports::call(), stub_ports::gate(limits, StopFlag::default())).await
}

/// Returns the limit that ended a guest.
fn limit_of(ended: Result<NodeOutcome, GuestError>) -> Failure {
    match ended {
        Err(GuestError::Limit(failure)) => failure,
        other => panic!("no limit ended the guest: {other:?}"),
    }
}

/// A node that yields, and returns when it is called back.
fn yielding() -> Bytes {
    yielding_with("")
}

/// A node like [`yielding`] with further definitions.
fn yielding_with(definitions: &str) -> Bytes {
    let callback = format!("{} (i32.const 0)", guest::return_nothing());
    guest::async_node_with(definitions, YIELD, &callback)
}

/// Runs the node of a plugin in an app.
async fn run_in(app: &str, plugin: &dyn Plugin) -> Result<NodeOutcome, GuestError> {
    let app = App { name: AppName::new(app).unwrap(), ..stub_ports::app(Grants::default()) };
    let gate = stub_ports::gate_to(stub_ports::stub_model(), app, StopFlag::default());
    plugin.run_node(stub_ports::call(), gate).await
}

#[tokio::test]
async fn component_with_a_function_of_the_asynchronous_abi_runs() {
    let bytes = guest::node(guest::TASK_CANCEL, NOTHING);
    assert_eq!(run(bytes, Limits::default()).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn asynchronous_functions_run() {
    let plugin = load(yielding()).await.unwrap();
    assert_eq!(plugin.info().nodes[0].name, "n");
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    let outcome = plugin.run_node(stub_ports::call(), gate).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn asynchronous_guest_waits_for_the_host_without_cpu_time() {
    let limits = Limits { cpu_ms: 20, ..Limits::default() };
    let imports = format!("{} {SEND}", guest::TASK_CANCEL);
    let started = Instant::now();
    let outcome = run(guest::node(&imports, &format!("{CALL_SEND} {NOTHING}")), limits).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
    assert!(started.elapsed() >= stub_ports::EXCHANGE);
}

#[tokio::test]
async fn gate_unwinds_an_asynchronous_guest() {
    let imports = format!("{} {SEND}", guest::TASK_CANCEL);
    let body = format!("{CALL_SEND} (unreachable)");
    let plugin = load(guest::node(&imports, &body)).await.unwrap();
    let cancel = StopFlag::default();
    cancel.set();
    let gate = stub_ports::gate(Limits::default(), cancel);
    let ended = plugin.run_node(stub_ports::call(), gate).await;
    assert_eq!(ended, Err(GuestError::Unwound(Unwind::Cancelled)));
}

#[tokio::test]
async fn endless_yielding_exceeds_the_cpu_limit() {
    let limits = Limits { cpu_ms: 50, ..Limits::default() };
    let failure = limit_of(run(guest::async_node(YIELD, YIELD), limits).await);
    assert_eq!(failure.details.unwrap()["limit"], "cpu");
}

#[tokio::test]
async fn call_of_a_guest_that_nothing_wakes_can_be_dropped() {
    let wait = "(i32.or (i32.const 2) (i32.shl (call $set) (i32.const 4)))";
    let plugin = load(guest::async_node(wait, "(unreachable)")).await.unwrap();
    for _ in 0..MORE_THAN_PLACES {
        let gate = stub_ports::gate(Limits::default(), StopFlag::default());
        let mut call = plugin.run_node(stub_ports::call(), gate);
        for _ in 0..TURNS {
            assert_eq!(call.as_mut().now_or_never(), None, "nothing wakes the guest");
        }
    }
}

#[tokio::test]
async fn waitable_sets_of_a_guest_are_limited() {
    let endless = "(loop (drop (call $set)) (br 0)) (unreachable)";
    let ended = run(guest::async_node(endless, "(unreachable)"), Limits::default()).await;
    let details = limit_of(ended).details.unwrap();
    assert_eq!(details, json!({ "limit": "instances" }));
}

#[tokio::test]
async fn dropped_call_of_a_guest_that_has_yielded_frees_its_place() {
    let plugin = load(yielding()).await.unwrap();
    let call = || {
        let gate = stub_ports::gate(Limits::default(), StopFlag::default());
        plugin.run_node(stub_ports::call(), gate)
    };
    for _ in 0..MORE_THAN_PLACES {
        assert_eq!(call().now_or_never(), None, "the guest has yielded");
    }
    assert_eq!(call().await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn guests_of_one_app_wait_for_places_and_leave_places_to_another_app() {
    let plugin = load(yielding()).await.unwrap();
    let run = |app| Box::pin(run_in(app, plugin.as_ref()));
    // As many calls as there are places for guests of this ABI.
    let mut begun: Vec<_> = (0..16).map(|_| run("app")).collect();
    for run in &mut begun {
        assert_eq!(run.now_or_never(), None, "the guest has yielded or waits for a place");
    }
    assert_eq!(run("other").await, Ok(NodeOutcome::default()));
    for run in begun {
        assert_eq!(run.await, Ok(NodeOutcome::default()));
    }
}

#[tokio::test]
async fn guests_with_many_tables_leave_tables_to_guests_of_another_app() {
    let sandbox = crate::sandbox();
    let large = yielding_with(&"(table 0 funcref)".repeat(16));
    let large = crate::load_into(&sandbox, large).await.unwrap();
    let small = crate::load_into(&sandbox, yielding()).await.unwrap();
    let mut begun: Vec<_> = (0..8).map(|_| Box::pin(run_in("app", large.as_ref()))).collect();
    for run in &mut begun {
        assert_eq!(run.now_or_never(), None, "the guest has yielded or waits for places");
    }
    assert_eq!(run_in("other", small.as_ref()).await, Ok(NodeOutcome::default()));
    for run in begun {
        assert_eq!(run.await, Ok(NodeOutcome::default()));
    }
}

#[tokio::test]
async fn both_abis_run_in_one_sandbox() {
    let sandbox = crate::sandbox();
    for bytes in [yielding(), guest::node("", NOTHING), yielding()] {
        let plugin = crate::load_into(&sandbox, bytes).await.unwrap();
        let gate = stub_ports::gate(Limits::default(), StopFlag::default());
        let outcome = plugin.run_node(stub_ports::call(), gate).await;
        assert_eq!(outcome, Ok(NodeOutcome::default()));
    }
}

#[tokio::test]
async fn rejection_of_unsupported_async_instructions_names_a_compiler_flag() {
    let text = r#"(component
        (core func (canon error-context.drop))
        (instance $empty)
        (export "wattle:plugin/node@0.1.0" (instance $empty)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "invalid");
    assert!(error.message.contains("error-context"), "{error}");
    assert!(error.hint.contains("`--sync`"), "{error}");
}

/// The type of the function is asynchronous, and the core function is synchronous.
#[tokio::test]
async fn asynchronous_function_may_be_lifted_for_synchronous_calls() {
    let text = r#"(component
        (core module $m
            (func (export "double") (param i32) (result i32)
                (i32.shl (local.get 0) (i32.const 1))))
        (core instance $i (instantiate $m))
        (type $double (func async (param "number" u32) (result u32)))
        (func $f (type $double) (canon lift (core func $i "double")))
        (export "double" (func $f)))"#;
    let plugin = load(guest::component(text)).await.unwrap();
    let arguments = json!({ "number": 21 });
    let output = call(plugin.as_ref(), "double", arguments, Limits::default()).await;
    assert_eq!(output.unwrap().structured, Some(json!(42)));
}
