//! Cases: inputs of an app with answers to its interrupts, and what is expected of their runs.

mod attach;
pub(crate) mod calls;
pub(crate) mod case;
pub(crate) mod day;
pub(crate) mod interrupt;
mod matcher;
mod pointer;
pub(crate) mod ports;
pub(crate) mod runner;
pub(crate) mod verdict;
pub(crate) mod wait;
