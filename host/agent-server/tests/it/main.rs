//! The Agent Server as its clients see it: requests and answers over an engine in memory.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod assistants;
mod cancel;
mod host;
mod native;
mod plugin;
mod queue;
mod runs;
mod state;
mod stateless;
mod stream;
mod threads;
