//! Implements `log`: records messages.

use serde_json::Value;

use crate::log::Level;
use crate::testing::record::Logged;
use crate::testing::state::with;

pub(crate) fn write(level: Level, message: &str, fields: &[(&str, Value)]) {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let logged = Logged { level, message: message.to_owned(), fields };
    // Without a fake host, the message is dropped, so that pure functions that log remain testable.
    let _ = with(|state| state.notes.logged.push(logged));
}
