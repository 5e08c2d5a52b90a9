//! Tests of JSON whose values take much more memory than its text: results of guests, and requests
//! of host calls.

use std::pin::pin;

use futures::future::{Either, select};
use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_kit::turns::hold_all_turns;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::Grants;
use wattle_run::limit::{self, Limits};
use wattle_run::ports::sandbox::{GuestError, NodeOutcome};
use wattle_run::stop_flag::StopFlag;

use crate::{app, guest, load, stub_ports};

/// Number of zeros whose values take less memory than the limit. Those of two such lists take more.
const ZEROS: usize = 600_000;

/// Address of the text in the memory of a guest.
const TEXT: usize = 65_536;

/// The import of `sql.query`.
const QUERY: &str = r#"(import "wattle:plugin/sql@0.1.0" "query"
    (func $query (param i32 i32 i32 i32 i32 i32 i32)))"#;

/// Returns the length of a list of `zeros` zeros as JSON.
const fn text_bytes(zeros: usize) -> usize {
    1 + 2 * zeros
}

/// Returns instructions that write a list of `zeros` zeros as JSON to [`TEXT`]. They use local 0.
fn write_list(zeros: usize) -> String {
    let (bytes, first) = (text_bytes(zeros), TEXT + 1);
    let (pages, end) = (1 + bytes / 65_536, TEXT + bytes);
    let last = end - 1;
    // The constants are the bytes of `[`, `0,` and `]`. The last bracket replaces a comma.
    format!(
        "(drop (memory.grow (i32.const {pages})))
        (i32.store8 (i32.const {TEXT}) (i32.const 91))
        (local.set 0 (i32.const {first}))
        (loop
            (i32.store16 (local.get 0) (i32.const 11312))
            (local.set 0 (i32.add (local.get 0) (i32.const 2)))
            (br_if 0 (i32.lt_u (local.get 0) (i32.const {end}))))
        (i32.store8 (i32.const {last}) (i32.const 93))"
    )
}

/// Returns instructions that store words from an address on.
fn words(address: usize, words: &[usize]) -> String {
    let bytes = words.iter().flat_map(|word| u32::try_from(*word).unwrap().to_le_bytes());
    guest::store(address, &bytes.collect::<Vec<_>>())
}

async fn reduce_to_list(zeros: usize, limits: Limits) -> Result<Value, GuestError> {
    let (list, result) = (write_list(zeros), words(324, &[TEXT, text_bytes(zeros)]));
    let plugin = load(guest::reducer(&format!("{list} {result} (i32.const 320)"))).await.unwrap();
    let grants = Grants { limits, ..Grants::default() };
    plugin.reduce(&app(), "r", None, vec![], &grants).await
}

async fn run(imports: &str, body: &str) -> Result<NodeOutcome, GuestError> {
    run_with(Limits::default(), imports, body).await
}

async fn run_with(limits: Limits, imports: &str, body: &str) -> Result<NodeOutcome, GuestError> {
    let plugin = load(guest::node(imports, body)).await.unwrap();
    plugin.run_node(stub_ports::call(), stub_ports::gate(limits, StopFlag::default())).await
}

/// Runs a node that returns `updates` updates of a channel, each with a list.
async fn update_with_lists(updates: usize) -> Result<NodeOutcome, GuestError> {
    // Channel `n`, the value, no overwrite.
    let update = [64, 1, TEXT, text_bytes(ZEROS), 0];
    let (list, updated) = (write_list(ZEROS), words(640, &update.repeat(updates)));
    run("", &format!("{list} {updated} {} (i32.const 512)", words(516, &[640, updates]))).await
}

#[track_caller]
fn values_limit<T: std::fmt::Debug>(ended: Result<T, GuestError>, allowed: u64) -> Failure {
    let Err(GuestError::Limit(failure)) = ended else { panic!("no limit: {ended:?}") };
    let details = json!({ "limit": "json_values_bytes", "allowed": allowed });
    assert_eq!((&*failure.code, failure.details.as_ref()), ("limit", Some(&details)), "{failure}");
    failure
}

#[tokio::test]
async fn values_of_a_result_take_bounded_memory() {
    let value = reduce_to_list(ZEROS, Limits::default()).await.unwrap();
    assert_eq!(value.as_array().map(Vec::len), Some(ZEROS));
    let refused = reduce_to_list(2 * ZEROS, Limits::default()).await;
    let failure = values_limit(refused, limit::JSON_VALUES_BYTES);
    for part in [
        "a value that reducer `r` of plugin `guest` returned cannot be read",
        "put large data into a text or a blob",
        "raise `limits.output` under `[grants.\"app/guest\"]` in wattle.toml",
    ] {
        assert!(failure.message.contains(part), "{part}: {failure}");
    }
}

#[tokio::test]
async fn memory_of_the_values_of_a_result_grows_with_the_output_limit() {
    let larger = Limits { output_bytes: 2 * limit::OUTPUT_BYTES, ..Limits::default() };
    assert!(reduce_to_list(2 * ZEROS, larger).await.is_ok());
    let smaller = Limits { output_bytes: limit::OUTPUT_BYTES / 2, ..Limits::default() };
    assert!(reduce_to_list(ZEROS, smaller).await.is_ok());
}

#[tokio::test]
async fn updates_of_an_outcome_share_the_memory_of_their_values() {
    assert_eq!(update_with_lists(1).await.unwrap().writes.len(), 1);
    let failure = values_limit(update_with_lists(2).await, limit::JSON_VALUES_BYTES);
    let what = "an update of `n` that node `n` of plugin `guest` returned";
    assert!(failure.message.contains(what), "{failure}");
}

