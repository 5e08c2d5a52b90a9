//! Tests of `wasi:http`: each request is a host call of the gate, and the guest gets the response.
//! The guests are nodes, and a function of a typed component.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::Notify;
use wattle_graph::failure::{Failure, code};
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::limit::Limits;
use wattle_run::meter::plugin_use::Denial;
use wattle_run::ports::sandbox::{GuestError, NodeOutcome, Plugin};
use wattle_run::ports::{BlobStore, Caller, Net};
use wattle_run::stop_flag::StopFlag;

use crate::typed::call_through;
use crate::{guest, load, stub_ports};

/// A node plugin with the part of `wasi:http` that sends a request.
const WIT: &str = r"
    package test:http;
    world guest {
        include wattle:plugin/node-plugin@0.1.0;
        import wasi:io/poll@0.2.10;
        import wasi:http/types@0.2.10;
        import wasi:http/outgoing-handler@0.2.10;
    }
    package wasi:io@0.2.10 {
        interface poll {
            resource pollable { ready: func() -> bool; block: func(); }
        }
    }
    package wasi:http@0.2.10 {
        interface types {
            use wasi:io/poll@0.2.10.{pollable};
            record DNS-error-payload { rcode: option<string>, info-code: option<u16> }
            record TLS-alert-received-payload {
                alert-id: option<u8>,
                alert-message: option<string>,
            }
            record field-size-payload { field-name: option<string>, field-size: option<u32> }
            variant error-code {
                DNS-timeout,
                DNS-error(DNS-error-payload),
                destination-not-found,
                destination-unavailable,
                destination-IP-prohibited,
                destination-IP-unroutable,
                connection-refused,
                connection-terminated,
                connection-timeout,
                connection-read-timeout,
                connection-write-timeout,
                connection-limit-reached,
                TLS-protocol-error,
                TLS-certificate-error,
                TLS-alert-received(TLS-alert-received-payload),
                HTTP-request-denied,
                HTTP-request-length-required,
                HTTP-request-body-size(option<u64>),
                HTTP-request-method-invalid,
                HTTP-request-URI-invalid,
                HTTP-request-URI-too-long,
                HTTP-request-header-section-size(option<u32>),
                HTTP-request-header-size(option<field-size-payload>),
                HTTP-request-trailer-section-size(option<u32>),
                HTTP-request-trailer-size(field-size-payload),
                HTTP-response-incomplete,
                HTTP-response-header-section-size(option<u32>),
                HTTP-response-header-size(field-size-payload),
                HTTP-response-body-size(option<u64>),
                HTTP-response-trailer-section-size(option<u32>),
                HTTP-response-trailer-size(field-size-payload),
                HTTP-response-transfer-coding(option<string>),
                HTTP-response-content-coding(option<string>),
                HTTP-response-timeout,
                HTTP-upgrade-failed,
                HTTP-protocol-error,
                loop-detected,
                configuration-error,
                internal-error(option<string>),
            }
            variant method {
                get, head, post, put, delete, connect, options, trace, patch, other(string),
            }
            resource fields { constructor(); }
            resource request-options { constructor(); }
            resource outgoing-body;
            resource outgoing-request {
                constructor(headers: fields);
                set-method: func(method: method) -> result;
                body: func() -> result<outgoing-body>;
                set-path-with-query: func(path-with-query: option<string>) -> result;
                set-authority: func(authority: option<string>) -> result;
            }
            resource incoming-response { status: func() -> u16; }
            resource future-incoming-response {
                subscribe: func() -> pollable;
                get: func() -> option<result<result<incoming-response, error-code>>>;
            }
        }
        interface outgoing-handler {
            use types.{outgoing-request, request-options, future-incoming-response, error-code};
            handle: func(request: outgoing-request, options: option<request-options>)
                -> result<future-incoming-response, error-code>;
        }
    }";

