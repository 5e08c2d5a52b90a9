//! A host call of the past whose answer a fork replaces.

use serde_json::Value;
use wattle_graph::event::Called;
use wattle_graph::failure::Failure;
use wattle_graph::id::Namespace;

/// The call whose answer is replaced.
pub(super) struct Replaced {
    /// Sequence number of its entry.
    pub(super) seq: u64,
    /// The graph that made it.
    pub(super) namespace: Namespace,
    /// The entry.
    pub(super) called: Called,
    /// The answer that it gets.
    pub(super) result: Result<Value, Failure>,
    /// Milliseconds since 1970.
    pub(super) at_ms: i64,
}
