//! What goes over the wire, as pure functions of plain data.
//!
//! * [`id`]: ids of checkpoints, tasks, graphs and events in the form that clients know.
//! * [`extract`]: values of a document by their paths.
//! * [`lens`]: what one thread needs to be shown, the same for all of its documents.
//! * [`message`]: messages of a conversation, both ways.
//! * [`command`]: commands of the streaming protocol.
//! * [`request`]: what clients ask for. [`shape`]: what they are answered. [`outline`]: what else of
//!   both is described.
//! * [`v1`]: a run as a stream of frames, one for each mode that was asked for.
//! * [`v2`]: a thread as a stream of typed events.
//! * [`talk`]: what models and nodes say while a run goes on, for both streams.
//! * [`schedule`]: when runs come again. [`webhook`]: who may be told of their ends, and how.

pub mod command;
pub mod extract;
pub mod id;
pub mod lens;
pub mod message;
pub mod outline;
pub mod request;
pub mod schedule;
pub mod shape;
pub mod talk;
pub mod time;
pub mod v1;
pub mod v2;
pub mod webhook;
mod work;

#[cfg(test)]
mod sample;
