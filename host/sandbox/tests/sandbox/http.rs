//! Tests of `wasi:http`: a component that imports it loads, and its requests are denied.

use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::NodeOutcome;
use wattle_run::stop_flag::StopFlag;

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
        interface poll { resource pollable { block: func(); } }
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
            resource outgoing-request {
                constructor(headers: fields);
                set-method: func(method: method) -> result;
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

const IMPORTS: &str = r#"
    (import "wasi:io/poll@0.2.10" "[method]pollable.block" (func $block (param i32)))
    (import "wasi:http/types@0.2.10" "[constructor]fields" (func $fields (result i32)))
    (import "wasi:http/types@0.2.10" "[constructor]outgoing-request"
        (func $request (param i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.set-method"
        (func $set_method (param i32 i32 i32 i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.set-path-with-query"
        (func $set_path (param i32 i32 i32 i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]outgoing-request.set-authority"
        (func $set_authority (param i32 i32 i32 i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]future-incoming-response.subscribe"
        (func $subscribe (param i32) (result i32)))
    (import "wasi:http/types@0.2.10" "[method]future-incoming-response.get"
        (func $get (param i32 i32)))
    (import "wasi:http/outgoing-handler@0.2.10" "handle"
        (func $handle (param i32 i32 i32 i32)))"#;

/// The number of `other` among the methods, and that of `some` among the cases of an option.
const OTHER: u32 = 9;
const SOME: u32 = 1;

/// The number of `HTTP-request-denied` among the error codes.
const DENIED: u32 = 15;

#[tokio::test]
async fn request_of_wasi_http_is_denied() {
    // A request for `https://n/`. Its response is at 1152: some, ok, error, code.
    let body = format!(
        "(local $request i32) (local $response i32)
        (i32.store8 (i32.const 1000) (i32.const 47))
        (local.set $request (call $request (call $fields)))
        (if (call $set_path (local.get $request) (i32.const 1) (i32.const 1000) (i32.const 1))
            (then (unreachable)))
        (if (call $set_authority (local.get $request) (i32.const 1) (i32.const 64) (i32.const 1))
            (then (unreachable)))
        (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 1024))
        (if (i32.load8_u (i32.const 1024)) (then (unreachable)))
        (local.set $response (i32.load (i32.const 1032)))
        (call $block (call $subscribe (local.get $response)))
        (call $get (local.get $response) (i32.const 1152))
        (if (i32.ne (i32.load8_u (i32.const 1152)) (i32.const 1)) (then (unreachable)))
        (if (i32.load8_u (i32.const 1160)) (then (unreachable)))
        (if (i32.ne (i32.load8_u (i32.const 1168)) (i32.const 1)) (then (unreachable)))
        (if (i32.ne (i32.load8_u (i32.const 1176)) (i32.const {DENIED})) (then (unreachable)))
        (i32.const 512)"
    );
    let plugin = load(guest::node_of(WIT, IMPORTS, &body)).await.unwrap();
    let imports = &plugin.info().imports;
    assert!(imports.iter().any(|name| name == "wasi:http/outgoing-handler"), "{imports:?}");
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    let outcome = plugin.run_node(stub_ports::call(), gate).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
}

#[tokio::test]
async fn texts_of_a_request_have_a_limit() {
    // A path at 65535: `/`, and a letter again and again.
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
