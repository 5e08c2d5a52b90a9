//! Tests of tools: values in both directions, and calls from guest to guest.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::json;
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::id::{ChannelName, PluginName, TaskId, ThreadId};
use wattle_graph::llm::Part;
use wattle_graph::tool::ToolOutput;
use wattle_run::app::PluginGrants;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, NodeOutcome, PluginToolCall, ToolHints};
use wattle_run::stop_flag::StopFlag;
use wattle_sandbox::WasmSandbox;

use crate::{guest, load, load_into, sandbox, stub_ports};

/// Instructions that return an empty output.
const NOTHING: &str = "(i32.const 512)";

/// Instructions that return the arguments as text, as structured data, and as a write to the
/// channel `t`.
const ECHO: &str = "
    (i32.store (i32.const 516) (i32.const 640)) (i32.store (i32.const 520) (i32.const 1))
    (i32.store (i32.const 644) (i32.load offset=68 (local.get 0)))
    (i32.store (i32.const 648) (i32.load offset=72 (local.get 0)))
    (i32.store8 (i32.const 524) (i32.const 1))
    (i32.store (i32.const 528) (i32.load offset=68 (local.get 0)))
    (i32.store (i32.const 532) (i32.load offset=72 (local.get 0)))
    (i32.store (i32.const 540) (i32.const 704)) (i32.store (i32.const 544) (i32.const 1))
    (i32.store (i32.const 704) (i32.const 64)) (i32.store (i32.const 708) (i32.const 1))
    (i32.store (i32.const 712) (i32.load offset=68 (local.get 0)))
    (i32.store (i32.const 716) (i32.load offset=72 (local.get 0)))
    (i32.const 512)";

const SPIN: &str = "(loop (br 0)) (unreachable)";

/// Import of the function that calls a tool.
const CALL: &str = r#"(import "wattle:plugin/tools@0.1.0" "call" (func $call
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;
/// Instructions that call the tool `t` with `{}`. The result is at address 1024.
const CALL_T: &str = "(i32.store8 (i32.const 700) (i32.const 116))
    (call $call (i32.const 700) (i32.const 1) (i32.const 0) (i32.const 0)
        (i32.const 65) (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 1024))";

fn call() -> PluginToolCall {
    PluginToolCall {
        tool: "t".to_owned(),
        call_id: "call-1".to_owned(),
        thread: Some(ThreadId::new("thread").unwrap()),
        task: Some(TaskId::new("task").unwrap()),
        tenant: None,
        violations: vec!["wrong".to_owned()],
        arguments: json!({ "a": 1 }),
        state: None,
        grants: Arc::default(),
    }
}

async fn call_tool(body: &str, limits: Limits) -> Result<ToolOutput, GuestError> {
    let plugin = load(guest::tool(&[], body)).await.unwrap();
    plugin.call_tool(call(), stub_ports::gate(limits, StopFlag::default())).await
}

/// Runs a node whose plugin may call the tools of another plugin.
async fn run_beside(
    sandbox: &WasmSandbox,
    node: Bytes,
    tool: Bytes,
    limits: Limits,
) -> Result<NodeOutcome, GuestError> {
    let tools = PluginName::new("tools").unwrap();
    let grants = Grants { tools: vec!["tools/*".parse().unwrap()], ..Grants::default() };
    let mut app = stub_ports::app(grants);
    app.plugins.insert(tools.clone(), load_into(sandbox, tool).await.unwrap());
    let mut all = PluginGrants::clone(&app.grants.all());
    all.insert(tools, Arc::new(Grants { limits, ..Grants::default() }));
    app.grants.replace(all);
    let node = load_into(sandbox, node).await.unwrap();
    node.run_node(
        stub_ports::call(),
        stub_ports::gate_to(stub_ports::stub_model(), app, StopFlag::default()),
    )
    .await
}

