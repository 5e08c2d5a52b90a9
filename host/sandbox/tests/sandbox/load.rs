//! Tests of loading. A file that is not a plugin is rejected with the problem and the fix.

use serde_json::json;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, NodeOutcome};
use wattle_run::stop_flag::StopFlag;

use crate::{guest, load, load_error, stub_ports};

/// An address of a result that is never read.
const OK: &str = "(i32.const 320)";

#[tokio::test]
async fn files_without_a_wasm_header_are_not_wasm() {
    for bytes in [&b""[..], b"\0asm", b"\x7fELF\x02\x01\x01", b"(module)", b"\x1f\x8b\x08\xff"] {
        let error = load_error(bytes).await;
        assert_eq!(error.code, "not-wasm", "{error}");
        assert!(!error.hint.is_empty());
    }
}

#[tokio::test]
async fn error_of_a_module_without_component_type_names_the_sdk() {
    let error = load_error(guest::component("(module)")).await;
    assert_eq!(error.code, "core-module");
    assert!(error.hint.contains("export!"), "{error}");
}

/// Two functions of `wasm32-wasip1`, which wasi-libc imports.
const WASIP1: &str = r#"
    (import "wasi_snapshot_preview1" "fd_write"
        (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))"#;

#[tokio::test]
async fn module_for_wasip1_runs_with_an_adapter() {
    // Writes the byte at address 64 to stdout. No file has the descriptor 3, so `fd_close` returns
    // `badf`.
    let body = "
        (i32.store (i32.const 1024) (i32.const 64)) (i32.store (i32.const 1028) (i32.const 1))
        (if (call $fd_write (i32.const 1) (i32.const 1024) (i32.const 1) (i32.const 1032))
            (then (unreachable)))
        (if (i32.ne (i32.load (i32.const 1032)) (i32.const 1)) (then (unreachable)))
        (if (i32.ne (call $fd_close (i32.const 3)) (i32.const 8)) (then (unreachable)))";
    let run = async |end: &str| {
        let plugin = load(guest::node(WASIP1, &format!("{body} {end}"))).await.unwrap();
        let imports = &plugin.info().imports;
        assert!(imports.iter().any(|name| name == "wasi:cli/stdout"), "{imports:?}");
        let gate = stub_ports::gate(Limits::default(), StopFlag::default());
        plugin.run_node(stub_ports::call(), gate).await
    };
    assert_eq!(run("(i32.const 512)").await, Ok(NodeOutcome::default()));
    match run("(unreachable)").await {
        Err(GuestError::Trap(failure)) => {
            assert_eq!(failure.details.unwrap()["output"], json!({ "stdout": "n" }));
        }
        other => panic!("no trap: {other:?}"),
    }
}

#[tokio::test]
async fn module_for_an_older_wasi_names_the_target_to_build_for() {
    let imports = r#"(import "wasi_unstable" "fd_close" (func (param i32) (result i32)))"#;
    let error = load_error(guest::node(imports, OK)).await;
    assert_eq!(error.code, "core-module");
    assert!(error.message.contains("wasi_unstable"), "{error}");
    assert!(error.hint.contains("`wasm32-wasip1`"), "{error}");
}

#[tokio::test]
async fn component_without_exports_is_not_a_plugin() {
    let error = load_error(guest::component("(component)")).await;
    assert_eq!(error.code, "missing-export");
    assert!(error.message.contains("exports nothing"), "{error}");
}

#[tokio::test]
async fn unsupported_contract_version_is_named() {
    let text = r#"(component
        (instance $empty)
        (export "wattle:plugin/node@0.2.0" (instance $empty)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "wit-version");
    assert!(error.message.contains("0.2.0") && error.message.contains("0.1"), "{error}");
}

#[tokio::test]
async fn interface_without_its_functions_is_a_missing_export() {
    let text = r#"(component
        (instance $empty)
        (export "wattle:plugin/node@0.1.0" (instance $empty)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "missing-export");
    assert!(error.message.contains("describe"), "{error}");
}

