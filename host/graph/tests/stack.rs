//! Tests that the depth limits keep validation within the stack of a thread. They are integration
//! tests because the crate itself starts no threads.

use serde_json::json;
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
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap();
    thread.join().unwrap();
}
