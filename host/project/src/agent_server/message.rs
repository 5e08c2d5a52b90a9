//! Conversion of messages in both directions.
//!
//! A message of a channel is an object with a `role`. A message of the Agent Server API is an
//! object with a `type`. A field that exists in only one of these forms is kept under its name, so
//! that messages survive a round trip.

mod arguments;
mod blocks;
mod content;
mod inward;
mod outward;
mod read_context;
mod request;

use serde_json::Value;

pub use self::inward::{from_wire, from_wire_all};
pub use self::outward::{compact, to_wire, to_wire_all};
pub use self::read_context::{ParseText, ReadContext};
pub use self::request::of_request;

/// Roles of messages: name in the channel, type in the Agent Server API, and other names that
/// clients use.
const ROLES: &[(&str, &str, &[&str])] = &[
    ("user", "human", &["HumanMessage", "HumanMessageChunk"]),
    ("assistant", "ai", &["AIMessage", "AIMessageChunk"]),
    ("system", "system", &["SystemMessage", "SystemMessageChunk"]),
    ("developer", "developer", &[]),
    ("tool", "tool", &["ToolMessage", "ToolMessageChunk"]),
    ("remove", "remove", &["RemoveMessage"]),
];

/// Returns the role whose name, type or other name is `name`.
fn role_of(name: &str) -> Option<&'static str> {
    let known = ROLES
        .iter()
        .find(|(role, kind, others)| *role == name || *kind == name || others.contains(&name));
    known.map(|(role, _, _)| *role)
}

/// Returns the type that a message of this role has in the Agent Server API.
fn type_of(role: &str) -> &str {
    ROLES.iter().find(|(ours, _, _)| *ours == role).map_or(role, |(_, kind, _)| kind)
}

/// Returns true for a value that clients send for unused fields.
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
