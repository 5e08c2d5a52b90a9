//! Errors of host functions: a failure for the guest, or a trap.

use wattle_graph::failure::Failure;
use wattle_run::gate::unwind::{Stop, Unwind};

use crate::bindings::wattle::plugin::types;

/// The error of a host function.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A failure that the guest receives.
    Answer(Failure),
    /// A trap that ends the guest.
    Trap(Trapped),
}

/// The reason why the host ends a guest from inside a host function. It passes through wasmtime as
/// the error of the call, and [`crate::ended`] finds it there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trapped {
    /// The gate unwinds the guest.
    #[error("the gate unwound the guest")]
    Unwind(Unwind),
    /// There is no gate: the guest describes itself, or is a reducer.
    #[error("`{0}` is not available here")]
    Forbidden(&'static str),
    /// The guest has reached its limit of CPU time.
    #[error("the guest reached its limit of CPU time")]
    OutOfTime,
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Answer(failure)
    }
}

impl From<Unwind> for Halt {
    fn from(unwind: Unwind) -> Self {
        Self::Trap(Trapped::Unwind(unwind))
    }
}

impl From<Trapped> for Halt {
    fn from(trapped: Trapped) -> Self {
        Self::Trap(trapped)
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failure(failure) => failure.into(),
            Stop::Unwind(unwind) => unwind.into(),
        }
    }
}

impl Halt {
    /// Returns the failure for the guest, or the error that ends the guest.
    pub(crate) fn settle(self) -> wasmtime::Result<types::Failure> {
        match self {
            Self::Answer(failure) => Ok(failure.into()),
            Self::Trap(trapped) => Err(trapped.into()),
        }
    }
}
