//! A handwritten guest that looks for marks of earlier calls. The guest traps if it finds a mark,
//! and leaves a mark in every place in which a guest can leave one.

use bytes::Bytes;

use crate::guest;
use crate::node::{CALL_SEND, NOTHING};

/// Tables of a typed component: the number that the pool reserves for each guest.
const TABLES: u32 = 4;

/// Number of elements by which each table grows. The elements take more memory than a freed table
/// keeps.
const MORE_ELEMENTS: u32 = 1_000;

/// Address of the last 4 KiB of the first page of a node's memory. The memory is zero from this
/// address on. Data, arguments and results are below it.
const FREE: u32 = 61_440;

/// A memory with data, which wasmtime maps from an image, and with two initial pages. The guest
/// marks every second 4 KiB, which makes more separate parts than the kernel lists at a time.
pub(crate) const SPARSE: Memory = Memory { first_pages: Some(2), begin: FREE, has_data: true };

/// A memory without data that has all of its pages initially. The guest marks every byte.
pub(crate) const DENSE: Memory = Memory { first_pages: None, begin: 0, has_data: false };

/// A memory like [`DENSE`] for a node, with two initial pages.
pub(crate) const DENSE_NODE: Memory = Memory { first_pages: Some(2), begin: FREE, has_data: false };

/// The memory of a guest.
pub(crate) struct Memory {
    /// Initial pages of the memory; `None` if the memory has all of its pages initially.
    first_pages: Option<u32>,
    /// Address at which the zero part of the memory begins.
    begin: u32,
    has_data: bool,
}

/// What a guest does after it has left its marks.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Then {
    /// The guest returns.
    Return,
    /// The guest divides by zero.
    Trap,
    /// The guest loops without end.
    Spin,
    /// The guest tries to grow its memory beyond the limit, and traps.
    Grow,
    /// The guest waits: a node for a response, an asynchronous function for its callback.
    Wait,
}

/// The ABI of a typed component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abi {
    Synchronous,
    Asynchronous,
}

impl Abi {
    /// Returns the number of memories of a guest, which is the number that the pool reserves for
    /// each guest.
    pub(crate) const fn memories(self) -> u32 {
        match self {
            Self::Synchronous => 1,
            Self::Asynchronous => 3,
        }
    }
}

/// A place in which a guest can leave a mark.
#[derive(Clone)]
struct Place {
    name: &'static str,
    /// The body of a function that returns 1 if there is a mark.
    is_marked: String,
    /// Instructions that leave a mark.
    mark: String,
}

/// Returns a node plugin. The number of the attempt selects what the node does after it has left
/// its marks; see [`Then`]. `imports` contains `http.send`. The memory grows to `pages` pages.
pub(crate) fn node(imports: &str, memory: &Memory, pages: u32) -> Bytes {
    let places = [memory.places(pages), table_places(), vec![global_place()]].concat();
    let parts = format!("{} {TABLE} {GLOBAL} {}", memory.data(), remember(&places));
    let attempt = "(i32.load offset=44 (local.get 0))";
    let body = format!("(call $remember) {} {NOTHING}", then(attempt, GROW, CALL_SEND));
    guest::node(&format!("{imports} {parts}"), &body)
}

