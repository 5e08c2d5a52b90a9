//! The events around a step: clients see where a run is without looking at its state.

use wattle_plugin::prelude::{Failure, Value, emit, json};

/// Name of the event, and in its data, where clients look for it.
const PROGRESS: &str = "progress";

/// A step begins.
pub(crate) fn begins(step: &str) -> Result<(), Failure> {
    tell(step, "start", None)
}

/// A step ends.
pub(crate) fn ends(step: &str) -> Result<(), Failure> {
    tell(step, "end", None)
}

/// A step ends that a person was asked in.
pub(crate) fn ends_with(step: &str, answer: &Value) -> Result<(), Failure> {
    tell(step, "end", Some(answer))
}

fn tell(step: &str, phase: &str, answer: Option<&Value>) -> Result<(), Failure> {
    let mut data = json!({ "name": PROGRESS, "step": step, "phase": phase });
    if let Some(answer) = answer {
        data["answer"] = answer.clone();
    }
    emit::custom(PROGRESS, data)
}
