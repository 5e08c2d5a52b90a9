//! One frame, and how it goes over the wire.

use bytes::Bytes;
use serde_json::Value;
use wattle_graph::event::Event;
use wattle_graph::id::Namespace;

use crate::agent_server::id::{EventId, namespace_text};
use crate::agent_server::mode::Mode;

/// What is sent when there is nothing to say: clients take silence for a dead connection.
pub const HEARTBEAT: &str = ": heartbeat\r\n\r\n";

/// One frame of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Its kind, with the nested graph that it is of.
    pub event: String,
    /// What it says.
    pub data: Value,
    /// Where in the log it comes from.
    pub id: EventId,
}

impl Frame {
    pub(super) fn new(name: String, data: Value, event: &Event) -> Self {
        Self { event: name, data, id: EventId::new(event, 0) }
    }

    /// The bytes of a server-sent event.
    pub fn to_bytes(&self) -> Bytes {
        let Self { event, data, id } = self;
        format!("event: {event}\r\ndata: {data}\r\nid: {id}\r\n\r\n").into()
    }
}

/// The name of a mode's frames.
pub(super) fn name(mode: Mode, namespace: &Namespace) -> String {
    let kind = match mode {
        Mode::Values => "values",
        Mode::Updates => "updates",
        Mode::Custom => "custom",
        Mode::Tasks => "tasks",
        Mode::Checkpoints => "checkpoints",
        Mode::Debug => "debug",
        Mode::Events => "events",
        Mode::Messages | Mode::MessagesTuple => "messages",
    };
    if namespace.is_root() {
        kind.to_owned()
    } else {
        format!("{kind}|{}", namespace_text(namespace))
    }
}
