//! The native implementation of the imports by the fake host of the current thread. It has the same
//! functions as the implementation for guests.

pub(crate) mod blob;
pub(crate) mod clock;
pub(crate) mod emit;
pub(crate) mod http;
pub(crate) mod interrupt;
pub(crate) mod llm;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod random;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod sql;
pub(crate) mod tenants;
pub(crate) mod tools;

use crate::testing::state::{State, with};

/// Accesses the fake host for an import that cannot return a failure. Panics if there is no fake
/// host.
fn infallible<R>(work: impl FnOnce(&mut State) -> R) -> R {
    match with(work) {
        Ok(answer) => answer,
        Err(failure) => panic!("{failure}"),
    }
}
