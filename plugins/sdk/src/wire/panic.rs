//! The message of a panic. The host makes it the cause in the failure of the call.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::log as raw;

/// The level of the message, which tells it from others.
const LEVEL: &str = "panic";

/// Replaces the hook of the standard library, which writes to a stderr that a guest does not have.
/// Each export calls this function first, because a guest has no `main`.
pub(crate) fn report_panics() {
    static SET: Once = Once::new();
    SET.call_once(|| panic::set_hook(Box::new(report)));
}

/// Writes the message. A panic of this function ends the guest at once.
fn report(info: &PanicHookInfo<'_>) {
    let text = info.payload_as_str().unwrap_or("the payload of the panic is not a text");
    let mut fields = Vec::new();
    if let Some(place) = info.location() {
        fields.push(("file".to_owned(), Value::from(place.file()).to_string()));
        fields.push(("line".to_owned(), place.line().to_string()));
        fields.push(("column".to_owned(), place.column().to_string()));
    }
    raw::write(&raw::Level::Other(LEVEL.to_owned()), text, &fields);
}
