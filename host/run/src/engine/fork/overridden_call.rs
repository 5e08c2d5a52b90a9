//! The host call whose result a fork overrides.

use serde_json::Value;
use wattle_graph::event::Called;
use wattle_graph::failure::Failure;
use wattle_graph::id::Namespace;

/// A host call, with the result that overrides its recorded result.
pub(super) struct OverriddenCall {
    /// Sequence number of the journal entry.
    pub(super) seq: u64,
    /// Namespace of the graph that made the call.
    pub(super) namespace: Namespace,
    /// The journal entry.
    pub(super) called: Called,
    /// The overriding result.
    pub(super) result: Result<Value, Failure>,
    /// Time of the fork, milliseconds since 1970.
    pub(super) at_ms: i64,
}
