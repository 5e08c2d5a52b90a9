//! Conversion of the writes that nodes and tools return.

use wattle_graph::event::Write;
use wattle_graph::id::ChannelName;
use wattle_run::ports::sandbox::GuestError;

use crate::bindings::wattle::plugin::types;
use crate::export::invalid_result;
use crate::export::output_json::OutputJson;

/// Maximum length of a name in a message, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Converts an update that a node or a tool returned to a write. An invalid channel name or value
/// becomes the error of the guest call.
pub(crate) fn into_write(
    update: types::Update,
    json: &OutputJson<'_>,
) -> Result<Write, GuestError> {
    let value = json.parse(&update.value, &named("an update of", &update.channel))?;
    let channel = ChannelName::new(&update.channel).map_err(|error| {
        invalid_result(json.callee(), "an update with an invalid channel name", &error)
    })?;
    Ok(Write { channel, value, overwrite: update.overwrite })
}

/// Returns the size of an update as the guest wrote it, in bytes.
pub(crate) fn update_size(update: &types::Update) -> usize {
    update.channel.len() + update.value.len()
}

/// Returns the name of a text in messages.
pub(crate) fn named(what: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    format!("{what} `{name}`")
}
