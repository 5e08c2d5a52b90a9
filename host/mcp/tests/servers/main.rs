//! The client against real servers: the stand-in in both eras over HTTP and as a program, and the
//! official implementations.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod asking;
mod changed;
mod child;
mod hostile;
mod http;
mod leased;
mod log;
mod official;
mod support;
