//! Tests of typed components: their functions are tools.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::failure::code;
use wattle_graph::llm::Part;
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::Gate;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{GuestError, Plugin, PluginToolCall, RefusedFunction, ToolInfo};
use wattle_run::stop_flag::StopFlag;

use crate::{guest, load, load_error, stub_ports};

/// The interface of a shop, and a function of the component itself.
const SHOP: &str = "
    package acme:shop@1.0.0;
    interface orders {
        /// A line of an order.
        record line {
            /// What to pay for.
            sku: string,
            price: f64,
        }
        resource file { read: func() -> string; }
        /// Adds up the prices of lines.
        total: func(lines: list<line>, note: option<string>) -> result<f64, string>;
        open: func(path: string) -> file;
    }
    world tools {
        export orders;
        export double-it: func(number: u32) -> u32;
    }";

/// The functions of [`SHOP`]. `total` returns an error if there are no lines, and stores its result
/// at address 512.
const FUNCTIONS: &str = r#"
    (data (i32.const 600) "no lines")
    (func (export "double-it") (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1)))
    (func (export "acme:shop/orders@1.0.0#open") (param i32 i32) (result i32) (unreachable))
    (func (export "acme:shop/orders@1.0.0#[method]file.read") (param i32) (result i32)
        (unreachable))
    (func (export "acme:shop/orders@1.0.0#total") (param i32 i32 i32 i32 i32) (result i32)
        (local $sum f64)
        (i32.store8 (i32.const 512) (i32.eqz (local.get 1)))
        (if (i32.eqz (local.get 1)) (then
            (i32.store (i32.const 520) (i32.const 600))
            (i32.store (i32.const 524) (i32.const 8))
            (return (i32.const 512))))
        (loop $more
            (local.set $sum (f64.add (local.get $sum) (f64.load offset=8 (local.get 0))))
            (local.set 0 (i32.add (local.get 0) (i32.const 16)))
            (local.set 1 (i32.sub (local.get 1) (i32.const 1)))
            (br_if $more (local.get 1)))
        (f64.store (i32.const 520) (local.get $sum))
        (i32.const 512))"#;

pub(crate) async fn call(
    plugin: &dyn Plugin,
    tool: &str,
    arguments: Value,
    limits: Limits,
) -> Result<ToolOutput, GuestError> {
    call_given(plugin, tool, arguments, limits, Grants::default()).await
}

pub(crate) async fn call_given(
    plugin: &dyn Plugin,
    tool: &str,
    arguments: Value,
    limits: Limits,
    grants: Grants,
) -> Result<ToolOutput, GuestError> {
    let gate = stub_ports::gate(limits, StopFlag::default());
    call_through(gate, plugin, tool, arguments, grants).await
}

pub(crate) async fn call_through(
    gate: Arc<Gate>,
    plugin: &dyn Plugin,
    tool: &str,
    arguments: Value,
    grants: Grants,
) -> Result<ToolOutput, GuestError> {
    let call = PluginToolCall {
        tool: tool.to_owned(),
        call_id: "call-1".to_owned(),
        thread: None,
        task: None,
        tenant: None,
        violations: Vec::new(),
        arguments,
        state: None,
        grants: Arc::new(grants),
    };
    plugin.call_tool(call, gate).await
}

async fn call_shop(tool: &str, arguments: Value) -> Result<ToolOutput, GuestError> {
    let shop = load(guest::typed(SHOP, FUNCTIONS)).await.unwrap();
    call(shop.as_ref(), tool, arguments, Limits::default()).await
}

fn tool<'p>(plugin: &'p dyn Plugin, name: &str) -> &'p ToolInfo {
    let tools = &plugin.info().tools;
    let found = tools.iter().find(|tool| tool.name == name);
    found.unwrap_or_else(|| panic!("no tool `{name}`: {tools:?}"))
}

