//! The reducers `last`, `any` and `ephemeral`: the last write becomes the value.

use serde_json::Value;

use crate::checkpoint::ChannelValue;

/// Returns the last write, or the old value if there is no write. Returns `null` if there is
/// neither.
pub(super) fn reduce(current: Option<&ChannelValue>, writes: &[&Value]) -> ChannelValue {
    match (writes.last(), current) {
        (Some(write), _) => Value::clone(write).into(),
        (None, Some(current)) => current.clone(),
        (None, None) => Value::Null.into(),
    }
}
