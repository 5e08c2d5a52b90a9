//! What goes over the wire, as pure functions of plain data.
//!
//! * [`id`]: ids of checkpoints, tasks, graphs and events in the form that clients know.
//! * [`lens`]: what one thread needs to be shown, the same for all of its documents.
//! * [`message`]: messages of a conversation, both ways.
//! * [`request`]: what clients ask for. [`shape`]: what they are answered.
//! * [`v1`]: a run as a stream of frames, one for each mode that was asked for.
//! * [`v2`]: a thread as a stream of typed events.
//! * [`talk`]: what models and nodes say while a run goes on, for both streams.

pub mod id;
pub mod lens;
pub mod message;
pub mod request;
pub mod shape;
pub mod talk;
pub mod time;
pub mod v1;
pub mod v2;
mod work;

#[cfg(test)]
mod sample;
