//! Reasons why a host call returns no result and why a guest call ends without an outcome.

use wattle_graph::failure::Failure;
use wattle_graph::id::InterruptId;

/// Reason why a guest is unwound.
#[derive(Clone, Debug, PartialEq)]
pub enum Unwind {
    /// The guest raised an interrupt that has no answer yet.
    Suspended(InterruptId),
    /// A call of the guest differs from its journal.
    Divergence(Failure),
    /// The guest exceeded a budget of host calls.
    Limit(Failure),
    /// The run was cancelled.
    Cancelled,
    /// A drain was requested, and a subgraph that runs inside of the task has stopped.
    Drained,
    /// The log cannot be written, so the task must not continue.
    LogLost(Failure),
}

/// Error of a host call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// A failure that the guest receives.
    Failure(Failure),
    /// The guest must be unwound: the sandbox traps it and reports [`GuestError::Unwound`].
    Unwind(Unwind),
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Unwind> for CallError {
    fn from(unwind: Unwind) -> Self {
        Self::Unwind(unwind)
    }
}

/// Reason why a guest call ended without an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestError {
    /// The guest returned a failure.
    Failure(Failure),
    /// The guest trapped; the failure has code `trap`.
    Trap(Failure),
    /// The guest exceeded a limit; the failure has code `limit` and names the limit in
    /// `details.limit`.
    Limit(Failure),
    /// The gate unwound the guest.
    Unwound(Unwind),
    /// The host could not run the guest (pool exhausted, component lost).
    Host(Failure),
}

impl From<Failure> for GuestError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}