#[tokio::test]
async fn function_of_another_type_is_a_missing_export() {
    let text = r#"(component
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $node (export "describe" (func $f)) (export "run" (func $f)))
        (export "wattle:plugin/node@0.1.0" (instance $node)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "missing-export", "{error}");
}

#[tokio::test]
async fn unknown_import_is_named() {
    let text = r#"(component
        (import "evil:host/files@0.1.0" (instance (export "read" (func))))
        (instance $empty)
        (export "wattle:plugin/node@0.1.0" (instance $empty)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "unknown-import");
    assert!(error.message.contains("evil:host/files@0.1.0"), "{error}");
}

#[tokio::test]
async fn unknown_function_of_an_interface_is_an_unknown_import() {
    let text = r#"(component
        (import "wattle:plugin/clock@0.1.0" (instance (export "rewind" (func))))
        (instance $empty)
        (export "wattle:plugin/node@0.1.0" (instance $empty)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "unknown-import");
    assert!(error.message.contains("rewind"), "{error}");
}

/// Toolchains use older and newer patch versions of WASI than the host.
#[tokio::test]
async fn components_for_any_patch_version_of_wasi_load() {
    for version in ["0.2.0", "0.2.99"] {
        let plugin = load(guest::foreign_of(version, "(i32.const 512)")).await.unwrap();
        let imports = &plugin.info().imports;
        assert!(imports.iter().any(|name| name == "wasi:cli/stdout"), "{imports:?}");
    }
}

#[tokio::test]
async fn unknown_function_of_a_newer_wasi_is_an_unknown_import() {
    let text = r#"(component
        (import "wasi:random/random@0.2.99" (instance (export "get-random-dice" (func))))
        (instance $empty)
        (export "wattle:plugin/node@0.1.0" (instance $empty)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "unknown-import");
    assert!(error.message.contains("get-random-dice"), "{error}");
}

#[tokio::test]
async fn too_many_core_instances_exceed_the_limit() {
    let instances = "(core instance (instantiate $m))".repeat(51);
    let error = load_error(guest::component(&format!("(component (core module $m) {instances})")));
    assert_eq!(error.await.code, "limit");
}

#[tokio::test]
async fn deeply_nested_components_exceed_the_limit() {
    let text = format!("{}{}", "(component ".repeat(10), ")".repeat(10));
    assert_eq!(load_error(guest::component(&text)).await.code, "limit");
}

#[tokio::test]
async fn loading_a_broken_component_never_panics() {
    let good = guest::reducer(OK);
    assert!(load(good.clone()).await.is_ok());
    let sandbox = crate::sandbox();
    for place in (8..good.len()).step_by(7) {
        let mut bytes = good.to_vec();
        bytes[place] ^= 0x55;
        if let Err(error) = crate::load_into(&sandbox, bytes).await {
            assert_ne!(error.code, "panic", "{error}");
        }
        if let Err(error) = crate::load_into(&sandbox, good.slice(..place)).await {
            assert_ne!(error.code, "panic", "{error}");
        }
    }
}

#[tokio::test]
async fn truncated_component_is_named_as_such() {
    let good = guest::reducer(OK);
    let error = load_error(good.slice(..good.len() / 2)).await;
    assert_eq!(error.code, "invalid");
    assert!(error.message.contains("unexpected end-of-file"), "{error}");
    assert_eq!(error.hint, "build it again, or copy the file again: it was cut off");
}

#[tokio::test]
async fn hint_names_unsupported_features_only_if_the_module_uses_one() {
    let invalid = async |module: &str| {
        let text = format!(
            r#"(component
                (core module {module})
                (instance $empty)
                (export "wattle:plugin/node@0.1.0" (instance $empty)))"#
        );
        let error = load_error(guest::component(&text)).await;
        assert_eq!(error.code, "invalid", "{error}");
        error
    };
    for module in [
        "(memory i64 1)",
        "(memory 1 1 shared)",
        "(func atomic.fence)",
        "(tag)",
        "(type (struct))",
        "(type $f (func)) (func (param (ref $f)))",
    ] {
        let error = invalid(module).await;
        assert!(error.hint.contains("64-bit memory are not supported"), "{module}: {error}");
    }
    let error = invalid("(func (result i32))").await;
    assert_eq!(error.hint, "build it again with the Wattle SDK", "{error}");
}

