//! The stand-in servers over real sockets.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod program;
mod standin;
mod streams;
mod tools;
mod travel;
