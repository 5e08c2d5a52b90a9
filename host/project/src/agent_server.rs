//! Projections of a thread in the forms of the Agent Server protocol.
//!
//! * [`v1`]: a run as a stream of server-sent events in the modes that a client selected.
//! * [`v2`]: a thread as a stream of typed events.
//! * [`message_stream`]: messages and their deltas during a run, for both streams.
//! * [`thread_info`]: the settings of a thread that all its responses and streams share.
//! * [`message`]: conversion of messages in both directions. [`document`]: addresses of
//!   checkpoints, and interrupts. [`failure`]: failures.
//! * [`id`]: ids of checkpoints, tasks, graphs and server-sent events in the form of the API.
//!   [`time`]: times. [`mode`]: stream modes.

pub mod document;
pub mod failure;
pub mod id;
pub mod message;
pub mod message_stream;
pub mod mode;
pub mod thread_info;
pub mod time;
mod tool_call;
pub mod v1;
pub mod v2;
mod work;

#[cfg(test)]
pub(crate) mod sample;
