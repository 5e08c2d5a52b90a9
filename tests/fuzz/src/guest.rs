//! Components that return values which the fuzzer chose. The host passes an image of memory as
//! hexadecimal text, and the guest returns the value at the beginning of that image.

use bytes::Bytes;
use serde_json::Value;
use wit_component::StringEncoding;
use wit_parser::Resolve;

/// Maximum size of an image, in bytes. The image is at the beginning of the guest's memory.
pub(crate) const IMAGE_BYTES: usize = 4_096;

/// Encodes an image as the input of the guest.
pub(crate) fn image(memory: &[u8]) -> Value {
    let memory = &memory[..memory.len().min(IMAGE_BYTES)];
    memory.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Memory, and a bump allocator that records the largest allocation: of the values that the host
/// passes, that is the image. `answer` decodes the image to address 0 and returns its address. The
/// hexadecimal digits are a JSON string in quotes.
const PRELUDE: &str = r#"
    (memory (export "memory") 2)
    (global $next (mut i32) (i32.const 16384))
    (global $largest (mut i32) (i32.const 0))
    (global $place (mut i32) (i32.const 0))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
        (global.set $next (i32.add (local.get $at) (local.get 3)))
        (if (i32.gt_u (local.get 3) (global.get $largest)) (then
            (global.set $largest (local.get 3))
            (global.set $place (local.get $at))))
        (local.get $at))
    (func $digit (param $at i32) (result i32)
        (local $byte i32)
        (local.set $byte (i32.load8_u (local.get $at)))
        (if (result i32) (i32.lt_u (local.get $byte) (i32.const 58))
            (then (i32.sub (local.get $byte) (i32.const 48)))
            (else (i32.sub (local.get $byte) (i32.const 87)))))
    (func $answer (result i32)
        (local $from i32) (local $end i32) (local $to i32)
        (local.set $from (i32.add (global.get $place) (i32.const 1)))
        (local.set $end (i32.add (global.get $place) (i32.sub (global.get $largest) (i32.const 2))))
        (block $done (loop $more
            (br_if $done (i32.ge_s (local.get $from) (local.get $end)))
            (i32.store8 (local.get $to) (i32.or
                (i32.shl (call $digit (local.get $from)) (i32.const 4))
                (call $digit (i32.add (local.get $from) (i32.const 1)))))
            (local.set $from (i32.add (local.get $from) (i32.const 2)))
            (local.set $to (i32.add (local.get $to) (i32.const 1)))
            (br $more)))
        (i32.const 0))
"#;

/// Returns the exports of the guest of a world: its description and one function.
fn exports(world: &str) -> &'static str {
    match world {
        "node" => {
            r#"(data (i32.const 8192) "n{}")
            (data (i32.const 8256) "\00\20\00\00\01\00\00\00\00\00\00\00\00\00\00\00\01\20\00\00\02\00\00\00\01\20\00\00\02\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 8448) "\40\20\00\00\01\00\00\00")
            (func (export "wattle:plugin/node@0.1.0#describe") (result i32) (i32.const 8448))
            (func (export "wattle:plugin/node@0.1.0#run") (param i32) (result i32) (call $answer))"#
        }
        "tool" => {
            r#"(data (i32.const 8192) "t{}")
            (data (i32.const 8256) "\00\20\00\00\01\00\00\00\00\00\00\00\00\00\00\00\01\20\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 8448) "\40\20\00\00\01\00\00\00")
            (func (export "wattle:plugin/tool@0.1.0#list") (result i32) (i32.const 8448))
            (func (export "wattle:plugin/tool@0.1.0#call") (param i32) (result i32) (call $answer))"#
        }
        "reducer" => {
            r#"(data (i32.const 8192) "r")
            (data (i32.const 8256) "\00\20\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 8448) "\40\20\00\00\01\00\00\00")
            (func (export "wattle:plugin/reducer@0.1.0#reducers") (result i32) (i32.const 8448))
            (func (export "wattle:plugin/reducer@0.1.0#reduce")
                (param i32 i32 i32 i32 i32 i32 i32) (result i32) (call $answer))"#
        }
        _ => {
            r#"(func (export "wattle:plugin/web@0.1.0#routes") (result i32) (i32.const 8448))
            (func (export "wattle:plugin/web@0.1.0#handle") (param i32) (result i32)
                (call $answer))"#
        }
    }
}

/// The world of the typed guest. Values of the type `all` are passed by their address.
const TYPED: &str = "
    package test:typed;
    interface ops {
        flags marks { a, b, c }
        enum color { red, green }
        variant shape { circle(f64), label(string), none }
        record item { name: string, size: option<u32>, marks: marks }
        record all {
            yes: bool,
            small: s8,
            wide: u64,
            signed: s64,
            single: f32,
            double: f64,
            letter: char,
            text: string,
            bytes: list<u8>,
            items: list<item>,
            pair: tuple<u16, s32>,
            color: color,
            shape: shape,
            nested: option<option<bool>>,
            ended: result<u8, string>,
            done: result,
        }
        same: func(v: all) -> all;
        read: func(image: string) -> all;
    }
    world tools { export ops; }";

/// Builds a typed component: `same` returns its argument, and `read` the value at the beginning of
/// an image, which is hexadecimal text in quotes.
pub(crate) fn typed() -> Bytes {
    let text = format!(
        r#"(module {PRELUDE}
            (func (export "test:typed/ops#same") (param i32) (result i32) (local.get 0))
            (func (export "test:typed/ops#read") (param i32 i32) (result i32) (call $answer)))"#
    );
    let mut resolve = Resolve::default();
    let package = resolve.push_str("typed.wit", TYPED).expect("the world is valid");
    let world = resolve.select_world(&[package], Some("tools")).expect("the world is there");
    let mut module = wat::parse_str(text).expect("the text of the guest is valid");
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("the world fits into the module");
    module.into()
}

/// Builds the guest of a world: `node`, `tool`, `reducer` or `web`.
pub(crate) fn component(world: &str) -> Bytes {
    let text = format!("(module {PRELUDE} {})", exports(world));
    let mut module = wat::parse_str(text).expect("the text of the guest is valid");
    let mut resolve = Resolve::default();
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/wattle");
    resolve.push_path(wit).expect("the contract can be read");
    let package = resolve.package_names.values().next().copied().expect("there is a package");
    let world = resolve.select_world(&[package], Some(&format!("{world}-plugin")));
    let world = world.expect("the contract has the world");
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("the world fits into the module");
    module.into()
}
