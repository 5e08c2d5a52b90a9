//! Handwritten guests: core modules in text format with the component type of a world.

use bytes::Bytes;
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::{FunctionKind, PackageId, PackageMetadata, Resolve};

/// Pages of the memory of a guest.
const PRELUDE_PAGES: u32 = 2;

/// Returns a memory and a bump allocator, which every guest has.
fn prelude(pages: u32) -> String {
    format!(r#"(memory (export "memory") {pages}) {ALLOCATOR}"#)
}

/// A bump allocator.
const ALLOCATOR: &str = r#"
    (global $next (mut i32) (i32.const 4096))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
        (global.set $next (i32.add (local.get $at) (local.get 3)))
        (block $enough
            (br_if $enough
                (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
            (drop (memory.grow
                (i32.add (i32.shr_u (local.get 3) (i32.const 16)) (i32.const 1)))))
        (local.get $at))
"#;

/// Returns a reducer plugin. `reducers` lists `r`, and `reduce` has the given body, which leaves
/// the address of its result. Parameter 6 of `reduce` is the address of the updates.
pub(crate) fn reducer(body: &str) -> Bytes {
    reducer_with(PRELUDE_PAGES, body)
}

/// Returns a reducer plugin like [`reducer`] whose memory has `pages` pages initially.
pub(crate) fn reducer_with(pages: u32, body: &str) -> Bytes {
    core(&reducer_text("", pages, body), "reducer-plugin")
}

fn reducer_text(imports: &str, pages: u32, body: &str) -> String {
    let prelude = prelude(pages);
    format!(
        r#"(module {imports} {prelude}
            (data (i32.const 64) "r")
            ;; One reducer: name `r`, no doc, nothing extra.
            (data (i32.const 128) "\40\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 192) "\80\00\00\00\01\00\00\00")
            ;; The result `ok("1")`.
            (data (i32.const 256) "1")
            (data (i32.const 320) "\00\00\00\00\00\01\00\00\01\00\00\00")
            (func (export "wattle:plugin/reducer@0.1.0#reducers") (result i32) (i32.const 192))
            (func $reduce (export "wattle:plugin/reducer@0.1.0#reduce")
                (param i32 i32 i32 i32 i32 i32 i32) (result i32)
                {body}))"#
    )
}

/// Returns a node plugin. `describe` lists `n`, and `run` has the given body, which leaves the
/// address of its result. Address 512 holds an empty outcome.
pub(crate) fn node(imports: &str, body: &str) -> Bytes {
    core(&node_text(imports, DESCRIBE, body), "node-plugin")
}

/// Instructions that leave the address of the list of nodes.
const DESCRIBE: &str = "(i32.const 192)";

/// The data of one node: name `n`, no doc, `{}` for both schemas, nothing extra. It is at address
/// 128, and the list of nodes at 192.
const NODE_DATA: &str = r#"
    (data (i32.const 64) "n{}")
    (data (i32.const 128) "\40\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\41\00\00\00\02\00\00\00\41\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00")
    (data (i32.const 192) "\80\00\00\00\01\00\00\00")"#;

fn node_text(imports: &str, describe: &str, body: &str) -> String {
    let prelude = prelude(PRELUDE_PAGES);
    format!(
        r#"(module {imports} {prelude} {NODE_DATA}
            (func (export "wattle:plugin/node@0.1.0#describe") (result i32)
                {describe})
            (func (export "wattle:plugin/node@0.1.0#run") (param i32) (result i32)
                {body}))"#
    )
}

/// An import that makes the ABI of a component asynchronous. componentize-qjs adds this import by
/// default.
pub(crate) const TASK_CANCEL: &str = r#"(import "[export]$root" "[task-cancel]" (func $cancel))"#;

/// Imports of a node like [`async_node`]. Two functions return the results of `describe` and of
/// `run`, and the third function creates a waitable set.
const ASYNC: &str = r#"
    (import "[export]wattle:plugin/node@0.1.0" "[task-return]describe"
        (func $return_nodes (param i32 i32)))
    (import "[export]wattle:plugin/node@0.1.0" "[task-return]run"
        (func $return (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "$root" "[waitable-set-new]" (func $set (result i32)))"#;

/// Returns instructions of a node like [`async_node`] that return an empty outcome.
pub(crate) fn return_nothing() -> String {
    format!("(call $return {})", "(i32.const 0)".repeat(9))
}

/// Returns a node plugin like [`node`] whose functions are asynchronous. `run` and its callback
/// have the given bodies. Each body leaves a callback code: 0 to exit, 1 to yield, or 2 to wait for
/// the waitable set whose handle is in the higher bits.
pub(crate) fn async_node(run: &str, callback: &str) -> Bytes {
    async_node_with("", run, callback)
}

/// Returns a node plugin like [`async_node`] with further definitions.
pub(crate) fn async_node_with(definitions: &str, run: &str, callback: &str) -> Bytes {
    const NODE: &str = "wattle:plugin/node@0.1.0";
    let prelude = prelude(PRELUDE_PAGES);
    let module = format!(
        r#"(module {ASYNC} {prelude} {definitions} {NODE_DATA}
            (func (export "[async-lift]{NODE}#describe") (result i32)
                (call $return_nodes (i32.const 128) (i32.const 1))
                (i32.const 0))
            (func (export "[callback][async-lift]{NODE}#describe") (param i32 i32 i32) (result i32)
                (unreachable))
            (func (export "[async-lift]{NODE}#run") (param i32) (result i32)
                {run})
            (func (export "[callback][async-lift]{NODE}#run") (param i32 i32 i32) (result i32)
                {callback}))"#
    );
    let mut resolve = contract();
    for (_, interface) in &mut resolve.interfaces {
        if interface.name.as_deref() == Some("node") {
            for function in interface.functions.values_mut() {
                function.kind = FunctionKind::AsyncFreestanding;
            }
        }
    }
    let package = only_package(&resolve);
    embed(&module, &resolve, package, "node-plugin")
}

/// Returns a tool plugin. `list` lists `t` with the given extra fields, and `call` has the given
/// body, which leaves the address of its result. Parameter 0 of `call` is the address of context
/// and arguments. Address 512 holds an empty output.
pub(crate) fn tool(extra: &[(&str, &str)], body: &str) -> Bytes {
    let mut texts = String::from("t{}");
    let mut fields = String::new();
    for text in extra.iter().flat_map(|(key, value)| [key, value]) {
        fields.push_str(&word(64 + texts.len()));
        fields.push_str(&word(text.len()));
        texts.push_str(text);
    }
    let (texts, count) = (texts.replace('"', "\\22"), word(extra.len()));
    let prelude = prelude(PRELUDE_PAGES);
    let module = format!(
        r#"(module {prelude}
            (data (i32.const 64) "{texts}")
            (data (i32.const 384) "{fields}")
            ;; One tool: name `t`, no description, schema `{{}}`, nothing invalid, extra fields.
            (data (i32.const 320) "\40\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\41\00\00\00\02\00\00\00\00\00\00\00\80\01\00\00{count}")
            (data (i32.const 368) "\40\01\00\00\01\00\00\00")
            (func (export "wattle:plugin/tool@0.1.0#list") (result i32) (i32.const 368))
            (func (export "wattle:plugin/tool@0.1.0#call") (param i32) (result i32)
                {body}))"#
    );
    core(&module, "tool-plugin")
}

/// Returns the four bytes of a number in the notation of the text format.
fn word(number: usize) -> String {
    let bytes = u32::try_from(number).expect("the number is small").to_le_bytes();
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}

/// Returns a node plugin like [`node`] whose `describe` has the given body, which leaves the
/// address of the nodes, such as 192.
pub(crate) fn node_describing(imports: &str, describe: &str) -> Bytes {
    core(&node_text(imports, describe, "(i32.const 512)"), "node-plugin")
}

/// Returns instructions that store bytes at an address.
pub(crate) fn store(address: usize, bytes: &[u8]) -> String {
    let store = |(place, byte): (usize, &u8)| {
        format!("(i32.store8 (i32.const {}) (i32.const {byte}))", address + place)
    };
    bytes.iter().enumerate().map(store).collect()
}

/// Returns instructions of a guest like [`foreign`] that write a text to stdout. The instructions
/// use the memory at addresses from 1020 to 1060, and from 2048.
pub(crate) fn say(text: &str) -> String {
    let (store, length) = (store(2048, text.as_bytes()), text.len());
    format!(
        "{store} (i32.store (i32.const 1020) (call $stdout))
        (call $check_write (i32.load (i32.const 1020)) (i32.const 1024))
        (call $write (i32.load (i32.const 1020)) (i32.const 2048) (i32.const {length})
            (i32.const 1040))"
    )
}

/// The import of `log.write`.
pub(crate) const LOG: &str = r#"(import "wattle:plugin/log@0.1.0" "write"
    (func $log (param i32 i32 i32 i32 i32 i32 i32)))"#;