#[tokio::test]
async fn functions_are_tools_with_a_schema() {
    let plugin = load(guest::typed(SHOP, FUNCTIONS)).await.unwrap();
    let info = plugin.info();
    assert_eq!(info.contract, "");
    assert_eq!(info.exports, ["acme:shop/orders", "double-it"]);
    assert_eq!(info.tools.len(), 2, "{:?}", info.tools);
    let total = tool(plugin.as_ref(), "orders_total");
    let signature = "`total: func(lines: list<record { sku: string, price: f64 }>, \
                     note: option<string>) -> result<f64, string>` of `acme:shop/orders`";
    assert_eq!(total.description, signature);
    assert_eq!(total.arguments_schema["required"], json!(["lines"]));
    let line = &total.arguments_schema["properties"]["lines"]["items"];
    assert_eq!(line["properties"]["price"], json!({ "type": "number" }));
    let double = &tool(plugin.as_ref(), "double_it").arguments_schema["properties"]["number"];
    assert_eq!(*double, json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }));
}

#[tokio::test]
async fn functions_that_cannot_be_tools_are_listed_with_the_reason() {
    let plugin = load(guest::typed(SHOP, FUNCTIONS)).await.unwrap();
    let mut refused = plugin.info().refused.clone();
    refused.sort_by(|one, other| one.function.cmp(&other.function));
    let refused_for = |function: &str, reason: &str| RefusedFunction {
        function: format!("acme:shop/orders.{function}"),
        reason: format!("its {reason} contains a resource, which has no form in JSON"),
    };
    let expected =
        [refused_for("[method]file.read", "parameter `self`"), refused_for("open", "result")];
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn result_of_a_function_is_returned_as_data_and_text() {
    let output = call_shop("double_it", json!({ "number": 21 })).await.unwrap();
    assert_eq!(output.content, [Part::Text("42".to_owned())]);
    assert_eq!(output.structured, Some(json!(42)));
    let lines = json!([{ "sku": "a", "price": 2.5 }, { "sku": "b", "price": 3 }]);
    let output = call_shop("orders_total", json!({ "lines": lines, "note": "x" })).await.unwrap();
    assert_eq!((output.structured, output.is_error), (Some(json!(5.5)), false));
}

#[tokio::test]
async fn error_of_a_function_is_an_output_that_models_read() {
    let output = call_shop("orders_total", json!({ "lines": [] })).await.unwrap();
    assert!(output.is_error);
    assert_eq!(output.content, [Part::Text("no lines".to_owned())]);
    assert_eq!(output.structured, Some(json!("no lines")));
}

#[tokio::test]
async fn invalid_arguments_have_the_path_of_the_value() {
    let lines = json!([{ "sku": "a", "price": 1 }, { "sku": "b", "price": "2" }]);
    match call_shop("orders_total", json!({ "lines": lines })).await {
        Err(GuestError::Failure(failure)) => {
            assert_eq!(failure.code, code::INVALID);
            let problem = "at $.lines[1].price: expected a number, got a string";
            let text =
                format!("the arguments of `orders_total` do not match its schema: {problem}");
            assert_eq!(failure.message, text);
            assert_eq!(failure.details, Some(json!({ "violations": [problem] })));
        }
        other => panic!("no failure: {other:?}"),
    }
}

#[tokio::test]
async fn limits_apply_to_typed_functions() {
    let shop = load(guest::typed(SHOP, FUNCTIONS)).await.unwrap();
    let spin = guest::typed(
        "package a:b; world tools { export spin: func(); }",
        r#"(func (export "spin") (loop (br 0)))"#,
    );
    let spin = load(spin).await.unwrap();
    let short = Limits { output_bytes: 1, ..Limits::default() };
    let quick = Limits { cpu_ms: 50, ..Limits::default() };
    for (limit, ended) in [
        ("output", call(shop.as_ref(), "double_it", json!({ "number": 21 }), short).await),
        ("cpu", call(spin.as_ref(), "spin", json!({}), quick).await),
    ] {
        match ended {
            Err(GuestError::Limit(failure)) => assert_eq!(failure.details.unwrap()["limit"], limit),
            other => panic!("no limit ended the function: {other:?}"),
        }
    }
}

/// The guest passes one bit for each flag, and a flag takes many times as much memory in the host.
#[tokio::test]
async fn flags_in_a_list_count_with_their_memory_in_the_host() {
    let names: Vec<String> = (b'a'..=b'z').map(|name| char::from(name).to_string()).collect();
    let all = format!(
        "package a:b; world tools {{ flags f {{ {} }} export all: func(count: u32) -> list<f>; }}",
        names.join(", ")
    );
    let all = guest::typed(
        &all,
        r#"(func (export "all") (param $count i32) (result i32)
            (local $list i32)
            (local.set $list (i32.mul (memory.grow (i32.const 2)) (i32.const 65536)))
            (memory.fill (local.get $list) (i32.const 255)
                (i32.mul (local.get $count) (i32.const 4)))
            (i32.store (i32.const 512) (local.get $list))
            (i32.store (i32.const 516) (local.get $count))
            (i32.const 512))"#,
    );
    let all = load(all).await.unwrap();
    let of = |count: u32| call(all.as_ref(), "all", json!({ "count": count }), Limits::default());
    let output = of(2).await.unwrap();
    assert_eq!(output.structured, Some(json!([names, names])));
    match of(20_000).await {
        Err(GuestError::Limit(failure)) => assert_eq!(failure.details.unwrap()["limit"], "lift"),
        other => panic!("no limit ended the function: {other:?}"),
    }
}

