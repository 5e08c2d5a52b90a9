//! The step that runs, and its node-I/O record.

use wattle_plugin::prelude::{Context, Failure, Serialize, Value, blob, emit, json};

use crate::owner::Owner;
use crate::setting;

/// Name of the event that the host projects into files.
const EVENT: &str = "node_io";

/// Size in bytes above which an input or output becomes a blob. An event holds 64 KiB in total.
const INLINE_BYTES: usize = 24 << 10;

/// The step that runs.
pub(crate) struct Step<'a> {
    pub(crate) name: &'static str,
    pub(crate) context: &'a Context,
    pub(crate) owner: Owner,
}

impl Step<'_> {
    /// Emits the node-I/O record of the step.
    pub(crate) fn record<I: Serialize, O: Serialize>(
        &self,
        input: &I,
        output: Option<&O>,
        error: Option<&str>,
    ) -> Result<(), Failure> {
        let document = json!({
            "session_id": self.context.thread_id,
            "admin_id": self.owner.admin_id,
            "step_name": self.name,
            "status": if error.is_none() { "success" } else { "failed" },
            "error_message": error,
            "timestamp": setting::now()?.iso(),
            "input": small(serde_json::to_value(input)?)?,
            "output": output.map(|it| small(serde_json::to_value(it)?)).transpose()?,
        });
        emit::custom(EVENT, document)
    }
}

/// Returns the value, or `{"$blob": reference}` to its JSON if it is too large for an event.
fn small(value: Value) -> Result<Value, Failure> {
    let text = value.to_string();
    if text.len() <= INLINE_BYTES {
        return Ok(value);
    }
    let blob = blob::put(text.as_bytes(), "application/json")?;
    Ok(json!({ "$blob": blob }))
}
