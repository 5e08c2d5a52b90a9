//! Outbound HTTP against real servers on the loopback interface.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bound;
mod guard;
mod redirect;
mod secret;
mod support;
