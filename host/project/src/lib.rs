//! Projections of the event log into the forms that clients read.
//!
//! A pure function of events makes a projection. The function reads a log in order, keeps the state
//! that it needs, and returns for each event what a client receives. This crate uses no clock, no
//! socket and no engine, so a projection of the same log is always the same.
//!
//! * [`projection`]: the trait of the projections, and the states that they need.
//! * [`transcript`]: one run as messages and tool calls in order.
//! * [`agent_server`]: the streams of the Agent Server protocol, and the ids, messages and
//!   addresses that its responses share with the streams.
//! * [`ai_sdk`] and [`ag_ui`]: the transcript as the streams of these two protocols.
//! * [`limit`]: the limits of projections.
//! * [`outline`]: events without their large values, for timelines.
//! * [`spans`]: a run as spans of a trace.
//! * [`task_stream`]: running tasks and completions, delta by delta. All projections for chat
//!   clients are built on it.
//! * [`trace`]: a thread as a tree of runs, supersteps, tasks, attempts and host calls.

pub mod ag_ui;
pub mod agent_server;
pub mod ai_sdk;
pub mod limit;
pub mod outline;
pub mod projection;
pub mod spans;
pub mod task_stream;
pub mod trace;
pub mod transcript;

mod time;

#[cfg(test)]
mod sample;
