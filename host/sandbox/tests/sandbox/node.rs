//! Tests of nodes with a gate: values in both directions, and how the gate unwinds a guest.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::checkpoint::ChannelValue;
use wattle_graph::id::ChannelName;
use wattle_graph::plan::TaskInput;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::Grants;
use wattle_run::limit::{self, Limits};
use wattle_run::ports::sandbox::{GuestError, InputConversation, NodeCall, NodeOutcome};
use wattle_run::stop_flag::StopFlag;

use crate::{app, guest, load, stub_ports};

/// Instructions that leave the address of an empty outcome.
pub(crate) const NOTHING: &str = "(i32.const 512)";

pub(crate) const SEND: &str = r#"(import "wattle:plugin/http@0.1.0" "send" (func $send
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;

/// Instructions that send a request of zeros. The result is at address 1024.
pub(crate) const CALL_SEND: &str = "(call $send
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1024))";

async fn run(imports: &str, body: &str) -> Result<NodeOutcome, GuestError> {
    run_with(imports, body, Limits::default(), StopFlag::default()).await
}

async fn run_with(
    imports: &str,
    body: &str,
    limits: Limits,
    cancel: StopFlag,
) -> Result<NodeOutcome, GuestError> {
    let plugin = load(guest::node(imports, body)).await.unwrap();
    plugin.run_node(stub_ports::call(), stub_ports::gate(limits, cancel)).await
}

/// Returns instructions that trap if `wanted` is zero, and otherwise return an empty outcome.
fn expect(wanted: &str) -> String {
    format!("{wanted} (i32.eqz) (if (then (unreachable))) {NOTHING}")
}

#[tokio::test]
async fn node_returns_an_outcome() {
    assert_eq!(run("", NOTHING).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn updates_become_writes() {
    // One update: channel `n`, value `{}`, overwriting.
    let body = "(i32.store (i32.const 516) (i32.const 640))
        (i32.store (i32.const 520) (i32.const 1))
        (i32.store (i32.const 640) (i32.const 64)) (i32.store (i32.const 644) (i32.const 1))
        (i32.store (i32.const 648) (i32.const 65)) (i32.store (i32.const 652) (i32.const 2))
        (i32.store8 (i32.const 656) (i32.const 1))
        (i32.const 512)";
    let outcome = run("", body).await.unwrap();
    assert_eq!(outcome.writes.len(), 1);
    assert_eq!(outcome.writes[0].channel.as_str(), "n");
    assert_eq!(outcome.writes[0].value, json!({}));
    assert!(outcome.writes[0].overwrite);
}

#[tokio::test]
async fn failure_of_the_guest_is_returned() {
    // Code and message are `n`.
    let body = "(i32.store8 (i32.const 512) (i32.const 1))
        (i32.store (i32.const 516) (i32.const 64)) (i32.store (i32.const 520) (i32.const 1))
        (i32.store (i32.const 524) (i32.const 64)) (i32.store (i32.const 528) (i32.const 1))
        (i32.store8 (i32.const 532) (i32.const 1))
        (i32.const 512)";
    match run("", body).await {
        Err(GuestError::Failure(failure)) => {
            assert_eq!((failure.code.as_str(), failure.retryable), ("n", true));
        }
        other => panic!("no failure: {other:?}"),
    }
}

#[tokio::test]
async fn clock_returns_the_time_of_the_gate() {
    let imports = r#"(import "wattle:plugin/clock@0.1.0" "now" (func $now (result i64)))"#;
    let same = format!("(i64.eq (call $now) (i64.const {}))", stub_ports::NOW_MS);
    assert_eq!(run(imports, &expect(&same)).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn waiting_for_the_host_uses_no_cpu_time() {
    let limits = Limits { cpu_ms: 20, ..Limits::default() };
    let body = format!("{CALL_SEND} {CALL_SEND} {NOTHING}");
    let started = Instant::now();
    let outcome = run_with(SEND, &body, limits, StopFlag::default()).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
    assert!(started.elapsed() >= 2 * stub_ports::EXCHANGE);
}

#[tokio::test]
async fn gate_unwinds_a_guest_during_a_call() {
    let cancel = StopFlag::default();
    cancel.set();
    let body = format!("{CALL_SEND} (unreachable)");
    let ended = run_with(SEND, &body, Limits::default(), cancel).await;
    assert_eq!(ended, Err(GuestError::Unwound(Unwind::Cancelled)));
}

#[tokio::test]
async fn invalid_json_is_a_failure_for_the_guest() {
    let imports = r#"(import "wattle:plugin/emit@0.1.0" "custom"
        (func $custom (param i32 i32 i32 i32 i32)))"#;
    let emit = |length| {
        format!(
            "(call $custom (i32.const 64) (i32.const 1) (i32.const 65) (i32.const {length})
                (i32.const 1024))"
        )
    };
    let failed = "(i32.load8_u (i32.const 1024))";
    assert!(run(imports, &format!("{} {}", emit(1), expect(failed))).await.is_ok());
    let worked = format!("(i32.eqz {failed})");
    assert!(run(imports, &format!("{} {}", emit(2), expect(&worked))).await.is_ok());
}

#[tokio::test]
async fn json_above_the_limit_of_its_field_is_not_parsed() {
    let emit = r#"(import "wattle:plugin/emit@0.1.0" "custom"
        (func $call (param i32 i32 i32 i32 i32)))"#;
    let put = r#"(import "wattle:plugin/memory@0.1.0" "put"
        (func $call (param i32 i32 i32 i32 i32 i32 i32 i64 i32)))"#;
    let ask = r#"(import "wattle:plugin/interrupt@0.1.0" "ask"
        (func $call (param i32 i32 i32 i32 i32 i32 i32 i32)))"#;
    // The zeros from address 65536 are not JSON: if they were parsed, the code of the failure would
    // be `invalid`.
    let text = |allowed: usize| format!("(i32.const 65536) (i32.const {})", allowed + 1);
    let name = "(i32.const 64) (i32.const 1)";
    let nothing = "(i32.const 0) (i32.const 0)";
    let event = format!("{name} {}", text(limit::EVENT_BYTES));
    let document = text(limit::MEMORY_DOCUMENT_BYTES);
    let document = format!("{nothing} {name} {document} (i32.const 0) (i64.const 0)");
    let schema = text(wattle_graph::limit::SCHEMA_BYTES as usize);
    let question = format!("(i32.const 65) (i32.const 2) (i32.const 1) {schema} {nothing}");
    // The failure's code has the length of `limit`.
    let is_limit = expect("(i32.eq (i32.load (i32.const 1032)) (i32.const 5))");
    for (import, arguments) in [(emit, event), (put, document), (ask, question)] {
        let body = format!(
            "(drop (memory.grow (i32.const 8))) (call $call {arguments} (i32.const 1024)) {is_limit}"
        );
        assert_eq!(run(import, &body).await, Ok(NodeOutcome::default()), "{import}");
    }
}