/// Imports, and functions that use them. `$send` sends a request for `https://?/`, whose host is
/// the letter at the given address. If `$has_body` is set, the request has a body that the guest
/// never finishes. `$response` stores the response of a request at address 1152.
const IMPORTS: &str = r#"
    (import "wasi:io/poll@0.2.10" "[method]pollable.ready"
        (func $ready (param i32) (result i32)))
    (import "wasi:io/poll@0.2.10" "[method]pollable.block" (func $block (param i32)))
    (import "wasi:http/types@0.2.10" "[constructor]fields" (func $fields (result i32)))
    (import "wasi:http/types@0.2.10" "[constructor]outgoing-request"
        (func $request (param i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.set-method"
        (func $set_method (param i32 i32 i32 i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.body"
        (func $body (param i32 i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.set-path-with-query"
        (func $set_path (param i32 i32 i32 i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.set-authority"
        (func $set_authority (param i32 i32 i32 i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]incoming-response.status"
        (func $status (param i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]future-incoming-response.subscribe"
        (func $subscribe (param i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]future-incoming-response.get"
        (func $get (param i32 i32)))
    (import "wasi:http/outgoing-handler@0.2.10" "handle"
        (func $handle (param i32 i32 i32 i32)))
    (global $has_body (mut i32) (i32.const 0))
    (func $send (param $host i32) (result i32)
        (local $request i32)
        (i32.store8 (i32.const 1000) (i32.const 47))
        (local.set $request (call $request (call $fields)))
        (if (call $set_path (local.get $request) (i32.const 1) (i32.const 1000) (i32.const 1))
            (then (unreachable)))
        (if (call $set_authority (local.get $request) (i32.const 1) (local.get $host) (i32.const 1))
            (then (unreachable)))
        (if (global.get $has_body)
            (then (call $body (local.get $request) (i32.const 1100))))
        (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 1024))
        (if (i32.load8_u (i32.const 1024)) (then (unreachable)))
        (i32.load (i32.const 1032)))
    (func $response (param $future i32)
        (call $get (local.get $future) (i32.const 1152))
        (if (i32.ne (i32.load8_u (i32.const 1152)) (i32.const 1)) (then (unreachable)))
        (if (i32.load8_u (i32.const 1160)) (then (unreachable))))"#;

/// Sends a request for `https://n/` and waits for the response. The inner result is at address
/// 1168: first whether it is ok, then the handle or the error code.
const EXCHANGE: &str = "(local $future i32)
    (local.set $future (call $send (i32.const 64)))
    (call $block (call $subscribe (local.get $future)))
    (call $response (local.get $future))";

/// Replaces the node in the world of [`WIT`].
const FETCH: &str = "use wasi:http/types@0.2.10.{error-code};
        export fetch: func() -> result<u16, error-code>;";

/// The failure of a request that no rule allows.
const NO_RULE: &str = "plugin `guest` is not allowed to send `GET` to `https://n`";

/// The discriminant of the method `other`, and of the case `some` of an option.
const OTHER: u32 = 9;
const SOME: u32 = 1;

/// The discriminants of error codes.
const CONNECTION_READ_TIMEOUT: u32 = 9;
const REQUEST_DENIED: u32 = 15;
const INTERNAL_ERROR: u32 = 38;

/// A network that gives every request the same response, after it has yielded a number of times.
struct Network {
    answer: Result<HttpResponse, Failure>,
    /// Returns the number of yields for a URL; `None` if the network never responds.
    turns: fn(&str) -> Option<usize>,
    requests: Mutex<Vec<HttpRequest>>,
    arrived: Notify,
    answered: AtomicUsize,
}

impl Network {
    fn new(answer: Result<HttpResponse, Failure>, turns: fn(&str) -> Option<usize>) -> Arc<Self> {
        let (requests, arrived, answered) = Default::default();
        Arc::new(Self { answer, turns, requests, arrived, answered })
    }

    fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl Net for Network {
    async fn send(
        &self,
        _caller: &Caller,
        _grants: &Grants,
        request: &HttpRequest,
        _blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        self.requests.lock().unwrap().push(request.clone());
        self.arrived.notify_one();
        let Some(turns) = (self.turns)(&request.url) else { return std::future::pending().await };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.answer.clone()
    }
}

/// A network that denies the requests of a plugin without a rule.
struct GuardedNetwork(Arc<Network>);

#[async_trait]
impl Net for GuardedNetwork {
    async fn send(
        &self,
        caller: &Caller,
        grants: &Grants,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        if grants.http.is_empty() {
            return Err(Failure::new(code::DENIED, NO_RULE));
        }
        self.0.send(caller, grants, request, blobs).await
    }
}

fn found() -> HttpResponse {
    let (headers, url) = (vec![("x-name".to_owned(), "a".to_owned())], "https://n/".to_owned());
    HttpResponse { status: 404, headers, body: Bytes::from_static(b"nothing"), url }
}

/// Runs the node with the given body.
async fn run(
    body: &str,
    network: Arc<Network>,
    limits: Limits,
    cancel: StopFlag,
) -> Result<NodeOutcome, GuestError> {
    let plugin = load(guest::node_of(WIT, IMPORTS, body)).await.unwrap();
    let imports = &plugin.info().imports;
    assert!(imports.iter().any(|name| name == "wasi:http/outgoing-handler"), "{imports:?}");
    plugin.run_node(stub_ports::call(), stub_ports::gate_through(network, limits, cancel)).await
}

async fn run_alone(body: &str, network: Arc<Network>) -> Result<NodeOutcome, GuestError> {
    run(body, network, Limits::default(), StopFlag::default()).await
}

#[tokio::test]
async fn request_becomes_a_call_of_the_gate() {
    let network = Network::new(Ok(found()), |_| Some(0));
    let body = format!(
        "{EXCHANGE}
        (if (i32.load8_u (i32.const 1168)) (then (unreachable)))
        (if (i32.ne (call $status (i32.load (i32.const 1176))) (i32.const 404))
            (then (unreachable)))
        (i32.const 512)"
    );
    assert_eq!(run_alone(&body, network.clone()).await, Ok(NodeOutcome::default()));
    let expected = HttpRequest {
        method: "GET".to_owned(),
        url: "https://n/".to_owned(),
        headers: Vec::new(),
        body: HttpBody::Empty,
        timeout_ms: None,
        idempotency_key: None,
        delay_ms: None,
    };
    assert_eq!(network.requests(), [expected]);
}

#[tokio::test]
async fn failures_of_the_gate_become_error_codes() {
    for (word, number) in [
        (code::DENIED, REQUEST_DENIED),
        (code::TIMEOUT, CONNECTION_READ_TIMEOUT),
        (code::UNAVAILABLE, INTERNAL_ERROR),
    ] {
        let network = Network::new(Err(Failure::new(word, "why")), |_| Some(0));
        let body = format!(
            "{EXCHANGE}
            (if (i32.ne (i32.load8_u (i32.const 1168)) (i32.const 1)) (then (unreachable)))
            (if (i32.ne (i32.load8_u (i32.const 1176)) (i32.const {number})) (then (unreachable)))
            (i32.const 512)"
        );
        assert_eq!(run_alone(&body, network).await, Ok(NodeOutcome::default()), "{word}");
    }
}

/// A re-executed guest has all results at once, so it would otherwise see another order.
#[tokio::test]
async fn responses_arrive_in_the_order_of_the_requests() {
    // The first host is `n`, the second one is `m`.
    let network = Network::new(Ok(found()), |url| Some(if url.contains('n') { 50 } else { 0 }));
    let body = "(local $first i32) (local $second i32) (local $pollable i32)
        (i32.store8 (i32.const 1001) (i32.const 109))
        (local.set $first (call $send (i32.const 64)))
        (local.set $second (call $send (i32.const 1001)))
        (local.set $pollable (call $subscribe (local.get $first)))
        (call $block (call $subscribe (local.get $second)))
        (if (i32.eqz (call $ready (local.get $pollable))) (then (unreachable)))
        (call $response (local.get $first))
        (call $response (local.get $second))
        (i32.const 512)";
    assert_eq!(run_alone(body, network).await, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn request_is_performed_even_if_the_guest_does_not_wait() {
    let network = Network::new(Ok(found()), |_| Some(5));
    let body = "(drop (call $send (i32.const 64))) (i32.const 512)";
    assert_eq!(run_alone(body, network.clone()).await, Ok(NodeOutcome::default()));
    assert_eq!(network.answered.load(Ordering::Relaxed), 1);
}

/// A re-executed guest then finds the result in its journal.
#[tokio::test]
async fn request_is_performed_even_if_the_guest_traps_or_is_unwound() {
    let send = "(drop (call $send (i32.const 64)))";
    let traps = format!("{send} (unreachable)");
    let is_unwound = EXCHANGE.replace("(local.set $future", &format!("{send} (local.set $future"));
    for (body, host_calls) in [(traps, 2), (is_unwound + "(i32.const 512)", 1)] {
        let network = Network::new(Ok(found()), |_| Some(5));
        let limits = Limits { host_calls, ..Limits::default() };
        let ended = run(&body, network.clone(), limits, StopFlag::default()).await;
        let has_failed =
            matches!(ended, Err(GuestError::Trap(_) | GuestError::Unwound(Unwind::Limit(_))));
        assert!(has_failed, "{ended:?}");
        assert_eq!(network.answered.load(Ordering::Relaxed), 1, "{body}");
    }
}

/// After a guest call is dropped, none of its requests continues.
#[tokio::test]
async fn request_continues_only_while_its_guest_is_polled() {
    let network = Network::new(Ok(found()), |_| Some(1));
    let body = format!("{EXCHANGE} (i32.const 512)");
    let plugin = load(guest::node_of(WIT, IMPORTS, &body)).await.unwrap();
    let gate = stub_ports::gate_through(network.clone(), Limits::default(), StopFlag::default());
    let mut ended = plugin.run_node(stub_ports::call(), gate);
    tokio::select! {
        biased;
        ended = &mut ended => panic!("the guest ended: {ended:?}"),
        () = network.arrived.notified() => {}
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(network.answered.load(Ordering::Relaxed), 0);
    assert_eq!(ended.await, Ok(NodeOutcome::default()));
    assert_eq!(network.answered.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn request_whose_body_is_not_finished_is_not_sent() {
    let network = Network::new(Ok(found()), |_| Some(0));
    let body = "(global.set $has_body (i32.const 1))
        (drop (call $send (i32.const 64))) (i32.const 512)";
    assert_eq!(run_alone(body, network.clone()).await, Ok(NodeOutcome::default()));
    assert!(network.requests().is_empty());
}

/// The guest may write the bodies in any order, so unfinished bodies must not take the permits.
#[tokio::test]
async fn requests_with_unfinished_bodies_do_not_delay_others() {
    let (network, cancel) = (Network::new(Ok(found()), |_| None), StopFlag::default());
    let body = format!("(local $left i32) {EXCHANGE} (i32.const 512)");
    let body = body.replace(
        "(local.set $future",
        "(global.set $has_body (i32.const 1))
        (local.set $left (i32.const 8))
        (loop $more
            (drop (call $send (i32.const 64)))
            (local.set $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $more (local.get $left)))
        (global.set $has_body (i32.const 0))
        (local.set $future",
    );
    let ended = run(&body, network.clone(), Limits::default(), cancel.clone());
    let cancelled = async {
        network.arrived.notified().await;
        cancel.set();
    };
    let (ended, ()) = tokio::join!(ended, cancelled);
    assert_eq!(ended, Err(GuestError::Unwound(Unwind::Cancelled)));
    assert_eq!(network.requests().len(), 1);
}

#[tokio::test]
async fn cancel_ends_a_guest_that_waits_for_a_response() {
    let (network, cancel) = (Network::new(Ok(found()), |_| None), StopFlag::default());
    let body = format!("{EXCHANGE} (i32.const 512)");
    let ended = run(&body, network.clone(), Limits::default(), cancel.clone());
    let cancelled = async {
        network.arrived.notified().await;
        cancel.set();
    };
    let (ended, ()) = tokio::join!(ended, cancelled);
    assert_eq!(ended, Err(GuestError::Unwound(Unwind::Cancelled)));
}

#[tokio::test]
async fn request_beyond_the_limit_of_host_calls_ends_the_guest() {
    let network = Network::new(Ok(found()), |_| Some(0));
    let limits = Limits { host_calls: 0, ..Limits::default() };
    let body = format!("{EXCHANGE} (i32.const 512)");
    match run(&body, network.clone(), limits, StopFlag::default()).await {
        Err(GuestError::Unwound(Unwind::Limit(failure))) => {
            assert_eq!(failure.details.unwrap()["limit"], "host_calls");
        }
        other => panic!("{other:?}"),
    }
    assert!(network.requests().is_empty());
}

#[tokio::test]
async fn method_authority_and_path_of_a_request_have_a_limit() {
    // A path at address 65535: `/`, and 10,000 times the same letter.
    let text = "(i32.store8 (i32.const 65535) (i32.const 47))
        (memory.fill (i32.const 65536) (i32.const 97) (i32.const 10000))";
    let mut body = format!(
        "(local $request i32) {text}
        (local.set $request (call $request (call $fields)))"
    );
    for (function, case, text, most) in [
        ("$set_method", OTHER, 65_536, 64),
        ("$set_authority", SOME, 65_536, 255),
        ("$set_path", SOME, 65_535, 8 << 10),
    ] {
        for (length, is_refused) in [(most, 0), (most + 1, 1)] {
            body += &format!(
                "(if (i32.ne (i32.const {is_refused})
                    (call {function} (local.get $request) (i32.const {case}) (i32.const {text})
                        (i32.const {length})))
                    (then (unreachable)))"
            );
        }
    }
    let plugin = load(guest::node_of(WIT, IMPORTS, &(body + "(i32.const 512)"))).await.unwrap();
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    let outcome = plugin.run_node(stub_ports::call(), gate).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
}

/// When the plugin describes itself, it has no gate, so the request of its start function is
/// denied.
#[tokio::test]
async fn request_of_a_start_function_can_end_the_guest() {
    let imports = format!(r#"{IMPORTS} (func (export "_initialize") {EXCHANGE})"#);
    let plugin = load(guest::node_of(WIT, &imports, "(i32.const 512)")).await.unwrap();
    let limits = Limits { host_calls: 0, ..Limits::default() };
    let network = Network::new(Ok(found()), |_| Some(0));
    let gate = stub_ports::gate_through(network.clone(), limits, StopFlag::default());
    match plugin.run_node(stub_ports::call(), gate).await {
        Err(GuestError::Unwound(Unwind::Limit(failure))) => {
            assert_eq!(failure.details.unwrap()["limit"], "host_calls");
        }
        other => panic!("{other:?}"),
    }
    assert!(network.requests().is_empty());
}

/// Returns a typed component. Its function `fetch` sends a request for `https://n/`, and returns
/// the status of the response or the error code. The result of [`EXCHANGE`] has the same layout,
/// with the handle of the response in place of the status.
fn fetching() -> Bytes {
    let wit = WIT
        .replace("world guest", "world tools")
        .replace("include wattle:plugin/node-plugin@0.1.0;", FETCH);
    let function = format!(
        r#"(data (i32.const 64) "n")
        (func (export "fetch") (result i32) {EXCHANGE}
            (if (i32.eqz (i32.load8_u (i32.const 1168)))
                (then (i32.store16 (i32.const 1176)
                    (call $status (i32.load (i32.const 1176))))))
            (i32.const 1168))"#
    );
    guest::typed_with_imports(&wit, IMPORTS, &function)
}

/// Calls the function of [`fetching`] with the given rules. Returns its output and the denied host
/// calls.
async fn fetch(
    plugin: &dyn Plugin,
    network: Arc<Network>,
    http: Vec<HttpRule>,
) -> (ToolOutput, Vec<Denial>) {
    let (model, net) = (stub_ports::stub_model(), Arc::new(GuardedNetwork(network)));
    let grants = Grants { http, ..Grants::default() };
    let app = stub_ports::app(grants.clone());
    let gate = stub_ports::gate_of(model, net, app, StopFlag::default());
    let output = call_through(gate.clone(), plugin, "fetch", json!({}), grants).await;
    (output.unwrap(), gate.plugin_use().denials())
}

/// The error code of a denied request has no message. The message is in the list of denied host
/// calls.
#[tokio::test]
async fn function_of_a_typed_component_sends_requests_with_the_grants_of_its_plugin() {
    let plugin = load(fetching()).await.unwrap();
    let network = Network::new(Ok(found()), |_| Some(0));
    let rule = HttpRule {
        host: "n".to_owned(),
        scheme: "https".to_owned(),
        port: None,
        methods: vec!["GET".to_owned()],
        secrets: Default::default(),
        private: false,
    };
    let (output, denials) = fetch(plugin.as_ref(), network.clone(), vec![rule]).await;
    assert_eq!((output.structured, output.is_error), (Some(json!(404)), false));
    assert_eq!((network.requests().len(), denials), (1, Vec::new()));

    let (output, denials) = fetch(plugin.as_ref(), network.clone(), Vec::new()).await;
    let denied = Some(json!("HTTP-request-denied"));
    assert_eq!((output.structured, output.is_error), (denied, true));
    let expected = Denial {
        at_ms: stub_ports::NOW_MS,
        function: "http.send",
        message: NO_RULE.to_owned(),
        tenant: None,
        run: None,
    };
    assert_eq!(denials, [expected]);
    assert_eq!(network.requests().len(), 1, "the request does not reach the network");
}
