//! Tests of the memory that guests hold together.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{join, join3};
use serde_json::{Value, json};
use wattle_graph::id::AppName;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, NodeOutcome, Plugin};
use wattle_run::stop_flag::StopFlag;
use wattle_sandbox::{SandboxConfig, WasmSandbox};

use crate::typed::call;
use crate::{app, guest, load_into, stub_ports};

/// Memory of all guests, in bytes. If no other app has guests, an app can hold 28 MiB, and 4 MiB
/// more in small guests.
const GUESTS_MEMORY_BYTES: u64 = 64 << 20;

/// Number of pages in 15 MiB. The memory of one app suffices for one guest of this size.
const LARGE_PAGES: u32 = 15 << 4;

/// Initial pages of two guests. They leave one of the 448 pages that an app can hold, which is less
/// than a further guest needs to start.
const ALMOST_ALL_PAGES: [u32; 2] = [300, 147];

/// Returns a reducer that has `pages` pages initially and loops until it exceeds its CPU time.
fn keeps(pages: u32) -> Bytes {
    guest::reducer_with(pages, "(loop (br 0)) (unreachable)")
}

/// Returns a reducer that grows by `pages` pages and returns. The reducer traps if it cannot grow.
fn takes(pages: u32) -> Bytes {
    let grown = format!("(i32.ne (memory.grow (i32.const {pages})) (i32.const -1))");
    guest::reducer(&format!("{grown} (i32.eqz) (if (then (unreachable))) (i32.const 320)"))
}

fn sandbox() -> Arc<WasmSandbox> {
    let config = SandboxConfig {
        max_instances: 8,
        guests_memory_bytes: GUESTS_MEMORY_BYTES,
        ..SandboxConfig::default()
    };
    WasmSandbox::new(&config).unwrap()
}

async fn load(sandbox: &WasmSandbox, bytes: Bytes) -> Arc<dyn Plugin> {
    load_into(sandbox, bytes).await.unwrap()
}