/// Returns instructions of a guest with the import [`LOG`] that write a message of the level
/// `panic`, with the file `app.rs` and the line 7. The instructions use the memory from address
/// 2048.
pub(crate) fn panic(message: &str) -> String {
    let texts = store(2048, b"panicfile\"app.rs\"line7");
    let numbers = [2053_u32, 4, 2057, 8, 2065, 4, 2069, 1];
    let fields: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let (fields, length) = (store(2080, &fields), message.len());
    let message = store(2112, message.as_bytes());
    format!(
        "{texts} {fields} {message}
        (call $log (i32.const 5) (i32.const 2048) (i32.const 5)
            (i32.const 2112) (i32.const {length}) (i32.const 2080) (i32.const 2))"
    )
}

/// Returns a node plugin that imports WASI: its random numbers, its clocks and its output.
pub(crate) fn foreign(body: &str) -> Bytes {
    foreign_of(WASI_VERSION, body)
}

/// Returns a node plugin like [`foreign`] with further functions.
pub(crate) fn foreign_with(functions: &str, body: &str) -> Bytes {
    let text = node_text(WASI, DESCRIBE, body);
    // The closing bracket of the module.
    let text = text.strip_suffix(')').expect("the text is a module");
    foreign_text(&format!("{text} {functions})"), "node-plugin", WASI_VERSION)
}

