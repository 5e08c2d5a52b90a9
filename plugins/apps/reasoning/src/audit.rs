//! The audit trail of a session: rows with numbers without gaps.
//!
//! The rows of runs are a projection of the event log of the session's thread. Nodes therefore do
//! not write rows, a crash loses none, and no call of a model or tool is missing. Endpoints append
//! rows for actions outside of runs.

mod fold;
mod payload;
mod table;

use wattle_plugin::prelude::Value;

pub(crate) use self::fold::{Folded, RunEnd, fold};
pub(crate) use self::table::{TraceEvent, Turns, append, list};

/// A row without its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Run of the row; `None` for an action of an endpoint.
    pub(crate) run: Option<String>,
    /// Step of the work, such as `discovery` or `llm`.
    pub(crate) step: &'static str,
    pub(crate) event_type: String,
    pub(crate) payload: Value,
    pub(crate) at_ms: i64,
}

impl Row {
    /// Creates a row for an action of an endpoint.
    pub(crate) fn of_endpoint(
        step: &'static str,
        event_type: &str,
        payload: Value,
        at_ms: i64,
    ) -> Self {
        Self { run: None, step, event_type: event_type.to_owned(), payload, at_ms }
    }
}
