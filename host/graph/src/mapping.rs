//! Projections that an app defines: the event log as a stream in the app's own format, and as
//! files.
//!
//! An app defines a projection in TOML. This module applies the rules event by event and performs
//! no I/O. An expression that fails yields `null`. A projection fails only if its expressions or
//! its messages exceed their [budget](ProjectionBudget).

mod budget;
mod file;
mod stream;
mod template;

pub use budget::ProjectionBudget;
pub use file::{FileProjection, ProjectedFile, RunFileProjector};
pub use stream::{StreamMessage, StreamProjection, StreamProjector};

use serde::Deserialize;
use serde_json::Value;

use crate::event::Event;

/// Values that expressions can use in addition to the events.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Value of the variable `app`.
    pub app: Value,
    /// Value of the variable `thread`.
    pub thread: Value,
    /// Value of the variable `run`.
    pub run: Value,
    /// Value of the variable `settings`, the settings of the app.
    pub settings: Value,
}

/// Values that expressions can use in addition to one event.
#[derive(Clone, Copy, Debug)]
pub struct EventContext<'a> {
    /// Time of the event in the host's time zone, as RFC 3339 with second precision.
    pub time: &'a str,
    /// Channel values before the event, as an object, or `null`.
    pub state: &'a Value,
}

/// Returns the event as JSON, as the variable `event` of expressions.
fn event_json(event: &Event) -> Value {
    serde_json::to_value(event.shown()).unwrap_or_default()
}

/// Returns a string field of an event.
fn field<'v>(document: &'v Value, name: &str) -> Option<&'v str> {
    document.get(name)?.as_str()
}

/// One string, or a list of strings.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(word) => vec![word],
            Self::Many(words) => words,
        }
    }
}

#[cfg(test)]
mod tests;