/// Returns a node plugin like [`foreign`] that imports this version of WASI.
pub(crate) fn foreign_of(version: &str, body: &str) -> Bytes {
    let imports = WASI.replace(WASI_VERSION, version);
    foreign_text(&node_text(&imports, DESCRIBE, body), "node-plugin", version)
}

/// Returns a node plugin like [`foreign`]. `describe` has the given body, which leaves the address
/// of the nodes: 192 for the node `n`, whose name is at address 64.
pub(crate) fn foreign_describing(describe: &str) -> Bytes {
    let text = node_text(WASI, describe, "(i32.const 512)");
    foreign_text(&text, "node-plugin", WASI_VERSION)
}

/// Returns a reducer plugin like [`reducer`] with the imports of [`foreign`]. The result is one
/// byte at address 256.
pub(crate) fn foreign_reducer(body: &str) -> Bytes {
    let text = reducer_text(WASI, PRELUDE_PAGES, body);
    foreign_text(&text, "reducer-plugin", WASI_VERSION)
}

/// The version of WASI that guests import.
const WASI_VERSION: &str = "0.2.6";

/// Imports of WASI, for the core module of a guest.
const WASI: &str = r#"
    (import "wasi:random/random@0.2.6" "get-random-bytes" (func $random_bytes (param i64 i32)))
    (import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))
    (import "wasi:clocks/wall-clock@0.2.6" "now" (func $now (param i32)))
    (import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $monotonic (result i64)))
    (import "wasi:cli/stdout@0.2.6" "get-stdout" (func $stdout (result i32)))
    (import "wasi:io/streams@0.2.6" "[method]output-stream.check-write"
        (func $check_write (param i32 i32)))
    (import "wasi:io/streams@0.2.6" "[method]output-stream.write"
        (func $write (param i32 i32 i32 i32)))"#;

