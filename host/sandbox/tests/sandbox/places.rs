//! Tests of the places for guests, of which each app has a share. The engine has eight places, of
//! which the guests of one app hold four at most. The tests of the asynchronous ABI are in
//! `asynchronous.rs`.

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};
use wattle_graph::id::AppName;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, Plugin};
use wattle_run::stop_flag::StopFlag;

use crate::node::{CALL_SEND, NOTHING, SEND};
use crate::silent_net::Silence;
use crate::{app, guest, load_into, sandbox, stub_ports};

/// Number of calls that would hold all places.
const PLACES: usize = 8;

async fn reduce(plugin: &Arc<dyn Plugin>, app: &AppName) -> Result<Value, GuestError> {
    let grants = Grants { limits: endless(), ..Grants::default() };
    plugin.reduce(app, "r", None, vec![], &grants).await
}

/// Returns limits with more CPU time than a guest uses before it is dropped.
fn endless() -> Limits {
    Limits { cpu_ms: 60_000, ..Limits::default() }
}

#[tokio::test]
async fn guests_of_one_app_wait_for_places_and_leave_places_to_another_app() {
    let (sandbox, app, other) = (sandbox(), app(), AppName::new("other").unwrap());
    let spins = guest::reducer("(loop (br 0)) (unreachable)");
    let spins = load_into(&sandbox, spins).await.unwrap();
    let returns = load_into(&sandbox, guest::reducer("(i32.const 320)")).await.unwrap();
    let mut begun: Vec<_> = (0..PLACES).map(|_| Box::pin(reduce(&spins, &app))).collect();
    for call in &mut begun {
        assert_eq!(call.as_mut().now_or_never(), None, "the guest spins or waits for a place");
    }
    assert_eq!(reduce(&returns, &other).await, Ok(json!(1)));
    let mut waits = Box::pin(reduce(&returns, &app));
    assert_eq!(waits.as_mut().now_or_never(), None, "the guest waits for a place");
    drop(begun);
    assert_eq!(waits.await, Ok(json!(1)));
}

#[tokio::test]
async fn waiting_web_handlers_leave_places_to_the_runs_of_their_app() {
    let (sandbox, silence) = (sandbox(), Arc::new(Silence::default()));
    let asks = guest::node(SEND, &format!("{CALL_SEND} {NOTHING}"));
    let asks = load_into(&sandbox, asks).await.unwrap();
    let returns = load_into(&sandbox, guest::reducer("(i32.const 320)")).await.unwrap();
    let handle = || {
        let net = Arc::clone(&silence);
        let gate = stub_ports::gate_through(net, Limits::default(), StopFlag::default());
        asks.run_node(stub_ports::call(), gate)
    };
    let mut begun: Vec<_> = (0..PLACES).map(|_| handle()).collect();
    for call in &mut begun {
        assert_eq!(call.now_or_never(), None, "the guest waits for a response or for a place");
    }
    assert_eq!(reduce(&returns, &app()).await, Ok(json!(1)));
    // A handler that waits longer than the limit for clients is refused.
    tokio::time::pause();
    match handle().await {
        Err(GuestError::Host(failure)) => {
            assert!(failure.retryable && failure.code == "unavailable", "{failure}");
            assert_eq!(failure.details.unwrap(), json!({ "limit": "guests", "allowed": PLACES }));
        }
        other => panic!("there is a place: {other:?}"),
    }
}
