//! Model routes against real servers on the loopback interface.
#![allow(clippy::unwrap_used, reason = "tests")]

mod failure;
mod retry;
mod structured;
mod support;
mod wire;