#[tokio::test]
async fn trap_of_a_function_names_the_tool() {
    let bytes = guest::typed(
        "package a:b; world tools { export fail: func(); }",
        r#"(func (export "fail") (unreachable))"#,
    );
    let plugin = load(bytes).await.unwrap();
    match call(plugin.as_ref(), "fail", json!({}), Limits::default()).await {
        Err(GuestError::Trap(failure)) => {
            let start = "tool `fail` of plugin `guest` trapped";
            assert!(failure.message.starts_with(start), "{failure}");
        }
        other => panic!("no trap: {other:?}"),
    }
}

#[tokio::test]
async fn function_without_a_result_has_an_empty_output() {
    let bytes = guest::typed(
        "package a:b; world tools { export done: func() -> result; }",
        r#"(func (export "done") (result i32) (i32.const 0))"#,
    );
    let plugin = load(bytes).await.unwrap();
    let output = call(plugin.as_ref(), "done", json!({}), Limits::default()).await;
    assert_eq!(output, Ok(ToolOutput::default()));
}

/// One function yields before it returns. The other function waits for an empty waitable set, which
/// is a deadlock.
#[tokio::test]
async fn asynchronous_functions_are_tools() {
    let wit = "package a:b; world tools {
        export double-it: async func(number: u32) -> u32;
        export stall: async func();
    }";
    let imports = r#"
        (import "[export]$root" "[task-return]double-it" (func $return (param i32)))
        (import "$root" "[waitable-set-new]" (func $set (result i32)))"#;
    let functions = r#"
        (global $number (mut i32) (i32.const 0))
        (func (export "[async-lift]double-it") (param i32) (result i32)
            (global.set $number (local.get 0))
            (i32.const 1))
        (func (export "[callback][async-lift]double-it") (param i32 i32 i32) (result i32)
            (call $return (i32.shl (global.get $number) (i32.const 1)))
            (i32.const 0))
        (func (export "[async-lift]stall") (result i32)
            (i32.or (i32.const 2) (i32.shl (call $set) (i32.const 4))))
        (func (export "[callback][async-lift]stall") (param i32 i32 i32) (result i32)
            (unreachable))"#;
    let plugin = load(guest::typed_with_imports(wit, imports, functions)).await.unwrap();
    assert!(plugin.info().refused.is_empty(), "{:?}", plugin.info().refused);
    let double = tool(plugin.as_ref(), "double_it");
    assert_eq!(double.description, "`double-it: async func(number: u32) -> u32`");
    let arguments = json!({ "number": 21 });
    let output = call(plugin.as_ref(), "double_it", arguments, Limits::default()).await;
    assert_eq!(output.unwrap().structured, Some(json!(42)));
    match call(plugin.as_ref(), "stall", json!({}), Limits::default()).await {
        Err(GuestError::Trap(failure)) => {
            assert_eq!(failure.details.unwrap()["trap"], "AsyncDeadlock");
        }
        other => panic!("no trap: {other:?}"),
    }
}

#[tokio::test]
async fn documentation_of_the_component_is_in_descriptions() {
    let plugin = load(guest::typed_with_docs(SHOP, FUNCTIONS)).await.unwrap();
    let total = tool(plugin.as_ref(), "orders_total");
    assert_eq!(total.description, "Adds up the prices of lines.");
    let line = &total.arguments_schema["properties"]["lines"]["items"];
    assert_eq!(line["description"], "A line of an order.");
    assert_eq!(line["properties"]["sku"]["description"], "What to pay for.");
    let double = tool(plugin.as_ref(), "double_it");
    assert_eq!(double.description, "`double-it: func(number: u32) -> u32`");
}