/// Runs a node that passes `parameters` parameters to a query, each with a list. The node traps
/// unless the query fails with a code of the length of `code`.
async fn query_with_lists(parameters: usize, code: &str) -> Result<NodeOutcome, GuestError> {
    // The case of the parameters is `json`. The length of the code is at address 1032.
    let parameter = [6, 0, TEXT, text_bytes(ZEROS)];
    let body = format!(
        "{} {} (call $query (i32.const 64) (i32.const 1) (i32.const 64) (i32.const 1)
            (i32.const 704) (i32.const {parameters}) (i32.const 1024))
        (i32.ne (i32.load (i32.const 1032)) (i32.const {})) (if (then (unreachable)))
        (i32.const 512)",
        write_list(ZEROS),
        words(704, &parameter.repeat(parameters)),
        code.len()
    );
    run(QUERY, &body).await
}

#[tokio::test]
async fn texts_of_a_host_call_share_the_memory_of_their_values() {
    assert_eq!(query_with_lists(1, "denied").await, Ok(NodeOutcome::default()));
    assert_eq!(query_with_lists(2, "limit").await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn refused_requests_count_as_host_calls() {
    let ask = r#"(import "wattle:plugin/interrupt@0.1.0" "ask"
        (func $call (param i32 i32 i32 i32 i32 i32 i32 i32)))"#;
    let put = r#"(import "wattle:plugin/memory@0.1.0" "put"
        (func $call (param i32 i32 i32 i32 i32 i32 i32 i64 i32)))"#;
    let stat = r#"(import "wattle:plugin/blob@0.1.0" "stat" (func $call (param i32 i32 i32)))"#;
    let send_all =
        r#"(import "wattle:plugin/http@0.1.0" "send-all" (func $call (param i32 i32 i32)))"#;
    // The text `n` is neither JSON nor the reference of a blob.
    let wrong = "(i32.const 64) (i32.const 1)";
    let nothing = "(i32.const 0) (i32.const 0)";
    let question = format!("{wrong} (i32.const 0) {nothing} {nothing}");
    // A web handler cannot ask.
    let unsupported = format!("(i32.const 65) (i32.const 2) (i32.const 0) {nothing} {nothing}");
    let document = format!("{nothing} {wrong} {wrong} (i32.const 0) (i64.const 0)");
    let batch = format!("(i32.const {TEXT}) (i32.const {})", limit::BATCH_CALLS + 1);
    for (import, arguments) in [
        (ask, &*question),
        (ask, &*unsupported),
        (put, &*document),
        (stat, wrong),
        (send_all, &*batch),
    ] {
        let limits = Limits { host_calls: 1, ..Limits::default() };
        let body = format!("(loop (call $call {arguments} (i32.const 1024)) (br 0)) (unreachable)");
        match run_with(limits, import, &body).await {
            Err(GuestError::Unwound(Unwind::Limit(failure))) => {
                assert_eq!(failure.details.unwrap()["limit"], "host_calls", "{import}");
            }
            other => panic!("{import}: {other:?}"),
        }
    }
}

/// Runs a node that calls `requests` tools at once, each with invalid arguments of 2,048 bytes. The
/// node traps unless the first call fails with a code of the length of `code`.
async fn call_all_tools(requests: usize, code: &str) -> Result<NodeOutcome, GuestError> {
    let import = r#"(import "wattle:plugin/tools@0.1.0" "call-all"
        (func $call_all (param i32 i32 i32)))"#;
    // A request has 40 bytes, and its arguments are at offset 16. The zeros after the requests are
    // no JSON. A result has its case at offset 0, and the length of the code at offset 8.
    let end = TEXT + 40 * requests;
    let body = format!(
        "(local.set 0 (i32.const {TEXT}))
        (loop
            (i32.store offset=16 (local.get 0) (i32.const {end}))
            (i32.store offset=20 (local.get 0) (i32.const 2048))
            (local.set 0 (i32.add (local.get 0) (i32.const 40)))
            (br_if 0 (i32.lt_u (local.get 0) (i32.const {end}))))
        (call $call_all (i32.const {TEXT}) (i32.const {requests}) (i32.const 1024))
        (local.set 0 (i32.load (i32.const 1024)))
        (i32.ne (i32.load8_u (local.get 0)) (i32.const 1)) (if (then (unreachable)))
        (i32.ne (i32.load offset=8 (local.get 0)) (i32.const {}))
        (if (then (unreachable)))
        (i32.const 512)",
        code.len()
    );
    run(import, &body).await
}

#[tokio::test]
async fn invalid_request_of_a_batch_becomes_its_failure() {
    assert_eq!(call_all_tools(2, "invalid").await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn long_texts_are_parsed_in_turns() {
    let held = hold_all_turns().await;
    let result = pin!(reduce_to_list(ZEROS, Limits::default()));
    let request = pin!(query_with_lists(1, "denied"));
    let mut waiting = select(result, request);
    let others = async {
        for _ in 0..3 {
            assert_eq!(reduce_to_list(1, Limits::default()).await, Ok(json!([0])));
        }
        let too_large = call_all_tools(limit::BATCH_CALLS + 1, "limit");
        assert_eq!(too_large.await, Ok(NodeOutcome::default()), "no request is parsed");
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("a long text was parsed while others held all turns"),
        () = others => {}
    }
    drop(held);
    match waiting.await {
        Either::Left((result, request)) => assert!(result.is_ok() && request.await.is_ok()),
        Either::Right((request, result)) => assert!(request.is_ok() && result.await.is_ok()),
    }
}
