//! Tests that a guest call leaves nothing behind for the calls after it, however it ends, and
//! whichever component has its memory next.
//!
//! The engine for the synchronous ABI has a place for one guest, so each call gets the memory of
//! the previous call. The engine for the asynchronous ABI has more places: calls that run at the
//! same time take all of them.

mod rememberer;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::join_all;
use serde_json::{Value, json};
use wattle_graph::id::AppName;
use wattle_graph::tool::ToolOutput;
use wattle_run::app::App;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, NodeCall, NodeOutcome, Plugin};
use wattle_run::stop_flag::StopFlag;
use wattle_sandbox::{SandboxConfig, WasmSandbox};

use crate::node::SEND;
use crate::silent_net::Silence;
use crate::{guest, load_into, stub_ports, typed};
use rememberer::{Abi, DENSE, DENSE_NODE, SPARSE, Then};

/// Pages of the memory of a guest: 4 MiB, twice the memory that a freed slot keeps for its next
/// guest.
const PAGES: u32 = 64;

/// Pages of each memory of a guest with the asynchronous ABI. The slots of that ABI keep no memory.
const ASYNC_PAGES: u32 = 16;

/// Guests with the asynchronous ABI that fit into the smallest sandbox.
const ASYNC_GUESTS: usize = 16;

/// Number of polls of a guest before it is dropped. The guest computes for about a millisecond in
/// each poll, and has left its marks after a few polls.
const TURNS: usize = 20;

/// Returns a sandbox with a place for one guest.
fn sandbox() -> Arc<WasmSandbox> {
    let config = SandboxConfig {
        max_instances: 1,
        guests_memory_bytes: 1 << 30,
        ..SandboxConfig::default()
    };
    WasmSandbox::new(&config).unwrap()
}

/// Returns limits that let each of `memories` memories grow to `pages` pages, but not further.
fn limits(memories: u32, pages: u32) -> Limits {
    Limits { memory_bytes: u64::from(memories * pages) << 16, ..Limits::default() }
}

/// Returns limits with little CPU time, for guests that loop without end.
fn brief(limits: Limits) -> Limits {
    Limits { cpu_ms: 50, ..limits }
}

/// Returns the trap or the limit that ended a guest.
fn end<T: std::fmt::Debug>(ended: Result<T, GuestError>) -> Value {
    match ended {
        Err(GuestError::Trap(failure)) => failure.details.unwrap()["trap"].clone(),
        Err(GuestError::Limit(failure)) => failure.details.unwrap()["limit"].clone(),
        other => panic!("neither a trap nor a limit ended the guest: {other:?}"),
    }
}

fn gate(limits: Limits) -> Arc<Gate> {
    stub_ports::gate(limits, StopFlag::default())
}

async fn run_node(
    node: &Arc<dyn Plugin>,
    then: Then,
    gate: Arc<Gate>,
) -> Result<NodeOutcome, GuestError> {
    let call = NodeCall { attempt: then as u32, ..stub_ports::call() };
    node.run_node(call, gate).await
}

/// Ends calls of nodes with the given imports in every possible way. After each end, checks that
/// calls of the same node and of another node find no marks.
async fn nodes_leave_nothing_behind(imports: &str) {
    let sandbox = sandbox();
    let load =
        async |memory| load_into(&sandbox, rememberer::node(imports, memory, PAGES)).await.unwrap();
    let (node, other) = (load(&SPARSE).await, load(&DENSE_NODE).await);
    let limits = limits(1, PAGES);
    let finds_nothing_after = async |end: &str| {
        for node in [&node, &other, &node] {
            let outcome = run_node(node, Then::Return, gate(limits.clone())).await;
            assert_eq!(outcome, Ok(NodeOutcome::default()), "{end}");
        }
    };
    finds_nothing_after("no call").await;
    for node in [&node, &other] {
        let ended = run_node(node, Then::Trap, gate(limits.clone())).await;
        assert_eq!(end(ended), "division-by-zero");
        finds_nothing_after("a trap").await;
        let ended = run_node(node, Then::Spin, gate(brief(limits.clone()))).await;
        assert_eq!(end(ended), "cpu");
        finds_nothing_after("the limit of CPU time").await;
        let ended = run_node(node, Then::Grow, gate(limits.clone())).await;
        assert_eq!(end(ended), "memory");
        finds_nothing_after("the limit of memory").await;
        let cancel = StopFlag::default();
        cancel.set();
        let ended = run_node(node, Then::Wait, stub_ports::gate(limits.clone(), cancel)).await;
        assert_eq!(ended, Err(GuestError::Unwound(Unwind::Cancelled)));
        finds_nothing_after("a cancel").await;
        let net = Arc::new(Silence::default());
        let gate = stub_ports::gate_through(net.clone(), limits.clone(), StopFlag::default());
        tokio::select! {
            ended = run_node(node, Then::Wait, gate) => panic!("the guest ended: {ended:?}"),
            () = net.arrived.notified() => {}
        }
        finds_nothing_after("a drop while it waits").await;
    }
}

