//! A thread in the forms of the Agent Server protocol.
//!
//! * [`v1`]: a run as a stream of frames, one for each mode that was asked for.
//! * [`v2`]: a thread as a stream of typed events.
//! * [`talk`]: what models and nodes say while a run goes on, for both streams.
//! * [`lens`]: what one thread needs to be shown, the same for all of its documents.
//! * [`message`]: messages of a conversation, both ways. [`document`]: addresses of checkpoints and
//!   questions. [`failure`]: failures.
//! * [`id`]: ids of checkpoints, tasks, graphs and events in the form that clients know. [`time`]:
//!   times. [`mode`]: names of the kinds of frames.

pub mod document;
pub mod failure;
pub mod id;
pub mod lens;
pub mod message;
pub mod mode;
pub mod talk;
pub mod time;
pub mod v1;
pub mod v2;
mod work;

#[cfg(test)]
mod sample;
