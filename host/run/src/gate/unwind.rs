//! Why a guest gets no answer, and why a guest call ends without an outcome.

use wattle_graph::failure::Failure;
use wattle_graph::id::InterruptId;

/// Why a guest is unwound.
#[derive(Clone, Debug, PartialEq)]
pub enum Unwind {
    /// It asked a question that has no answer yet.
    Suspended(InterruptId),
    /// It asked for something else than its journal says.
    Divergence(Failure),
    /// It used up a budget of host calls.
    Limit(Failure),
    /// Its run was cancelled.
    Cancelled,
    /// Its run was asked to stand still, and the graph that the guest's task is does.
    Drained,
    /// The log could not be written, so nothing more may happen.
    Log(Failure),
}

/// What a host call gives instead of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// A failure for the guest to deal with.
    Failure(Failure),
    /// The guest must be unwound: the sandbox traps it and reports `Ended::Unwound`.
    Unwind(Unwind),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Unwind> for Stop {
    fn from(unwind: Unwind) -> Self {
        Self::Unwind(unwind)
    }
}

/// Why a guest call ended without an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The guest answered with a failure.
    Failure(Failure),
    /// The guest trapped; the failure has code `trap`.
    Trap(Failure),
    /// A limit ended it; the failure has code `limit` and names the limit in `details.limit`.
    Limit(Failure),
    /// The gate unwound it.
    Unwound(Unwind),
    /// The host could not run it (pool exhausted, component lost).
    Host(Failure),
}