#[tokio::test]
async fn plugin_describes_itself() {
    let plugin = load(guest::node("", OK)).await.unwrap();
    let info = plugin.info();
    assert_eq!(info.contract, "0.1.0");
    assert_eq!(info.exports, ["wattle:plugin/node"]);
    assert_eq!(info.nodes.len(), 1);
    assert_eq!(info.nodes[0].name, "n");
    assert_eq!(info.nodes[0].input_schema, serde_json::json!({}));
    let plugin = load(guest::reducer(OK)).await.unwrap();
    assert_eq!(plugin.info().reducers[0].name, "r");
    assert_eq!(plugin.info().manifest, None);
}

/// Returns a node plugin whose node has the extra field `reads` and this schema of the input.
fn node_reading(reads: &str, input_schema: &str) -> bytes::Bytes {
    let words = |numbers: &[usize]| -> Vec<u8> {
        numbers.iter().flat_map(|number| u32::try_from(*number).unwrap().to_le_bytes()).collect()
    };
    // The schema of the input is at address 144 and the extra fields at 160: each is a pointer to a
    // text or a list, and its length.
    let describe = [
        guest::store(1024, format!("reads{reads}").as_bytes()),
        guest::store(960, &words(&[1024, 5, 1029, reads.len()])),
        guest::store(160, &words(&[960, 1])),
        guest::store(4096, input_schema.as_bytes()),
        guest::store(144, &words(&[4096, input_schema.len()])),
        "(i32.const 192)".to_owned(),
    ];
    guest::node_describing("", &describe.concat())
}

#[tokio::test]
async fn channels_that_a_node_reads_are_part_of_its_description() {
    let messages = json!({ "config": "messages", "default": "messages" });
    for reads in [
        json!({ "channels": [messages, { "channel": "notes" }], "conversation": messages }),
        json!({ "conversation": { "channel": "messages" } }),
    ] {
        let plugin = load(node_reading(&reads.to_string(), "{}")).await.unwrap();
        assert_eq!(json!(plugin.info().nodes[0].reads), reads);
    }
    let plugin = load(guest::node("", OK)).await.unwrap();
    assert_eq!(plugin.info().nodes[0].reads, None);
}

