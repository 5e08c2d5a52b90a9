//! The event log in other forms: as an app's own stream, and as files.
//!
//! An app describes a projection in TOML; the rules are applied here, event by event, without
//! touching anything. A projection cannot fail: what an expression cannot say is `null`.

mod file;
mod stream;
mod template;

pub use file::{FileMapping, Projected, RunFiles};
pub use stream::{Message, RunStream, StreamMapping};

use serde::Deserialize;
use serde_json::Value;

use crate::event::Event;

/// What a projection knows besides the events.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The app.
    pub app: Value,
    /// The thread.
    pub thread: Value,
    /// The run.
    pub run: Value,
    /// The app's settings.
    pub settings: Value,
}

/// What an event is seen with.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// When it happened, in the host's time zone, as RFC 3339 to the second.
    pub time: &'a str,
    /// Channel values before it, an object, or `null`.
    pub state: &'a Value,
}

/// An event as expressions see it.
fn document(event: &Event) -> Value {
    serde_json::to_value(event.shown()).unwrap_or_default()
}

/// The text of a field of an event.
fn field<'v>(document: &'v Value, name: &str) -> Option<&'v str> {
    document.get(name)?.as_str()
}

/// One word, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(word) => vec![word],
            Self::Many(words) => words,
        }
    }
}

#[cfg(test)]
mod tests;
