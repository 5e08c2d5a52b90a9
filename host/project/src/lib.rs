//! Projections of the event log into the forms that clients read.
//!
//! A projection is a pure function of events: it reads the log in order, holds what it needs to
//! know of the past, and answers each event with what a client is sent. Nothing here touches a
//! clock, a socket or the engine, so a projection that is made again gives the same.
//!
//! * [`conversation`]: the fold of a conversation: tasks at work, and the answers of models piece by
//!   piece. Every projection that shows a conversation is built on it.
//! * [`transcript`]: one run as things said, in an order that makes sense to a reader.
//! * [`agent_server`]: the streams of the Agent Server protocol, and what its answers share with them.
//! * [`ai_sdk`] and [`ag_ui`]: the transcript as the streams of these two protocols.
//! * [`spans`]: a run as spans of a trace.
//! * [`trace`]: a thread as a tree of runs, supersteps, tasks, attempts and host calls.

pub mod ag_ui;
pub mod agent_server;
pub mod ai_sdk;
pub mod conversation;
pub mod spans;
pub mod trace;
pub mod transcript;

mod time;

#[cfg(test)]
mod sample;
