//! Events at the start and the end of a step, which show clients the progress of a run.

use wattle_plugin::prelude::{Failure, Value, emit, json};

/// Name of the event. The data of the event repeats it, because clients read it there.
const PROGRESS: &str = "progress";

/// Emits the start of a step.
pub(crate) fn begins(step: &str) -> Result<(), Failure> {
    tell(step, "start", None)
}

/// Emits the end of a step.
pub(crate) fn ends(step: &str) -> Result<(), Failure> {
    tell(step, "end", None)
}

/// Emits the end of a step that raised an interrupt, with the answer.
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
