//! Tests of the plugin, without a host. `wattle build` and then `cargo test` run them.

use wattle_plugin::testing;

use super::*;

#[test]
fn words_are_counted() {
    let arguments = json!({ "text": " two words " });
    let output = testing::call_tool::<count_words>(&ToolContext::default(), &arguments).unwrap();
    assert_eq!(output.structured, Some(json!({ "words": 2 })));
}
