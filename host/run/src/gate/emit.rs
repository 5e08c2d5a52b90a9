//! Events that a guest emits.

use serde_json::{Value, json};
use wattle_graph::event::{Custom, EventKind, Progress};
use wattle_graph::failure::{Failure, code};

use crate::gate::Gate;
use crate::gate::entry::CallLookup;
use crate::gate::unwind::CallError;
use crate::hostcall::emit::{CUSTOM, Emission, PROGRESS};
use crate::hostcall::request::CallRequest;
use crate::json::{approx_bytes, check_depth};
use crate::limit;

impl Gate {
    /// Emits an event of the guest. A re-executed node does not repeat the events that it emitted
    /// before: they have call numbers and journal entries. An event of a guest without a task, such
    /// as a web handler or a node that a client calls, goes to the operator's log, and counts there
    /// as a log message.
    ///
    /// # Errors
    ///
    /// `invalid` for an invalid name, `limit` if the event is too large, both of which count as a
    /// call; [`CallError::Unwind`] if the guest must be unwound.
    pub async fn emit(&self, emission: Emission) -> Result<(), CallError> {
        let bytes = check_emission(&emission).map_err(|failure| self.refuse(failure))?;
        self.budget.charge_emission()?;
        let Some(task) = &self.task else {
            self.count_call()?;
            if self.admit_log(bytes) {
                tracing::info!(app = %self.caller().app, ?emission, "event of a web handler");
            }
            return Ok(());
        };
        let (_, lookup) = self.enter(task, request(&emission))?;
        task.heartbeat.on_emit();
        let CallLookup::Unrecorded(entry) = lookup else { return Ok(()) };
        task.check_log_size().await?;
        let (id, node) = (task.task.clone(), task.node.clone());
        task.log.push(match emission {
            Emission::Custom { name, data } => {
                EventKind::Custom(Custom { task: id, node, name, data })
            }
            Emission::Progress { message, fraction } => {
                EventKind::Progress(Progress { task: id, node, message, fraction })
            }
        });
        entry.record(Ok(Value::Null));
        task.log.flush().await;
        Ok(())
    }

    /// Counts a call that is refused before it gets a number, so that a guest cannot repeat such
    /// calls without limit. Returns the error for the guest.
    pub fn refuse(&self, failure: Failure) -> CallError {
        match self.count_call() {
            Ok(()) => failure.into(),
            Err(unwind) => unwind.into(),
        }
    }
}

fn request(emission: &Emission) -> CallRequest {
    match emission {
        Emission::Custom { name, data } => CallRequest::of_event(CUSTOM, json!([name, data])),
        Emission::Progress { message, fraction } => {
            CallRequest::of_event(PROGRESS, json!([message, fraction]))
        }
    }
}

/// Maximum length of the name of an emitted event, in bytes. The contract documents this limit.
const EVENT_NAME_BYTES: usize = 64;

/// Checks an event and returns its size in bytes.
fn check_emission(emission: &Emission) -> Result<usize, Failure> {
    let size = match emission {
        Emission::Custom { name, data } => {
            let good = (1..=EVENT_NAME_BYTES).contains(&name.len())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
            if !good {
                let name: String = name.chars().take(EVENT_NAME_BYTES).collect();
                return Err(Failure::new(
                    code::INVALID,
                    format!("`{name}` is not an event name; use 1 to 64 of `[a-zA-Z0-9_.-]`"),
                ));
            }
            check_depth("the event", data)?;
            approx_bytes(data) as usize
        }
        Emission::Progress { message, .. } => message.len(),
    };
    if size <= limit::EVENT_BYTES {
        return Ok(size);
    }
    Err(Failure::new(
        code::LIMIT,
        format!("an event of {size} bytes is larger than the limit of {}", limit::EVENT_BYTES),
    ))
}
