//! Cases: inputs of an app, answers to its interrupts, and the expected results of the runs.

pub(crate) mod calls;
pub(crate) mod case;
pub(crate) mod ctrl_c;
pub(crate) mod date;
mod file_refs;
mod matcher;
mod pointer;
pub(crate) mod ports;
pub(crate) mod runner;
pub(crate) mod verdict;
pub(crate) mod wait;
