//! Outbound HTTP against real servers on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod guard;
mod limits;
mod redirect;
mod secret;
mod support;
mod token;
