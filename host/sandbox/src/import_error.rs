//! Errors of host functions: a failure for the guest, or a trap.

use wattle_graph::failure::Failure;
use wattle_run::gate::unwind::{CallError, Unwind};

/// The error of a host function.
#[derive(Debug)]
pub(crate) enum ImportError {
    /// A failure that the guest receives.
    Failure(Failure),
    /// A trap that ends the guest.
    Trap(TrapReason),
}

/// The reason why the host ends a guest from inside a host function. wasmtime returns this reason
/// as the error of the call, and [`crate::guest_error`] downcasts that error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrapReason {
    /// The gate unwinds the guest.
    #[error("the gate unwound the guest")]
    Unwind(Unwind),
    /// The guest has no gate and must not make host calls: it describes itself, or it is a reducer.
    #[error("`{0}` is not available to a guest without a gate")]
    NoGate(&'static str),
    /// The guest calls a function of an interface that guests export, and import only for its
    /// types.
    #[error("`{0}` is a function that guests export")]
    ExportOnly(&'static str),
    /// The guest asks WASI for more random bytes than this limit.
    #[error("the guest reached its limit of {0} random bytes")]
    RandomLimit(u64),
    /// The guest has reached its limit of CPU time.
    #[error("the guest reached its limit of CPU time")]
    CpuLimit,
}

impl From<Failure> for ImportError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Unwind> for ImportError {
    fn from(unwind: Unwind) -> Self {
        Self::Trap(TrapReason::Unwind(unwind))
    }
}

impl From<TrapReason> for ImportError {
    fn from(trapped: TrapReason) -> Self {
        Self::Trap(trapped)
    }
}

impl From<CallError> for ImportError {
    fn from(stop: CallError) -> Self {
        match stop {
            CallError::Failure(failure) => failure.into(),
            CallError::Unwind(unwind) => unwind.into(),
        }
    }
}
