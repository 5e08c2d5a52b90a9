//! Implements `emit`: records events.

use serde_json::Value;

use crate::failure::Failure;
use crate::testing::state::with;

pub(crate) fn custom(name: &str, data: Value) -> Result<(), Failure> {
    with(|state| state.notes.emitted.push((name.to_owned(), data)))
}

pub(crate) fn progress(message: &str, fraction: Option<f64>) -> Result<(), Failure> {
    with(|state| state.notes.progress.push((message.to_owned(), fraction)))
}