async fn reduce(plugin: &Arc<dyn Plugin>, app: &AppName) -> Result<Value, GuestError> {
    let limits = Limits { cpu_ms: 50, memory_bytes: 1 << 30, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    plugin.reduce(app, "r", None, vec![], &grants).await
}

fn limit_of(ended: Result<Value, GuestError>) -> (&'static str, Value) {
    match ended {
        Err(GuestError::Limit(failure)) => ("limit", failure.details.unwrap()["limit"].clone()),
        Err(GuestError::Host(failure)) => {
            assert!(failure.retryable && failure.code == "unavailable", "{failure}");
            ("host", failure.details.unwrap()["limit"].clone())
        }
        other => panic!("no limit ended the guest: {other:?}"),
    }
}

#[tokio::test]
async fn guests_of_an_app_share_memory_and_return_it() {
    let (sandbox, app) = (sandbox(), app());
    let keeps = load(&sandbox, keeps(LARGE_PAGES)).await;
    let takes = load(&sandbox, takes(LARGE_PAGES)).await;
    let (kept, taken) = join(reduce(&keeps, &app), reduce(&takes, &app)).await;
    assert_eq!(limit_of(kept), ("limit", json!("cpu")));
    assert_eq!(limit_of(taken), ("host", json!("guests_memory")));
    assert_eq!(reduce(&takes, &app).await, Ok(json!(1)));
}

#[tokio::test]
async fn guest_of_another_app_gets_memory() {
    let (sandbox, app, other) = (sandbox(), app(), AppName::new("other").unwrap());
    let keeps = load(&sandbox, keeps(LARGE_PAGES)).await;
    let takes = load(&sandbox, takes(LARGE_PAGES)).await;
    let (kept, taken) = join(reduce(&keeps, &app), reduce(&takes, &other)).await;
    assert_eq!(limit_of(kept), ("limit", json!("cpu")));
    assert_eq!(taken, Ok(json!(1)));
}

#[tokio::test]
async fn dropped_call_returns_its_memory() {
    let (sandbox, app) = (sandbox(), app());
    let keeps = load(&sandbox, keeps(LARGE_PAGES)).await;
    let takes = load(&sandbox, takes(LARGE_PAGES)).await;
    tokio::select! {
        biased;
        ended = reduce(&keeps, &app) => panic!("the guest ended: {ended:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(reduce(&takes, &app).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_guest_that_needs_more_than_one_guest_can_have_exceeds_a_limit() {
    let body = "(loop
        (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (unreachable)";
    let grows = load(&sandbox(), guest::reducer(body)).await;
    let ended = reduce(&grows, &app()).await;
    let Err(GuestError::Limit(failure)) = ended else { panic!("no limit: {ended:?}") };
    assert!(failure.message.contains("`limits.guests_memory`"), "{failure}");
    let details = failure.details.unwrap();
    assert_eq!(details["limit"], "memory");
    assert!(details["allowed"].as_u64().unwrap() < GUESTS_MEMORY_BYTES / 2);
}

#[tokio::test]
async fn long_texts_for_a_guest_count_as_memory_of_guests() {
    let (sandbox, app) = (sandbox(), app());
    let plugin = load(&sandbox, guest::reducer("(i32.const 320)")).await;
    let reduce = async |bytes: usize| {
        let limits = Limits { memory_bytes: 1 << 30, ..Limits::default() };
        let grants = Grants { limits, ..Grants::default() };
        plugin.reduce(&app, "r", None, vec![json!("x".repeat(bytes))], &grants).await
    };
    assert_eq!(reduce(10 << 20).await, Ok(json!(1)));
    // The text fits into the memory, but not together with its copy in the guest.
    assert_eq!(limit_of(reduce(15 << 20).await), ("host", json!("guests_memory")));
    let ended = reduce(29 << 20).await;
    let Err(GuestError::Limit(failure)) = &ended else { panic!("no limit: {ended:?}") };
    assert!(failure.message.starts_with("the input of reducer `r`"), "{failure}");
    assert_eq!(limit_of(ended), ("limit", json!("memory")));
    assert_eq!(reduce(10 << 20).await, Ok(json!(1)));
}

#[tokio::test]
async fn guest_waits_until_another_guest_returns_memory() {
    let (sandbox, app) = (sandbox(), app());
    let [first, second] = ALMOST_ALL_PAGES.map(keeps);
    let (first, second) = (load(&sandbox, first).await, load(&sandbox, second).await);
    let node = load(&sandbox, guest::node("", "(i32.const 512)")).await;
    let order = Mutex::new(Vec::new());
    let keep = async |plugin: &Arc<dyn Plugin>| {
        assert_eq!(limit_of(reduce(plugin, &app).await), ("limit", json!("cpu")));
        order.lock().unwrap().push("reducer");
    };
    let wait = async {
        let gate = stub_ports::gate(Limits::default(), StopFlag::default());
        let ended = node.run_node(stub_ports::call(), gate).await;
        order.lock().unwrap().push("node");
        ended
    };
    let ((), (), ended) = join3(keep(&first), keep(&second), wait).await;
    assert_eq!(ended, Ok(NodeOutcome::default()));
    assert_eq!(order.into_inner().unwrap()[0], "reducer");
}

#[tokio::test]
async fn guest_with_little_memory_can_grow_when_other_guests_hold_the_usual_share() {
    let (sandbox, app) = (sandbox(), app());
    let [first, second] = ALMOST_ALL_PAGES.map(keeps);
    let (first, second) = (load(&sandbox, first).await, load(&sandbox, second).await);
    let (little, much) = (load(&sandbox, takes(16)).await, load(&sandbox, takes(80)).await);
    let holds = join(reduce(&first, &app), reduce(&second, &app));
    let takes = join(reduce(&little, &app), reduce(&much, &app));
    let (_, (little, much)) = join(holds, takes).await;
    assert_eq!(little, Ok(json!(1)));
    assert_eq!(limit_of(much), ("host", json!("guests_memory")));
}

/// Number of records whose values take somewhat more than half of the memory that the guests of an
/// app can hold. The arguments have few JSON values, so that their conversion waits for no turn of
/// long work.
const HALF_ITEMS: usize = 900;

/// Returns arguments for [`typed`]: a list of `items` records, with all fields absent.
fn records(items: usize) -> Value {
    json!({ "items": vec![json!({}); items] })
}

/// Returns a typed component with two functions that take a list of records: `spin` loops until it
/// exceeds its CPU time, and `count` returns the length of the list. A record takes 17 KiB in the
/// host, because each of its 100 fields has a long name.
fn typed() -> Bytes {
    let fields: Vec<String> =
        (0..100).map(|number| format!("{}{number}: option<bool>", "f".repeat(118))).collect();
    let wit = format!(
        "package a:b;
        world tools {{
            record item {{ {} }}
            export spin: func(items: list<item>);
            export count: func(items: list<item>) -> u32;
        }}",
        fields.join(", ")
    );
    let functions = r#"
        (func (export "spin") (param i32 i32) (loop (br 0)))
        (func (export "count") (param i32 i32) (result i32) (local.get 1))"#;
    guest::typed(&wit, functions)
}

async fn call_tool(
    plugin: &Arc<dyn Plugin>,
    tool: &str,
    arguments: Value,
) -> Result<Value, GuestError> {
    let limits = Limits { cpu_ms: 50, ..Limits::default() };
    let output = call(plugin.as_ref(), tool, arguments, limits).await?;
    Ok(output.structured.unwrap_or_default())
}

#[tokio::test]
async fn arguments_of_typed_components_count_as_memory_of_guests() {
    let plugin = load(&sandbox(), typed()).await;
    let half = || records(HALF_ITEMS);
    let held = call_tool(&plugin, "spin", half());
    let (held, taken) = join(held, call_tool(&plugin, "count", half())).await;
    assert_eq!(limit_of(held), ("limit", json!("cpu")));
    assert_eq!(limit_of(taken), ("host", json!("guests_memory")));
    assert_eq!(call_tool(&plugin, "count", half()).await, Ok(json!(HALF_ITEMS)));
    match call_tool(&plugin, "count", records(2 * HALF_ITEMS)).await {
        Err(GuestError::Failure(failure)) => {
            let details = failure.details.unwrap();
            assert_eq!(details["limit"], "values_bytes");
            assert!(details["allowed"].as_u64().unwrap() < GUESTS_MEMORY_BYTES / 2);
        }
        other => panic!("no limit ended the call: {other:?}"),
    }
}

#[tokio::test]
async fn typed_call_waits_for_memory_before_it_converts_its_arguments() {
    let (sandbox, app) = (sandbox(), app());
    let [first, second] = ALMOST_ALL_PAGES.map(keeps);
    let (first, second) = (load(&sandbox, first).await, load(&sandbox, second).await);
    let plugin = load(&sandbox, typed()).await;
    let (mut first, mut second) = (Box::pin(reduce(&first, &app)), Box::pin(reduce(&second, &app)));
    assert_eq!(first.as_mut().now_or_never(), None);
    assert_eq!(second.as_mut().now_or_never(), None);
    let mut wrong = Box::pin(call_tool(&plugin, "count", json!({ "items": 1 })));
    assert_eq!(wrong.as_mut().now_or_never(), None, "the call waits for memory");
    drop((first, second));
    assert!(matches!(wrong.await, Err(GuestError::Failure(_))));
}