#[tokio::test]
async fn invalid_declaration_of_channels_is_rejected() {
    const SCHEMA: &str = r#"{"properties":{}}"#;
    let alone = json!({ "conversation": { "channel": "messages" } });
    let apart = json!({ "channels": [], "conversation": { "channel": "messages" } });
    let channel = json!({ "channel": "c".repeat(100) });
    let long = json!({ "channels": vec![channel; 10] });
    for (reads, code, part) in [
        ("messages".to_owned(), "describe", "is no object of channels in JSON"),
        (json!("messages").to_string(), "describe", "is no object of channels in JSON"),
        (json!({ "channel": [] }).to_string(), "describe", "unknown field `channel`"),
        (json!({ "channels": ["messages"] }).to_string(), "describe", "is no object of channels"),
        (json!({ "channels": [{ "default": "a" }] }).to_string(), "describe", "a channel is"),
        (alone.to_string(), "describe", "has a `conversation`, but no `channels`"),
        (apart.to_string(), "describe", "not among its `channels`"),
        (long.to_string(), "limit", "more than the limit of 1024"),
    ] {
        let error = load_error(node_reading(&reads, SCHEMA)).await;
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains("`reads` of `n`"), "{error}");
        assert!(error.message.contains(part), "{error}");
        let example = error.message.split_once("as in `").and_then(|(_, it)| it.split_once('`'));
        assert_eq!(example.is_some(), code == "describe", "{error}");
        if let Some((example, _)) = example {
            load(node_reading(example, SCHEMA)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn manifest_of_a_component_is_read() {
    let mut bytes = guest::reducer(OK).to_vec();
    let (name, text) = ("wattle:manifest", "[asks]\n");
    bytes.push(0);
    bytes.push((1 + name.len() + text.len()) as u8);
    bytes.push(name.len() as u8);
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(text.as_bytes());
    let plugin = load(bytes).await.unwrap();
    assert_eq!(plugin.info().manifest.as_deref(), Some(text));
}

#[tokio::test]
async fn description_that_calls_an_import_is_rejected() {
    let text = format!(
        r#"(module
            (import "wattle:plugin/clock@0.1.0" "now" (func $now (result i64)))
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {OK})
            (func (export "wattle:plugin/node@0.1.0#describe") (result i32)
                (drop (call $now)) {OK})
            (func (export "wattle:plugin/node@0.1.0#run") (param i32) (result i32) {OK}))"#
    );
    let error = load_error(guest::core(&text, "node-plugin")).await;
    assert_eq!(error.code, "describe");
    assert!(error.message.contains("`clock.now`"), "{error}");
}

/// Time of the wall clock of guests without a gate, in seconds since 1970: 2025-01-01.
const WALL_CLOCK_SECONDS: u64 = 1_735_689_600;

/// When programs in Python and other languages start, they read the clock and random seeds for hash
/// tables and generators.
#[tokio::test]
async fn description_reads_the_same_clocks_and_random_numbers_each_time() {
    // The name of the node is a random capital letter. The guest reads the monotonic clock until a
    // second has passed.
    let describe = format!(
        "(local $stream i32)
        (i32.store8 (i32.const 64) (i32.add (i32.const 65)
            (i32.wrap_i64 (i64.rem_u (call $random) (i64.const 26)))))
        (call $now (i32.const 1024))
        (if (i64.ne (i64.load (i32.const 1024)) (i64.const {WALL_CLOCK_SECONDS}))
            (then (unreachable)))
        (loop (br_if 0 (i64.lt_u (call $monotonic) (i64.const 1000000000))))
        (local.set $stream (call $stdout))
        (call $check_write (local.get $stream) (i32.const 1040))
        (call $write (local.get $stream) (i32.const 64) (i32.const 1) (i32.const 1056))
        (i32.const 192)"
    );
    let bytes = guest::foreign_describing(&describe);
    let first = load(bytes.clone()).await.unwrap();
    let second = load(bytes).await.unwrap();
    assert_eq!(first.info(), second.info());
    assert!(first.info().nodes[0].name.starts_with(|letter: char| letter.is_ascii_uppercase()));
}

#[tokio::test]
async fn endless_reading_of_a_clock_is_rejected() {
    let describe = "(loop (drop (call $monotonic)) (br 0)) (i32.const 192)";
    let error = load_error(guest::foreign_describing(describe)).await;
    assert_eq!(error.code, "describe");
    assert!(error.message.contains("CPU time"), "{error}");
}

#[tokio::test]
async fn random_bytes_of_a_description_are_limited() {
    let reads = |times: u32| {
        format!(
            "(local $done i32)
            (loop
                (call $random_bytes (i64.const 65536) (i32.const 1024))
                (local.set $done (i32.add (local.get $done) (i32.const 1)))
                (br_if 0 (i32.lt_u (local.get $done) (i32.const {times}))))
            (i32.const 192)"
        )
    };
    assert!(load(guest::foreign_describing(&reads(16))).await.is_ok());
    let error = load_error(guest::foreign_describing(&reads(17))).await;
    assert_eq!(error.code, "describe");
    assert!(error.message.contains("1048576 random bytes"), "{error}");
}

#[tokio::test]
async fn endless_description_is_rejected() {
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {OK})
            (func (export "wattle:plugin/node@0.1.0#describe") (result i32)
                (loop (br 0)) {OK})
            (func (export "wattle:plugin/node@0.1.0#run") (param i32) (result i32) {OK}))"#
    );
    let error = load_error(guest::core(&text, "node-plugin")).await;
    assert_eq!(error.code, "describe");
    assert!(error.message.contains("CPU time"), "{error}");
    // No setting raises this limit, so the message names no setting.
    assert!(error.message.contains("no setting raises this limit"), "{error}");
    assert!(!error.message.contains("wattle.toml"), "{error}");
}
