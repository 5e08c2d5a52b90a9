//! The Agent Server as its clients see it: requests and answers over an engine in memory.

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
