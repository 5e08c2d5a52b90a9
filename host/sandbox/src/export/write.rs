//! Conversion of the writes that nodes and tools return.

use std::fmt;

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
    let value = json.parse(&update.value, NamedText::new("an update of", &update.channel))?;
    let channel = ChannelName::new(&update.channel).map_err(|error| {
        invalid_result(json.callee(), "an update with an invalid channel name", &error)
    })?;
    Ok(Write { channel, value, overwrite: update.overwrite })
}

/// Returns the size of an update as the guest wrote it, in bytes.
pub(crate) fn update_size(update: &types::Update) -> usize {
    update.channel.len() + update.value.len()
}

/// The name of a text in messages.
pub(crate) struct NamedText<'a> {
    what: &'a str,
    name: &'a str,
}

impl<'a> NamedText<'a> {
    /// Names the text `what` of the channel or node `name`, such as an update.
    pub(crate) fn new(what: &'a str, name: &'a str) -> Self {
        Self { what, name }
    }
}

impl fmt::Display for NamedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name } = self;
        write!(f, "{what} `{name:.MAX_NAME_CHARS$}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_text_is_cut() {
        let name = |length: usize| NamedText::new("an update of", &"ü".repeat(length)).to_string();
        assert_eq!(name(2), "an update of `üü`");
        assert_eq!(name(MAX_NAME_CHARS + 1), name(MAX_NAME_CHARS));
    }
}
