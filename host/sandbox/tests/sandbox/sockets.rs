//! Tests of `wasi:sockets`: guests have no sockets, and the error code says so.

use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::NodeOutcome;
use wattle_run::stop_flag::StopFlag;

use crate::{guest, load, load_error, stub_ports};

/// A node plugin with the part of `wasi:sockets` that creates sockets and looks up names.
const WIT: &str = r"
    package test:sockets;
    world guest {
        include wattle:plugin/node-plugin@0.1.0;
        import wasi:sockets/instance-network@0.2.0;
        import wasi:sockets/ip-name-lookup@0.2.0;
        import wasi:sockets/tcp-create-socket@0.2.0;
        import wasi:sockets/udp-create-socket@0.2.0;
    }
    package wasi:sockets@0.2.0 {
        interface network {
            resource network;
            enum error-code {
                unknown,
                access-denied,
                not-supported,
                invalid-argument,
                out-of-memory,
                timeout,
                concurrency-conflict,
                not-in-progress,
                would-block,
                invalid-state,
                new-socket-limit,
                address-not-bindable,
                address-in-use,
                remote-unreachable,
                connection-refused,
                connection-reset,
                connection-aborted,
                datagram-too-large,
                name-unresolvable,
                temporary-resolver-failure,
                permanent-resolver-failure,
            }
            enum ip-address-family { ipv4, ipv6 }
        }
        interface instance-network {
            use network.{network};
            instance-network: func() -> network;
        }
        interface ip-name-lookup {
            use network.{network, error-code};
            resource resolve-address-stream;
            resolve-addresses: func(network: borrow<network>, name: string)
                -> result<resolve-address-stream, error-code>;
        }
        interface tcp { resource tcp-socket; }
        interface tcp-create-socket {
            use network.{error-code, ip-address-family};
            use tcp.{tcp-socket};
            create-tcp-socket: func(address-family: ip-address-family)
                -> result<tcp-socket, error-code>;
        }
        interface udp { resource udp-socket; }
        interface udp-create-socket {
            use network.{error-code, ip-address-family};
            use udp.{udp-socket};
            create-udp-socket: func(address-family: ip-address-family)
                -> result<udp-socket, error-code>;
        }
    }";

/// Imports, and a function that tries all of them. It traps unless each result is the error
/// `access-denied`, whose number is 1. The results are at address 1024.
const IMPORTS: &str = r#"
    (import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))
    (import "wasi:sockets/ip-name-lookup@0.2.0" "resolve-addresses"
        (func $look_up (param i32 i32 i32 i32)))
    (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket"
        (func $create_tcp (param i32 i32)))
    (import "wasi:sockets/udp-create-socket@0.2.0" "create-udp-socket"
        (func $create_udp (param i32 i32)))
    (func $check_denied
        (if (i32.ne (i32.load8_u (i32.const 1024)) (i32.const 1)) (then (unreachable)))
        (if (i32.ne (i32.load8_u (i32.const 1028)) (i32.const 1)) (then (unreachable)))
        (i64.store (i32.const 1024) (i64.const 0)))
    (func $try_all
        (call $create_tcp (i32.const 0) (i32.const 1024))
        (call $check_denied)
        (call $create_udp (i32.const 1) (i32.const 1024))
        (call $check_denied)
        (call $look_up (call $network) (i32.const 64) (i32.const 1) (i32.const 1024))
        (call $check_denied))"#;

#[tokio::test]
async fn sockets_and_lookups_of_names_are_denied() {
    let body = "(call $try_all) (call $try_all) (i32.const 512)";
    let plugin = load(guest::node_of(WIT, IMPORTS, body)).await.unwrap();
    let gate = stub_ports::gate(Limits::default(), StopFlag::default());
    let outcome = plugin.run_node(stub_ports::call(), gate).await;
    assert_eq!(outcome, Ok(NodeOutcome::default()));
}

/// A plugin that describes itself has no log, so the warning is part of its failure.
#[tokio::test]
async fn load_error_of_a_plugin_that_tries_sockets_says_that_it_has_none() {
    let imports =
        format!(r#"{IMPORTS} (func (export "_initialize") (call $try_all) (unreachable))"#);
    let error = load_error(guest::node_of(WIT, &imports, "(i32.const 512)")).await;
    assert_eq!(error.code, "describe");
    assert!(error.message.contains("has no sockets"), "{error}");
}
