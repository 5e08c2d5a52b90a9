//! Events that a guest emits.

use serde_json::Value;

/// Function that emits an event that the guest defines.
pub const CUSTOM: &str = "emit.custom";

/// Function that reports the progress of a task.
pub const PROGRESS: &str = "emit.progress";

/// All functions of this module. None of them has an effect outside of the log.
pub(crate) const FUNCTIONS: [&str; 2] = [CUSTOM, PROGRESS];

/// An event that a guest emits. The host returns nothing for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Emission {
    /// An event that the guest defines.
    Custom {
        /// Name of the event: 1 to 64 of `[a-zA-Z0-9_.-]`.
        name: String,
        /// Data of the event.
        data: Value,
    },
    /// Progress of the task.
    Progress {
        /// One sentence.
        message: String,
        /// Completed share, from 0 to 1.
        fraction: Option<f64>,
    },
}
