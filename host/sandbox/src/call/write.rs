//! Conversion of the writes that nodes and tools return.

use wattle_graph::event::Write;
use wattle_graph::id::ChannelName;
use wattle_run::ports::sandbox::Ended;

use crate::bindings::wattle::plugin::types;
use crate::call::bad_answer;
use crate::ended::Place;
use crate::json;

/// Maximum length of a name in a message, in characters.
const NAME_CHARS: usize = 64;

/// Converts an update that a node or a tool returned to a write. An invalid channel name or value
/// becomes the error of the guest call.
pub(crate) fn from_guest(update: types::Update, place: Place<'_>) -> Result<Write, Ended> {
    let value = json::read(&update.value)
        .map_err(|error| bad_answer(place, &not_json("an update of", &update.channel), &error))?;
    let channel = ChannelName::new(&update.channel)
        .map_err(|error| bad_answer(place, "an update with an invalid channel name", &error))?;
    Ok(Write { channel, value, overwrite: update.overwrite })
}

/// Returns the size of an update as the guest wrote it, in bytes.
pub(crate) fn bytes(update: &types::Update) -> usize {
    update.channel.len() + update.value.len()
}

/// Returns the message for a value that is not valid JSON.
pub(crate) fn not_json(what: &str, name: &str) -> String {
    let name: String = name.chars().take(NAME_CHARS).collect();
    format!("{what} `{name}` that is not a valid JSON document")
}