/// Returns a core module with the imports of WASI and a world of the contract.
fn foreign_text(text: &str, world: &str, version: &str) -> Bytes {
    const WORLD: &str = r"
        package test:foreign;
        world foreign {
            include wattle:plugin/WORLD@0.1.0;
            import wasi:random/random@0.2.6;
            import wasi:clocks/wall-clock@0.2.6;
            import wasi:clocks/monotonic-clock@0.2.6;
            import wasi:cli/stdout@0.2.6;
        }
        package wasi:random@0.2.6 {
            interface random {
                get-random-bytes: func(len: u64) -> list<u8>;
                get-random-u64: func() -> u64;
            }
        }
        package wasi:clocks@0.2.6 {
            interface monotonic-clock { now: func() -> u64; }
            interface wall-clock {
                record datetime { seconds: u64, nanoseconds: u32 }
                now: func() -> datetime;
            }
        }
        package wasi:io@0.2.6 {
            interface error { resource error; }
            interface streams {
                use error.{error};
                variant stream-error { last-operation-failed(error), closed }
                resource output-stream {
                    check-write: func() -> result<u64, stream-error>;
                    write: func(contents: list<u8>) -> result<_, stream-error>;
                }
            }
        }
        package wasi:cli@0.2.6 {
            interface stdout {
                use wasi:io/streams@0.2.6.{output-stream};
                get-stdout: func() -> output-stream;
            }
        }";
    let mut resolve = contract();
    let wit = WORLD.replace("WORLD", world).replace(WASI_VERSION, version);
    let package = resolve.push_str("foreign.wit", &wit).expect("the world is valid");
    embed(text, &resolve, package, "foreign")
}

/// Returns a node plugin like [`node`] of the world `guest` in a WIT document.
pub(crate) fn node_of(wit: &str, imports: &str, body: &str) -> Bytes {
    let mut resolve = contract();
    let package = resolve.push_str("guest.wit", wit).expect("the world is valid");
    embed(&node_text(imports, DESCRIBE, body), &resolve, package, "guest")
}

/// Returns a typed component with the world `tools` of a WIT document. Its core module has the
/// given functions, a memory and an allocator.
pub(crate) fn typed(wit: &str, functions: &str) -> Bytes {
    typed_with_imports(wit, "", functions)
}

/// Returns a typed component like [`typed`] whose core module has imports.
pub(crate) fn typed_with_imports(wit: &str, imports: &str, functions: &str) -> Bytes {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("tools.wit", wit).expect("the world is valid");
    let text = format!("(module {imports} {} {functions})", prelude(PRELUDE_PAGES));
    embed(&text, &resolve, package, "tools")
}

/// Returns a typed component like [`typed`] with the documentation of the WIT document.
pub(crate) fn typed_with_docs(wit: &str, functions: &str) -> Bytes {
    let module = typed(wit, functions);
    let encoded = ComponentEncoder::default().module(&module).and_then(|mut it| it.encode());
    let mut component = encoded.expect("the module can be encoded");
    let mut resolve = Resolve::default();
    let package = resolve.push_str("tools.wit", wit).expect("the world is valid");
    let docs = PackageMetadata::extract(&resolve, package).encode().expect("there are docs");
    let name = PackageMetadata::SECTION_NAME;
    let length = u32::try_from(1 + name.len() + docs.len()).expect("the section is small");
    component.push(0);
    // The length as four bytes of LEB128.
    component.extend([0, 7, 14].map(|shift| (length >> shift) as u8 | 0x80));
    component.push((length >> 21) as u8);
    component.push(u8::try_from(name.len()).expect("the name is short"));
    component.extend(name.bytes());
    component.extend(docs);
    component.into()
}

/// Returns a core module with the component type of a world of the contract.
pub(crate) fn core(text: &str, world: &str) -> Bytes {
    let resolve = contract();
    let package = only_package(&resolve);
    embed(text, &resolve, package, world)
}

fn only_package(resolve: &Resolve) -> PackageId {
    resolve.package_names.values().next().copied().expect("there is a package")
}

fn contract() -> Resolve {
    let mut resolve = Resolve::default();
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/wattle");
    resolve.push_path(wit).expect("the contract can be read");
    resolve
}

fn embed(text: &str, resolve: &Resolve, package: PackageId, world: &str) -> Bytes {
    let mut module = wat::parse_str(text).expect("the text of the guest is valid");
    let world = resolve.select_world(&[package], Some(world)).expect("the world is there");
    wit_component::embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8)
        .expect("the world fits into the module");
    module.into()
}

/// Parses a component in text format.
pub(crate) fn component(text: &str) -> Bytes {
    wat::parse_str(text).expect("the text of the component is valid").into()
}
