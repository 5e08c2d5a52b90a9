//! The imports, answered by the present thread's fake host: the native counterpart of what a
//! guest calls, with the same functions.

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

/// For imports that cannot fail: a test without a host stops here.
fn infallible<R>(work: impl FnOnce(&mut State) -> R) -> R {
    match with(work) {
        Ok(answer) => answer,
        Err(failure) => panic!("{failure}"),
    }
}
