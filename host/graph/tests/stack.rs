//! Tests that the depth limits keep validation and the parsing of documents within the stack of a
//! thread. They are integration tests because the crate itself starts no threads.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use serde_json::json;
use wattle_graph::check::{AnyPlugin, check_toml};
use wattle_graph::mapping::StreamProjection;
use wattle_graph::schema::Schema;

#[test]
fn deeply_nested_schemas_fit_a_small_stack() {
    // The schema is as deep as the limits allow, with references and combinations at each level.
    let schema = json!({
        "anyOf": [{ "allOf": [{ "oneOf": [{ "properties": { "x": { "$ref": "#" } } }] }] }],
    });
    let work = move || {
        let schema = Schema::compile(&schema).unwrap();
        let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "x": inner }));
        for levels in [80, 99, 100, 120] {
            let _ = schema.validate(&deep(levels));
        }
        drop(schema.validate(&json!({ "x": 1 })));
    };
    on_a_small_stack(work);
}

#[test]
fn deeply_nested_documents_are_refused_before_they_are_parsed() {
    // The parser accepts 80 inline tables inside one another, and keys of 80 parts.
    let key = vec!["a"; 80].join(".");
    let deep = (0..79).fold("1".to_owned(), |inner, _| format!("{{ {key} = {inner} }}"));
    on_a_small_stack(move || {
        let refused = |text: &str| {
            let problems = check_toml("graph.toml", text, &AnyPlugin).unwrap_err();
            assert!(problems[0].message.contains("nested deeper than 100"), "{problems:?}");
        };
        refused(&format!("x = {deep}"));
        // The parser drops what it has read of a document with a syntax error.
        refused(&format!("x = {deep}\n="));
        let error = StreamProjection::parse(&format!("constants = {deep}")).unwrap_err();
        assert!(error.contains("nested deeper than 100"), "{error}");
    });
}

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap();
    thread.join().unwrap();
}