#[tokio::test]
async fn node_leaves_no_marks_for_the_next_guest() {
    nodes_leave_nothing_behind(SEND).await;
}

#[tokio::test]
async fn node_with_the_asynchronous_abi_leaves_no_marks_for_the_next_guest() {
    nodes_leave_nothing_behind(&format!("{} {SEND}", guest::TASK_CANCEL)).await;
}

/// Calls a typed component.
async fn call(
    plugin: &Arc<dyn Plugin>,
    then: Then,
    limits: Limits,
) -> Result<ToolOutput, GuestError> {
    typed::call(plugin.as_ref(), "run", json!({ "ending": then as u32 }), limits).await
}

#[tokio::test]
async fn typed_function_leaves_no_marks_for_the_next_guest() {
    let (abi, sandbox) = (Abi::Synchronous, sandbox());
    let load =
        async |memory| load_into(&sandbox, rememberer::typed(abi, memory, PAGES)).await.unwrap();
    let (plugin, other) = (load(&SPARSE).await, load(&DENSE).await);
    let limits = limits(abi.memories(), PAGES);
    let finds_nothing_after = async |end: &str| {
        for plugin in [&plugin, &other, &plugin] {
            let output = call(plugin, Then::Return, limits.clone()).await;
            assert_eq!(output, Ok(ToolOutput::default()), "{end}");
        }
    };
    finds_nothing_after("no call").await;
    for plugin in [&plugin, &other] {
        assert_eq!(end(call(plugin, Then::Trap, limits.clone()).await), "division-by-zero");
        finds_nothing_after("a trap").await;
        assert_eq!(end(call(plugin, Then::Spin, brief(limits.clone())).await), "cpu");
        finds_nothing_after("the limit of CPU time").await;
        assert_eq!(end(call(plugin, Then::Grow, limits.clone()).await), "memory");
        finds_nothing_after("the limit of memory").await;
        let mut spinning = Box::pin(call(plugin, Then::Spin, limits.clone()));
        for _ in 0..TURNS {
            assert!(futures::poll!(spinning.as_mut()).is_pending());
        }
        drop(spinning);
        finds_nothing_after("a drop while it runs").await;
    }
}

/// Makes as many concurrent calls of an asynchronous function as there are places: each call yields
/// while the others begin. Each call is of another app, since one app gets only a part of the
/// places.
async fn fill(plugin: &Arc<dyn Plugin>, limits: &Limits, end: &str) {
    let grants = || Grants { limits: limits.clone(), ..Grants::default() };
    let calls = (0..ASYNC_GUESTS).map(|number| {
        let name = AppName::new(format!("app{number}")).unwrap();
        let app = App { name, ..stub_ports::app(grants()) };
        let gate = stub_ports::gate_to(stub_ports::stub_model(), app, StopFlag::default());
        let arguments = json!({ "ending": Then::Wait as u32 });
        typed::call_through(gate, plugin.as_ref(), "run", arguments, Grants::default())
    });
    for output in join_all(calls).await {
        assert_eq!(output, Ok(ToolOutput::default()), "{end}");
    }
}

#[tokio::test]
async fn asynchronous_function_leaves_no_marks_for_the_next_guest() {
    let (abi, sandbox) = (Abi::Asynchronous, sandbox());
    let load = async |memory| {
        load_into(&sandbox, rememberer::typed(abi, memory, ASYNC_PAGES)).await.unwrap()
    };
    let (plugin, other) = (load(&SPARSE).await, load(&DENSE).await);
    let limits = limits(abi.memories(), ASYNC_PAGES);
    let finds_nothing_after = async |end: &str| {
        for plugin in [&plugin, &other, &plugin] {
            fill(plugin, &limits, end).await;
        }
    };
    finds_nothing_after("no call").await;
    assert_eq!(end(call(&plugin, Then::Trap, limits.clone()).await), "division-by-zero");
    assert_eq!(end(call(&plugin, Then::Spin, brief(limits.clone())).await), "cpu");
    assert_eq!(end(call(&plugin, Then::Grow, limits.clone()).await), "memory");
    finds_nothing_after("a trap, and the limits of CPU time and memory").await;
    let waiting = (0..ASYNC_GUESTS).map(|_| call(&plugin, Then::Wait, limits.clone()));
    assert_eq!(join_all(waiting).now_or_never(), None);
    finds_nothing_after("a drop while it waits").await;
}
