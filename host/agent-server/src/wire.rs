//! Requests and responses as plain data, without I/O.
//!
//! [`wattle_project::agent_server`] contains the server-sent events of run and thread streams, and
//! the types that they share with responses.
//!
//! * [`extract`]: values of a JSON object by their paths.
//! * [`command`]: commands of the streaming protocol.
//! * [`request`]: bodies of requests. [`response`]: bodies of responses. [`schemas`]: further
//!   OpenAPI schemas of both.
//! * [`schedule`]: schedules of crons. [`webhook`]: URLs and signatures of webhooks.

pub mod command;
pub mod extract;
pub mod request;
pub mod response;
pub mod schedule;
pub mod schemas;
pub mod webhook;
