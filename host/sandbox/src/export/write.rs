//! Conversion of the writes that nodes and tools return.

use wattle_graph::event::Write;
use wattle_graph::id::ChannelName;
use wattle_run::ports::sandbox::GuestError;

use crate::bindings::wattle::plugin::types;
use crate::export::invalid_result;
use crate::guest_error::Callee;
use crate::json;

/// Maximum length of a name in a message, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Converts an update that a node or a tool returned to a write. An invalid channel name or value
/// becomes the error of the guest call.
pub(crate) fn into_write(update: types::Update, callee: Callee<'_>) -> Result<Write, GuestError> {
    let value = json::parse_output(&update.value).map_err(|error| {
        invalid_result(callee, &not_json("an update of", &update.channel), &error)
    })?;
    let channel = ChannelName::new(&update.channel).map_err(|error| {
        invalid_result(callee, "an update with an invalid channel name", &error)
    })?;
    Ok(Write { channel, value, overwrite: update.overwrite })
}

/// Returns the size of an update as the guest wrote it, in bytes.
pub(crate) fn update_size(update: &types::Update) -> usize {
    update.channel.len() + update.value.len()
}

/// Returns the message for a value that is not valid JSON.
pub(crate) fn not_json(what: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    format!("{what} `{name}` that is not a valid JSON document")
}
