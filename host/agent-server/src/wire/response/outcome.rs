//! The result of a run for a client that waited for it.

use serde_json::{Map, Value, json};
use wattle_project::agent_server::document::{ERROR, INTERRUPT, Interrupt};
use wattle_project::agent_server::failure::error_of;
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome};

use super::interrupt::interrupt;

/// Returns the values of a run that has ended, with its pending interrupts. The values of a run at
/// a breakpoint do not contain the key of pending interrupts, because clients treat the key as an
/// interrupt even if its list is empty. For a failed run, returns the failure in place of the
/// values and not an HTTP error, because the request for the result succeeded.
pub fn run_values(thread_info: &ThreadInfo, ended: &EndedRun) -> Value {
    match &ended.outcome {
        RunOutcome::Failed { failure } => {
            Value::Object(Map::from_iter([(ERROR.to_owned(), error_of(failure))]))
        }
        RunOutcome::Interrupted { interrupts, .. } => {
            let pending: Vec<Interrupt> = interrupts.iter().map(interrupt).collect();
            let mut values = thread_info.values(&ended.state);
            if !pending.is_empty()
                && let Value::Object(values) = &mut values
            {
                values.insert(INTERRUPT.to_owned(), json!(pending));
            }
            values
        }
        RunOutcome::Completed | RunOutcome::Cancelled => thread_info.values(&ended.state),
    }
}
