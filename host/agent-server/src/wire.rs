//! What clients send and are answered, as pure functions of plain data.
//!
//! The streams of runs and threads, and what they share with answers, are in
//! [`wattle_project::agent_server`].
//!
//! * [`extract`]: values of a document by their paths.
//! * [`command`]: commands of the streaming protocol.
//! * [`request`]: what clients ask for. [`shape`]: what they are answered. [`outline`]: what else of
//!   both is described.
//! * [`schedule`]: when runs come again. [`webhook`]: where and how their ends are reported.

pub mod command;
pub mod extract;
pub mod outline;
pub mod request;
pub mod schedule;
pub mod shape;
pub mod webhook;