/// Returns a typed component. The parameter of its function `run` selects what the function does
/// after it has left its marks; see [`Then`]. Each memory grows to `pages` pages.
pub(crate) fn typed(abi: Abi, memory: &Memory, pages: u32) -> Bytes {
    let memory_module = format!(
        r#"(core module $memory
            (memory {first}) {data} {GLOBAL} {remember}
            (func (export "remember") (call $remember))
            (func (export "grow") {GROW}))"#,
        first = memory.first_pages(pages),
        data = memory.data(),
        remember = remember(&[memory.places(pages), vec![global_place()]].concat()),
    );
    let table_module = format!(
        r#"(core module $table
            {TABLE} {GLOBAL} {remember}
            (func (export "remember") (call $remember)))"#,
        remember = remember(&[table_places(), vec![global_place()]].concat()),
    );
    let part = |kind: &'static str, count| (0..count).map(move |i| (kind, format!("{kind}{i}")));
    let parts: Vec<Part> = part("memory", abi.memories()).chain(part("table", TABLES)).collect();
    let instances =
        each(&parts, |kind, name| format!("(core instance ${name} (instantiate ${kind}))"));
    let arguments = each(&parts, |_, name| format!(r#"(with "{name}" (instance ${name}))"#));
    let imports = each(&parts, |_, name| format!(r#"(import "{name}" "remember" (func ${name}))"#));
    let calls = each(&parts, |_, name| format!("(call ${name})"));
    let Host { functions, exports, imports: host_imports, places } = host(abi);
    let remember = remember(&[places, vec![global_place()]].concat());
    let (run, lift) = run(abi, &format!("{calls} (call $remember)"));
    guest::component(&format!(
        r#"(component
            {memory_module} {table_module} {instances}
            {functions}
            (core instance $host {exports})
            (core module $main
                {imports} {host_imports} (import "memory0" "grow" (func $grow))
                {GLOBAL} {remember} {run})
            (core instance $main (instantiate $main {arguments} (with "host" (instance $host))))
            {lift}
            (export "run" (func $run)))"#
    ))
}

/// A part of a typed component: the name of a module, and the name of an instance of this module.
type Part = (&'static str, String);

/// Returns a text for each part.
fn each(parts: &[Part], text: impl Fn(&str, &str) -> String) -> String {
    parts.iter().map(|(kind, name)| text(kind, name)).collect()
}

/// The built-in functions that a typed component uses, with the places that these functions reach.
struct Host {
    functions: &'static str,
    exports: &'static str,
    imports: &'static str,
    places: Vec<Place>,
}

/// Returns the built-in functions of a component and their places: handles of a resource, and the
/// context of a task.
fn host(abi: Abi) -> Host {
    // The first handle of an instance is 1. The check does not drop its handle, so this handle is
    // also the mark.
    let is_marked = "(i32.ne (call $new (i32.const 7)) (i32.const 1))".to_owned();
    let handle = Place { name: "handle", is_marked, mark: String::new() };
    match abi {
        Abi::Synchronous => Host {
            functions: "(type $resource (resource (rep i32)))
                (core func $new (canon resource.new $resource))",
            exports: r#"(export "new" (func $new))"#,
            imports: r#"(import "host" "new" (func $new (param i32) (result i32)))"#,
            places: vec![handle],
        },
        Abi::Asynchronous => {
            let mark = "(call $set_context (i32.const 7))".to_owned();
            let is_marked = "(i32.ne (call $context) (i32.const 0))".to_owned();
            let context = Place { name: "context", is_marked, mark };
            Host {
                functions: "(type $resource (resource (rep i32)))
                    (core func $new (canon resource.new $resource))
                    (core func $context (canon context.get i32 0))
                    (core func $set_context (canon context.set i32 0))
                    (core func $return (canon task.return))",
                exports: r#"(export "new" (func $new))
                    (export "context" (func $context))
                    (export "set-context" (func $set_context))
                    (export "return" (func $return))"#,
                imports: r#"(import "host" "new" (func $new (param i32) (result i32)))
                    (import "host" "context" (func $context (result i32)))
                    (import "host" "set-context" (func $set_context (param i32)))
                    (import "host" "return" (func $return))"#,
                places: vec![handle, context],
            }
        }
    }
}

/// Returns the functions of the main module, and how `run` is lifted.
fn run(abi: Abi, remember: &str) -> (String, &'static str) {
    const CALL_GROW: &str = "(call $grow)";
    let ending = "(local.get $ending)";
    match abi {
        Abi::Synchronous => {
            let then = then(ending, CALL_GROW, "(unreachable)");
            let run = format!(r#"(func (export "run") (param $ending i32) {remember} {then})"#);
            let lift = r#"(type $run_type (func (param "ending" u32)))
                (func $run (type $run_type) (canon lift (core func $main "run")))"#;
            (run, lift)
        }
        Abi::Asynchronous => {
            // The callback code 0 ends the function, and the code 1 yields.
            let then = then(ending, CALL_GROW, "(return (i32.const 1))");
            let run = format!(
                r#"(func (export "run") (param $ending i32) (result i32)
                    {remember} {then} (call $return) (i32.const 0))
                (func (export "again") (param i32 i32 i32) (result i32)
                    (call $return) (i32.const 0))"#
            );
            let lift = r#"(type $run_type (func async (param "ending" u32)))
                (func $run (type $run_type)
                    (canon lift (core func $main "run") async (callback (func $main "again"))))"#;
            (run, lift)
        }
    }
}

/// Returns instructions that select by a number what the guest does; see [`Then`].
fn then(number: &str, grow: &str, wait: &str) -> String {
    let case = |then: Then, instructions: &str| {
        let is_wanted = format!("(i32.eq {number} (i32.const {}))", then as u32);
        format!("(if {is_wanted} (then {instructions}))")
    };
    [
        case(Then::Trap, "(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
        case(Then::Spin, "(loop $spin (br $spin))"),
        case(Then::Grow, grow),
        case(Then::Wait, wait),
    ]
    .concat()
}

/// Instructions that grow the memory by a page, and trap.
const GROW: &str = "(drop (memory.grow (i32.const 1))) (unreachable)";

/// Returns the function `$remember`. This function traps if a place has a mark, leaves a mark in
/// each place, and then traps if a place has no mark. The trap is in a function whose name has the
/// name of the place.
fn remember(places: &[Place]) -> String {
    let functions = places.iter().map(|Place { name, is_marked, .. }| {
        format!(
            "(func $is_{name}_marked (result i32) {is_marked})
            (func ${name}_remembers (if (call $is_{name}_marked) (then (unreachable))))
            (func ${name}_forgets (if (i32.eqz (call $is_{name}_marked)) (then (unreachable))))"
        )
    });
    let functions: String = functions.collect();
    let calls = |what: &str| -> String {
        places.iter().map(|place| format!("(call ${}_{what})", place.name)).collect()
    };
    let marks: String = places.iter().map(|place| place.mark.as_str()).collect();
    format!(
        "{functions} (func $remember (local $at i32) {} {marks} {})",
        calls("remembers"),
        calls("forgets")
    )
}

/// A global variable.
const GLOBAL: &str = "(global $kept (mut i32) (i32.const 5))";

fn global_place() -> Place {
    Place {
        name: "global",
        is_marked: "(i32.ne (global.get $kept) (i32.const 5))".to_owned(),
        mark: "(global.set $kept (i32.const 6))".to_owned(),
    }
}

/// A table whose first element is a function that returns 7 and whose second element is null, and
/// an element segment that can be dropped.
const TABLE: &str = "
    (table $targets 2 funcref)
    (elem (table $targets) (i32.const 0) func $target)
    (elem $spare_targets func $target)
    (elem declare func $other_target)
    (func $target (result i32) (i32.const 7))
    (func $other_target (result i32) (i32.const 8))";

fn table_places() -> Vec<Place> {
    // Elements by which the table has just grown must not have a mark either. Copying an element of
    // a segment that was dropped traps.
    let mark = "
        (call $table_remembers)
        (table.init $targets $spare_targets (i32.const 1) (i32.const 0) (i32.const 1))
        (elem.drop $spare_targets)
        (table.fill $targets (i32.const 0) (ref.func $other_target) (table.size $targets))";
    let is_marked = "
        (local $at i32)
        (if (i32.ne (call_indirect $targets (result i32) (i32.const 0)) (i32.const 7))
            (then (return (i32.const 1))))
        (local.set $at (i32.const 1))
        (loop $next
            (if (i32.eqz (ref.is_null (table.get $targets (local.get $at))))
                (then (return (i32.const 1))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (table.size $targets))))
        (i32.const 0)";
    let grow = format!(
        "(if (i32.eq (table.grow $targets (ref.null func) (i32.const {MORE_ELEMENTS}))
                (i32.const -1))
            (then (unreachable)))"
    );
    vec![
        Place {
            name: "table_size",
            is_marked: "(i32.ne (table.size $targets) (i32.const 2))".to_owned(),
            mark: grow,
        },
        Place { name: "table", is_marked: is_marked.to_owned(), mark: mark.to_owned() },
    ]
}

impl Memory {
    fn first_pages(&self, pages: u32) -> u32 {
        self.first_pages.unwrap_or(pages)
    }

    /// Returns the data: `seed` at address 60,000, and a data segment that can be dropped.
    fn data(&self) -> &'static str {
        if self.has_data { r#"(data (i32.const 60000) "seed") (data $spare "more")"# } else { "" }
    }

    /// Returns the places of a memory that grows to `pages` pages.
    fn places(&self, pages: u32) -> Vec<Place> {
        let (begin, first_pages) = (self.begin, self.first_pages(pages));
        let end = "(i32.mul (memory.size) (i32.const 65536))";
        let size = Place {
            name: "memory_size",
            is_marked: format!("(i32.ne (memory.size) (i32.const {first_pages}))"),
            mark: format!(
                "(if (i32.eq (memory.grow (i32.const {})) (i32.const -1)) (then (unreachable)))",
                pages - first_pages
            ),
        };
        let write = if self.has_data {
            // Copying bytes of a segment that was dropped traps.
            format!(
                "(local.set $at (i32.const {begin}))
                (loop $next_mark
                    (i64.store offset=4088 (local.get $at) (i64.const -1))
                    (local.set $at (i32.add (local.get $at) (i32.const 8192)))
                    (br_if $next_mark (i32.lt_u (local.get $at) {end})))
                (memory.init $spare (i32.const 60032) (i32.const 0) (i32.const 4))
                (data.drop $spare)"
            )
        } else {
            format!(
                "(memory.fill (i32.const {begin}) (i32.const 255)
                    (i32.sub {end} (i32.const {begin})))"
            )
        };
        let content = Place {
            name: "memory",
            is_marked: format!(
                "(local $at i32)
                (local.set $at (i32.const {begin}))
                (loop $next
                    (if (i64.ne (i64.load (local.get $at)) (i64.const 0))
                        (then (return (i32.const 1))))
                    (local.set $at (i32.add (local.get $at) (i32.const 8)))
                    (br_if $next (i32.lt_u (local.get $at) {end})))
                (i32.const 0)"
            ),
            // Pages by which the memory has just grown must not have a mark either.
            mark: format!("(call $memory_remembers) {write}"),
        };
        let data = Place {
            name: "data",
            // The text `seed` as a number.
            is_marked: "(i32.ne (i32.load (i32.const 60000)) (i32.const 0x64656573))".to_owned(),
            mark: "(i32.store (i32.const 60000) (i32.const 7))".to_owned(),
        };
        let size = (first_pages < pages).then_some(size);
        size.into_iter().chain([content]).chain(self.has_data.then_some(data)).collect()
    }
}
