//! The stand-in servers over real sockets.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails the test that called it")]

mod program;
mod standin;
mod streams;
mod tools;
mod travel;