/// The interface of the function does not name the type `size`.
#[tokio::test]
async fn documentation_of_a_field_type_of_another_interface_is_in_descriptions() {
    let wit = "
        package acme:shop;
        interface types {
            /// How large.
            enum size {
                /// Up to 3 kg.
                small,
                large,
            }
            /// What is sent.
            record parcel {
                /// Of the box.
                size: size,
            }
        }
        interface boxes {
            use types.{parcel};
            weight: func(parcel: parcel) -> u32;
        }
        world tools { export boxes; }";
    let functions = r#"
        (func (export "acme:shop/boxes#weight") (param i32) (result i32) (local.get 0))"#;
    let plugin = load(guest::typed_with_docs(wit, functions)).await.unwrap();
    let schema = &tool(plugin.as_ref(), "boxes_weight").arguments_schema;
    let parcel = &schema["properties"]["parcel"];
    assert_eq!(parcel["description"], "What is sent.");
    let size = "Of the box.\n\nHow large.\n\n`small`: Up to 3 kg.";
    assert_eq!(parcel["properties"]["size"]["description"], size);
}

/// The component imports the interface that defines the type. That interface has no functions.
#[tokio::test]
async fn functions_may_use_types_of_other_interfaces() {
    let wit = "
        package acme:shop;
        interface types { enum size { small, large } }
        interface boxes {
            use types.{size};
            weight: func(size: size) -> u32;
        }
        world tools {
            use types.{size};
            export boxes;
            export is-large: func(size: size) -> bool;
        }";
    let functions = r#"
        (func (export "is-large") (param i32) (result i32) (local.get 0))
        (func (export "acme:shop/boxes#weight") (param i32) (result i32)
            (i32.add (local.get 0) (i32.const 3)))"#;
    let plugin = load(guest::typed(wit, functions)).await.unwrap();
    let large = json!({ "size": "large" });
    let output = call(plugin.as_ref(), "is_large", large.clone(), Limits::default()).await;
    assert_eq!(output.unwrap().structured, Some(json!(true)));
    let output = call(plugin.as_ref(), "boxes_weight", large, Limits::default()).await;
    assert_eq!(output.unwrap().structured, Some(json!(4)));
}

#[tokio::test]
async fn functions_with_one_tool_name_are_both_refused() {
    let wit = "
        package acme:shop;
        world tools {
            export one:shop/ops;
            export two:shop/ops;
            export other: func();
        }
        package one:shop { interface ops { run: func(); } }
        package two:shop { interface ops { run: func(); } }";
    let functions = r#"
        (func (export "one:shop/ops#run")) (func (export "two:shop/ops#run"))
        (func (export "other"))"#;
    let plugin = load(guest::typed(wit, functions)).await.unwrap();
    assert_eq!(plugin.info().tools.len(), 1);
    let refused = &plugin.info().refused;
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|it| it.reason.contains("`ops_run`")), "{refused:?}");
}

#[tokio::test]
async fn component_without_a_function_that_can_be_a_tool_is_rejected() {
    let wit = "
        package acme:shop;
        interface files { resource file; open: func(path: string) -> file; }
        world tools { export files; }";
    let functions = r#"
        (func (export "acme:shop/files#open") (param i32 i32) (result i32) (unreachable))"#;
    let error = load_error(guest::typed(wit, functions)).await;
    assert_eq!(error.code, "missing-export");
    let reason = "`acme:shop/files.open`: its result contains a resource";
    assert!(error.message.contains(reason), "{error}");
    let types = r#"(component (type $size (enum "small")) (export "size" (type $size)))"#;
    let error = load_error(guest::component(types)).await;
    assert_eq!(error.code, "missing-export");
    assert!(error.message.contains("exports no function"), "{error}");
}

#[tokio::test]
async fn imported_function_of_another_package_is_an_unknown_import() {
    let text = r#"(component
        (import "acme:shop/disk" (instance (export "erase" (func))))
        (core module $m (func (export "run")))
        (core instance $i (instantiate $m))
        (func $run (canon lift (core func $i "run")))
        (export "run" (func $run)))"#;
    let error = load_error(guest::component(text)).await;
    assert_eq!(error.code, "unknown-import");
    assert!(error.message.contains("acme:shop/disk"), "{error}");
}
