//! `last`, `any` and `ephemeral`: the last write is the value.

use serde_json::Value;

/// The last write, or else the old value.
pub(super) fn reduce(current: Option<&Value>, writes: &[&Value]) -> Value {
    writes.last().copied().or(current).cloned().unwrap_or(Value::Null)
}
