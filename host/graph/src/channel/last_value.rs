//! The reducers `last`, `any` and `ephemeral`: the last write becomes the value.

use serde_json::Value;

/// Returns the last write, or the old value if there is no write. Returns `null` if there is
/// neither.
pub(super) fn reduce(current: Option<&Value>, writes: &[&Value]) -> Value {
    writes.last().copied().or(current).cloned().unwrap_or(Value::Null)
}
