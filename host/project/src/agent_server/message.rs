//! Messages of a conversation, both ways.
//!
//! A channel of messages holds objects with a `role`; clients write and read objects with a
//! `type`. What one side has and the other has no place for stays in the message under its own
//! name, so that a conversation survives a round trip.

mod blocks;
mod content;
mod inward;
mod outward;

use serde_json::Value;

pub use self::inward::{Fresh, from_wire, from_wire_all};
pub use self::outward::{compact, to_wire, to_wire_all};

/// Names of the roles on both sides: ours, the client's type, and what else clients call it.
const ROLES: &[(&str, &str, &[&str])] = &[
    ("user", "human", &["HumanMessage", "HumanMessageChunk"]),
    ("assistant", "ai", &["AIMessage", "AIMessageChunk"]),
    ("system", "system", &["SystemMessage", "SystemMessageChunk"]),
    ("developer", "developer", &[]),
    ("tool", "tool", &["ToolMessage", "ToolMessageChunk"]),
    ("remove", "remove", &["RemoveMessage"]),
];

/// Our role for what a client calls it.
fn role_of(name: &str) -> Option<&'static str> {
    let known = ROLES
        .iter()
        .find(|(role, kind, others)| *role == name || *kind == name || others.contains(&name));
    known.map(|(role, _, _)| *role)
}

/// The client's type for one of our roles.
fn type_of(role: &str) -> &str {
    ROLES.iter().find(|(ours, _, _)| *ours == role).map_or(role, |(_, kind, _)| kind)
}

/// Whether it says nothing: what clients send for fields that a message does not use.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