/// componentize-py imports all functions of the interfaces that a world names, and the world of a
/// plugin that calls tools names `tool`, because `tools` uses its types.
#[tokio::test]
async fn imported_functions_of_the_interface_tool_load_and_trap() {
    const LIST: &str = r#"(import "wattle:plugin/tool@0.1.0" "list" (func $list (param i32)))"#;
    let run = async |body: &str| {
        let plugin = load(guest::node(LIST, &format!("{body} (i32.const 512)"))).await.unwrap();
        assert!(plugin.info().imports.contains(&"wattle:plugin/tool".to_owned()));
        let gate = stub_ports::gate(Limits::default(), StopFlag::default());
        plugin.run_node(stub_ports::call(), gate).await
    };
    assert_eq!(run("").await, Ok(NodeOutcome::default()));
    match run("(call $list (i32.const 1024))").await {
        Err(GuestError::Trap(failure)) => {
            assert!(failure.message.contains("called `tool.list`"), "{failure}");
            assert_eq!(failure.details.unwrap()["trap"], "forbidden-import");
        }
        other => panic!("no trap: {other:?}"),
    }
}

#[tokio::test]
async fn tool_returns_text_data_and_updates() {
    let output = call_tool(ECHO, Limits::default()).await.unwrap();
    assert_eq!(output.content, [Part::Text(r#"{"a":1}"#.to_owned())]);
    assert_eq!(output.structured, Some(json!({ "a": 1 })));
    let channel = ChannelName::new("t").unwrap();
    let write = Write { channel, value: json!({ "a": 1 }), overwrite: false };
    assert_eq!(output.updates, [write]);
    assert!(!output.is_error);
}

#[tokio::test]
async fn tool_receives_the_context_of_its_call() {
    // The first violation has five letters, and there is a task.
    let same = "(i32.and
        (i32.load8_u offset=28 (local.get 0))
        (i32.eq (i32.load offset=4 (i32.load offset=52 (local.get 0))) (i32.const 5)))";
    let body = format!("{same} (i32.eqz) (if (then (unreachable))) {NOTHING}");
    assert_eq!(call_tool(&body, Limits::default()).await, Ok(ToolOutput::default()));
}

#[tokio::test]
async fn failure_of_the_tool_is_returned() {
    let body = "(i32.store8 (i32.const 512) (i32.const 1))
        (i32.store (i32.const 516) (i32.const 64)) (i32.store (i32.const 520) (i32.const 1))
        (i32.const 512)";
    let ended = call_tool(body, Limits::default()).await;
    assert!(
        matches!(&ended, Err(GuestError::Failure(failure)) if failure.code == "t"),
        "{ended:?}"
    );
}

/// Returns the error of a tool that is denied memory, then grows by `pages` pages, and returns a
/// failure with the code `t`.
async fn after_denied_memory(pages: u32, message: &str) -> GuestError {
    let (text, length) = (guest::store(2048, message.as_bytes()), message.len());
    let body = format!(
        "(drop (memory.grow (i32.const 1000))) (drop (memory.grow (i32.const {pages}))) {text}
        (i32.store8 (i32.const 512) (i32.const 1))
        (i32.store (i32.const 516) (i32.const 64)) (i32.store (i32.const 520) (i32.const 1))
        (i32.store (i32.const 524) (i32.const 2048))
        (i32.store (i32.const 528) (i32.const {length}))
        (i32.const 512)"
    );
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    call_tool(&body, limits).await.unwrap_err()
}

/// Python returns a `MemoryError`, and JavaScript an error of another name. Both may take memory
/// for the text of the error.
#[tokio::test]
async fn failure_about_memory_after_denied_memory_becomes_an_exceeded_limit() {
    for (pages, message) in [(0, "MemoryError"), (1, "out of memory")] {
        let GuestError::Limit(failure) = after_denied_memory(pages, message).await else {
            panic!("no limit");
        };
        let details = failure.details.unwrap();
        let limit = (&details["limit"], &details["allowed"]);
        assert_eq!(limit, (&json!("memory"), &json!(1 << 20)));
        assert_eq!(details["cause"], json!({ "text": message }));
    }
}

#[tokio::test]
async fn other_failure_after_denied_memory_keeps_its_code() {
    let limit = json!({ "limit": "memory", "allowed": 1 << 20 });
    for (pages, message, details) in
        [(0, "no rows", Some(limit)), (1, "no allocation of assets", None)]
    {
        let failure = Failure { details, ..Failure::new("t", message) };
        assert_eq!(after_denied_memory(pages, message).await, GuestError::Failure(failure));
    }
}

#[tokio::test]
async fn trap_after_denied_memory_is_a_limit_unless_the_tool_got_memory() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    for (pages, is_limit) in [(0, true), (1, false)] {
        let body = format!(
            "(drop (memory.grow (i32.const 1000))) (drop (memory.grow (i32.const {pages})))
            (unreachable)"
        );
        let ended = call_tool(&body, limits.clone()).await.unwrap_err();
        assert_eq!(matches!(ended, GuestError::Limit(_)), is_limit, "{ended:?}");
    }
}

#[tokio::test]
async fn error_of_invalid_data_names_the_tool() {
    let body = "(i32.store8 (i32.const 524) (i32.const 1))
        (i32.store (i32.const 528) (i32.const 64)) (i32.store (i32.const 532) (i32.const 1))
        (i32.const 512)";
    let Err(GuestError::Failure(failure)) = call_tool(body, Limits::default()).await else {
        panic!("the output was accepted");
    };
    assert!(failure.message.contains("tool `t` of plugin `guest`"), "{}", failure.message);
}

#[tokio::test]
async fn failure_of_an_exceeded_limit_of_a_tool_names_the_limit() {
    let grow = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (unreachable)";
    for (limit, body, limits) in [
        ("cpu", SPIN, Limits { cpu_ms: 50, ..Limits::default() }),
        ("memory", grow, Limits { memory_bytes: 1 << 20, ..Limits::default() }),
        ("output", ECHO, Limits { output_bytes: 10, ..Limits::default() }),
    ] {
        match call_tool(body, limits).await {
            Err(GuestError::Limit(failure)) => assert_eq!(failure.details.unwrap()["limit"], limit),
            other => panic!("no limit ended the tool: {other:?}"),
        }
    }
    let ended = call_tool("(unreachable)", Limits::default()).await;
    assert!(matches!(ended, Err(GuestError::Trap(_))), "{ended:?}");
}

#[tokio::test]
async fn unreadable_tool_hints_are_ignored() {
    let hints = async |text: &str| {
        let plugin = load(guest::tool(&[("hints", text)], NOTHING)).await.unwrap();
        plugin.info().tools[0].hints
    };
    let promised = ToolHints { read_only: true, idempotent: false };
    assert_eq!(hints(r#"{"read_only":true}"#).await, promised);
    assert_eq!(hints(r#"{"read_only":1}"#).await, ToolHints::default());
    assert_eq!(hints("nonsense").await, ToolHints::default());
}

#[tokio::test]
async fn node_calls_a_tool_of_another_plugin() {
    // The call succeeded, and the output has one part.
    let good = "(i32.and (i32.eqz (i32.load8_u (i32.const 1024)))
        (i32.eq (i32.load (i32.const 1032)) (i32.const 1)))";
    let body = format!("{CALL_T} {good} (i32.eqz) (if (then (unreachable))) {NOTHING}");
    let node = guest::node(CALL, &body);
    let tool = guest::tool(&[], ECHO);
    let outcome = run_beside(&sandbox(), node, tool, Limits::default()).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn looping_tool_uses_no_cpu_time_of_its_caller() {
    // The failure's code has the length of `limit`.
    let failed = "(i32.and (i32.load8_u (i32.const 1024))
        (i32.eq (i32.load (i32.const 1032)) (i32.const 5)))";
    let body = format!("{CALL_T} {failed} (i32.eqz) (if (then (unreachable))) {NOTHING}");
    let node = guest::node(CALL, &body);
    let limits = Limits { cpu_ms: 50, ..Limits::default() };
    let started = Instant::now();
    let outcome = run_beside(&sandbox(), node, guest::tool(&[], SPIN), limits).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
    assert!(started.elapsed().as_secs() < 10);
}

#[tokio::test]
async fn ungranted_tool_is_denied() {
    let body = format!(
        "{CALL_T} (i32.load8_u (i32.const 1024)) (i32.eqz) (if (then (unreachable))) {NOTHING}"
    );
    let plugin = load(guest::node(CALL, &body)).await.unwrap();
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    assert_eq!(plugin.run_node(stub_ports::call(), gate).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn node_plugin_has_no_tools() {
    let plugin = load(guest::node("", NOTHING)).await.unwrap();
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    let ended = plugin.call_tool(call(), gate).await;
    assert!(matches!(ended, Err(GuestError::Host(_))), "{ended:?}");
}
