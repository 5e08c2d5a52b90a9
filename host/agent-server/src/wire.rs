//! Requests and responses as plain data, with pure functions.
//!
//! The streams of runs and threads, and what they share with responses, are in
//! [`wattle_project::agent_server`].
//!
//! * [`extract`]: values of a document by their paths.
//! * [`command`]: commands of the streaming protocol.
//! * [`request`]: bodies of requests. [`shape`]: bodies of responses. [`outline`]: further OpenAPI
//!   schemas of both.
//! * [`schedule`]: schedules of crons. [`webhook`]: URLs and signatures of webhooks.

pub mod command;
pub mod extract;
pub mod outline;
pub mod request;
pub mod schedule;
pub mod shape;
pub mod webhook;
