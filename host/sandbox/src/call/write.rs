//! Writes to channels, as nodes and tools answer them.

use wattle_graph::event::Write;
use wattle_graph::id::ChannelName;
use wattle_run::ports::sandbox::Ended;

use crate::bindings::wattle::plugin::types;
use crate::call::bad_answer;
use crate::ended::Place;
use crate::json;

/// Characters of a name that a message repeats.
const NAME_CHARS: usize = 64;

/// Reads a write of a guest.
pub(crate) fn from_guest(update: types::Update, place: Place<'_>) -> Result<Write, Ended> {
    let value = json::read(&update.value)
        .map_err(|error| bad_answer(place, &not_json("update of", &update.channel), &error))?;
    let channel = ChannelName::new(&update.channel)
        .map_err(|error| bad_answer(place, "an update of no channel", &error))?;
    Ok(Write { channel, value, overwrite: update.overwrite })
}

/// Its size as the guest wrote it.
pub(crate) fn bytes(update: &types::Update) -> usize {
    update.channel.len() + update.value.len()
}

/// What a guest answered with, for messages: text that should have been a document.
pub(crate) fn not_json(what: &str, name: &str) -> String {
    let name: String = name.chars().take(NAME_CHARS).collect();
    format!("an {what} `{name}` that is not a valid JSON document")
}
