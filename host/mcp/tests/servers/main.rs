//! The client against real servers: the stand-in with both generations of the protocol over both
//! transports, and the official implementations of the protocol.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod asking;
mod changed;
mod child;
mod effects;
mod hostile;
mod http;
mod leased;
mod log;
mod official;
mod overflow;
mod support;
