//! Values of typed components. The first byte selects the direction, the rest is JSON for a
//! function, or the memory from which a function returns a value.
//!
//! What a function returns is JSON that the same function takes, and takes unchanged. JSON that
//! does not fit is refused with the path of the part that is wrong.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::{GuestError, Plugin, PluginToolCall, Sandbox as _};

use super::component::sandbox;
use crate::{guest, world};

/// Calls a function with JSON, or reads the value of a function.
pub fn run(bytes: &[u8]) {
    let Some((direction, rest)) = bytes.split_first() else { return };
    if direction % 2 == 0 {
        let Ok(arguments) = serde_json::from_slice(rest) else { return };
        if let Some(value) = same(arguments) {
            assert_eq!(same(json!({ "v": value })).as_ref(), Some(&value));
        }
    } else if let Some(value) = read(rest)
        // The memory of the guest may be too small for its value.
        && let Some(again) = same(json!({ "v": value }))
    {
        assert_eq!(again, value);
    }
}

/// Passes a value through a function. Returns `None` if the arguments are refused, or the guest has
/// no memory for them.
fn same(arguments: Value) -> Option<Value> {
    let failure = match call("ops_same", arguments) {
        Ok(value) => return Some(value),
        Err(failure) => failure?,
    };
    let is_refused = failure.code == code::LIMIT || failure.message.contains("schema: at $");
    assert!(is_refused, "{failure}");
    None
}

/// Returns the value that a function returns from an image of memory, if it is one.
fn read(image: &[u8]) -> Option<Value> {
    let image = guest::image(image);
    // The guest finds the image between quotes, as in JSON.
    call("ops_read", json!({ "image": image.to_string() })).ok()
}

/// Calls a function. Returns its failure, or `None` if it trapped or exceeded a limit.
fn call(tool: &str, arguments: Value) -> Result<Value, Option<Failure>> {
    static PLUGIN: OnceLock<Arc<dyn Plugin>> = OnceLock::new();
    let plugin = PLUGIN.get_or_init(|| {
        let name = PluginName::new("guest").expect("the name is valid");
        let loaded = crate::wait(sandbox().load(&name, guest::typed()));
        loaded.unwrap_or_else(|error| panic!("{error}"))
    });
    let call = PluginToolCall {
        tool: tool.to_owned(),
        call_id: "c".to_owned(),
        thread: None,
        task: None,
        tenant: None,
        violations: Vec::new(),
        arguments,
        state: None,
        grants: Arc::default(),
    };
    match crate::wait(plugin.call_tool(call, world::gate())) {
        Ok(output) => Ok(output.structured.expect("the function has a result")),
        Err(GuestError::Failure(failure)) => Err(Some(failure)),
        Err(GuestError::Trap(_) | GuestError::Limit(_)) => Err(None),
        Err(other) => panic!("the host failed: {other:?}"),
    }
}
