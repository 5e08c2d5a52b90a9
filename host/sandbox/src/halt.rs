//! How a host function ends other than by an answer: a failure for the guest, or a trap.

use wattle_graph::failure::Failure;
use wattle_run::gate::unwind::{Stop, Unwind};

use crate::bindings::wattle::plugin::types;

/// What a host function gives instead of an answer.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A failure for the guest to deal with.
    Answer(Failure),
    /// The guest is ended.
    Trap(Trapped),
}

/// Why the host ends a guest from inside a host function. It travels through wasmtime as the
/// error of the call and is found again in [`crate::ended`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trapped {
    /// The gate wants the guest unwound.
    #[error("the gate unwound the guest")]
    Unwind(Unwind),
    /// There is no gate: the guest describes itself, or reduces.
    #[error("`{0}` must not be used here")]
    Forbidden(&'static str),
    /// The guest used up its time.
    #[error("the guest used up its time")]
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
    /// The guest's failure, or the error that ends the guest.
    pub(crate) fn settle(self) -> wasmtime::Result<types::Failure> {
        match self {
            Self::Answer(failure) => Ok(failure.into()),
            Self::Trap(trapped) => Err(trapped.into()),
        }
    }
}
