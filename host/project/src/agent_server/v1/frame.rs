//! A server-sent event and its encoding.

use bytes::Bytes;
use serde_json::Value;
use wattle_graph::event::Event;
use wattle_graph::id::Namespace;

use crate::agent_server::id::{EventId, namespace_text};
use crate::agent_server::mode::Mode;

/// A comment that the host sends on an idle connection, so that clients do not take the connection
/// for broken.
pub const HEARTBEAT: &str = ": heartbeat\r\n\r\n";

/// A server-sent event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Name of the event: the mode and, for a subgraph, its namespace.
    pub event: String,
    /// Data of the event.
    pub data: Value,
    /// Id of the server-sent event.
    pub id: EventId,
}

impl Frame {
    pub(super) fn new(name: String, data: Value, event: &Event) -> Self {
        Self { event: name, data, id: EventId::new(event, 0) }
    }

    /// Encodes the event in the format `text/event-stream`.
    pub fn to_bytes(&self) -> Bytes {
        let Self { event, data, id } = self;
        format!("event: {event}\r\ndata: {data}\r\nid: {id}\r\n\r\n").into()
    }
}

/// Returns the name of the server-sent events of a mode.
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
