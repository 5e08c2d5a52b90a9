//! The audit trail: rows that say what happened in a session, in an order without gaps.
//!
//! It is a projection of the event log of the session's thread. So no node writes to it, a crash
//! loses nothing, and every call of a model or tool is in it because it was made.

mod fold;
mod payload;
mod secret;
mod table;

use wattle_plugin::prelude::Value;

pub(crate) use self::fold::{Ended, Folded, fold};
pub(crate) use self::table::{Turns, append, list};

/// One row before it has its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The run that it comes from; none for what an endpoint did by itself.
    pub(crate) run: Option<String>,
    /// The part of the work, such as `discovery` or `llm`.
    pub(crate) step: &'static str,
    pub(crate) event_type: String,
    pub(crate) payload: Value,
    pub(crate) at_ms: i64,
}

impl Row {
    /// Something that an endpoint did by itself.
    pub(crate) fn of_endpoint(
        step: &'static str,
        event_type: &str,
        payload: Value,
        at_ms: i64,
    ) -> Self {
        Self { run: None, step, event_type: event_type.to_owned(), payload, at_ms }
    }
}