#[tokio::test]
async fn ungranted_call_is_denied() {
    let imports = r#"(import "wattle:plugin/memory@0.1.0" "delete"
        (func $delete (param i32 i32 i32 i32 i32)))"#;
    // The failure's code has the length of `denied`.
    let body = format!(
        "(call $delete (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 1024)) {}",
        expect("(i32.eq (i32.load (i32.const 1032)) (i32.const 6))")
    );
    assert_eq!(run(imports, &body).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn configuration_of_the_node_is_in_extra() {
    // The context has one extra field, with a value of 7 bytes.
    let extra = "(i32.load (i32.add (local.get 0) (i32.const 72)))";
    let body = expect(&format!("(i32.eq (i32.load offset=12 {extra}) (i32.const 7))"));
    let plugin = load(guest::node("", &body)).await.unwrap();
    let config = Arc::new(json!({ "a": 1 }).into());
    let call = NodeCall { config, ..stub_ports::call() };
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    assert_eq!(plugin.run_node(call, gate).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn failure_is_in_extra_of_the_error_handler() {
    // The context has one extra field, with a key of 5 bytes and a value of 15.
    let extra = "(i32.load (i32.add (local.get 0) (i32.const 72)))";
    let key = format!("(i32.eq (i32.load offset=4 {extra}) (i32.const 5))");
    let value = format!("(i32.eq (i32.load offset=12 {extra}) (i32.const 15))");
    let plugin = load(guest::node("", &expect(&format!("(i32.and {key} {value})")))).await.unwrap();
    let call = NodeCall { error: Some(json!({ "code": "lost" })), ..stub_ports::call() };
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    assert_eq!(plugin.run_node(call, gate).await, Ok(NodeOutcome::default()));
}

/// Calls a node that writes its input, and after it the extra field of its context, if there is one.
/// Returns the written values.
async fn received(input: TaskInput, conversation: Option<InputConversation>) -> Vec<Value> {
    // Both updates are of the channel `n`.
    let update = |at: usize, text: &str, length: &str| {
        format!(
            "(i32.store (i32.const {at}) (i32.const 64))
            (i32.store offset=4 (i32.const {at}) (i32.const 1))
            (i32.store offset=8 (i32.const {at}) {text})
            (i32.store offset=12 (i32.const {at}) {length})"
        )
    };
    let extra = "(i32.load offset=72 (local.get 0))";
    let body = [
        "(i32.store (i32.const 516) (i32.const 640))
        (i32.store (i32.const 520)
            (i32.add (i32.const 1) (i32.load offset=76 (local.get 0))))"
            .to_owned(),
        update(640, "(i32.load offset=80 (local.get 0))", "(i32.load offset=84 (local.get 0))"),
        update(
            660,
            &format!("(i32.load offset=8 {extra})"),
            &format!("(i32.load offset=12 {extra})"),
        ),
        NOTHING.to_owned(),
    ];
    let plugin = load(guest::node("", &body.concat())).await.unwrap();
    let call = NodeCall { input, conversation, ..stub_ports::call() };
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    let outcome = plugin.run_node(call, gate).await.unwrap();
    outcome.writes.into_iter().map(|write| write.value).collect()
}

#[tokio::test]
async fn input_has_the_current_turn_of_the_conversation() {
    let channel = |name: &str| ChannelName::new(name).unwrap();
    let part = |from| InputConversation { channel: channel("messages"), from, length: 3 };
    let whole = json!({ "messages": ["a", "b", "c"], "notes": ["a", "b"] });
    let turn = json!({ "messages": ["c"], "notes": ["a", "b"] });
    let field = |name: &str| (channel(name), ChannelValue::from(whole[name].clone()));
    let fields = ["messages", "notes"].map(field);
    let state = TaskInput::State { values: fields.into(), reads: None };
    for input in [state, TaskInput::Sent(Arc::new(whole.clone()))] {
        let extra = json!({ "channel": "messages", "from": 2, "length": 3 });
        assert_eq!(received(input.clone(), Some(part(2))).await, [turn.clone(), extra]);
        let extra = json!({ "channel": "messages", "from": 0, "length": 3 });
        assert_eq!(received(input.clone(), Some(part(0))).await, [whole.clone(), extra]);
        assert_eq!(received(input, None).await, std::slice::from_ref(&whole));
    }
}

#[tokio::test]
async fn tenant_route_needs_a_grant() {
    let imports = r#"(import "wattle:plugin/tenants@0.1.0" "set-route"
        (func $set (param i32 i32 i32 i32 i32)))"#;
    // The failure's code has the length of `denied`.
    let body = format!(
        "(call $set (i32.const 64) (i32.const 1) (i32.const 65) (i32.const 2) (i32.const 1024)) {}",
        expect("(i32.eq (i32.load (i32.const 1032)) (i32.const 6))")
    );
    assert_eq!(run(imports, &body).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn transaction_needs_a_grant() {
    let imports = r#"(import "wattle:plugin/sql@0.1.0" "begin" (func $begin (param i32 i32 i32)))"#;
    let body = format!(
        "(call $begin (i32.const 64) (i32.const 1) (i32.const 1024)) {}",
        expect("(i32.load8_u (i32.const 1024))")
    );
    assert_eq!(run(imports, &body).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn batch_runs_concurrently_and_returns_all_results() {
    let imports = r#"(import "wattle:plugin/http@0.1.0" "send-all"
        (func $send_all (param i32 i32 i32)))"#;
    // Six requests of zeros; six results are expected.
    let body = format!(
        "(call $send_all (i32.const 2048) (i32.const 6) (i32.const 1024)) {}",
        expect("(i32.eq (i32.load (i32.const 1028)) (i32.const 6))")
    );
    let plugin = load(guest::node(imports, &body)).await.unwrap();
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    // Compiling takes longer than all exchanges on some machines.
    let started = Instant::now();
    assert_eq!(plugin.run_node(stub_ports::call(), gate).await, Ok(NodeOutcome::default()));
    assert!(started.elapsed() < 6 * stub_ports::EXCHANGE, "the calls of the batch ran one by one");
}

#[tokio::test]
async fn wasi_clock_returns_the_time_of_the_gate() {
    let seconds = stub_ports::NOW_MS / 1_000;
    let body = format!(
        "(drop (call $random)) (call $now (i32.const 1024)) {}",
        expect(&format!("(i64.eq (i64.load (i32.const 1024)) (i64.const {seconds}))"))
    );
    let plugin = load(guest::foreign(&body)).await.unwrap();
    let imports = &plugin.info().imports;
    assert!(imports.iter().any(|name| name == "wasi:clocks/wall-clock"), "{imports:?}");
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    assert_eq!(plugin.run_node(stub_ports::call(), gate).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn wasi_output_is_written_only_after_check_write_permits_it() {
    let stdout = "(local.set 0 (call $stdout))";
    let permit = "(call $check_write (local.get 0) (i32.const 1024))";
    let write = "(call $write (local.get 0) (i32.const 64) (i32.const 1) (i32.const 1040))";
    let run = async |body: String| {
        let plugin = load(guest::foreign(&body)).await.unwrap();
        plugin
            .run_node(stub_ports::call(), stub_ports::gate(Limits::default(), StopFlag::default()))
            .await
    };
    let outcome = run(format!("{stdout} {permit} {write} {NOTHING}")).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
    match run(format!("{stdout} {write} {NOTHING}")).await {
        Err(GuestError::Trap(failure)) => {
            assert!(failure.message.contains("than `check-write` permitted"), "{failure}");
        }
        other => panic!("no trap: {other:?}"),
    }
}

#[tokio::test]
async fn node_plugin_has_no_reducer() {
    let plugin = load(guest::node("", NOTHING)).await.unwrap();
    let ended = plugin.reduce(&app(), "r", None, vec![], &Grants::default()).await;
    assert!(matches!(ended, Err(GuestError::Host(_))), "{ended:?}");
}
