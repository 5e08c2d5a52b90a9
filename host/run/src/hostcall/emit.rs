//! A guest's own events and messages.

use serde_json::Value;

/// What a guest tells the world without waiting for an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Emission {
    /// An event of its own.
    Custom {
        /// 1 to 64 of `[a-zA-Z0-9_.-]`.
        name: String,
        /// Its data.
        data: Value,
    },
    /// How far it is.
    Progress {
        /// A sentence.
        message: String,
        /// Share done, from 0 to 1.
        fraction: Option<f64>,
    },
}
