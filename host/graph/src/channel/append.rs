//! The reducer `append`, which adds items to an array.

use serde_json::Value;

use super::{Reduced, list_of};
use crate::checkpoint::{ChannelValue, SharedList};

/// Appends the items of each write that is an array, and any other write as one item. The new list
/// shares the items of the old one.
pub(super) fn reduce(current: Option<&ChannelValue>, writes: &[&Value]) -> Result<Reduced, String> {
    let mut list = list_of(current).ok_or_else(|| "the value is not an array".to_owned())?;
    let unchanged_prefix = current.and_then(ChannelValue::list).map(SharedList::len);
    for write in writes {
        match write {
            Value::Array(more) => list.extend(more.iter().cloned()),
            one => list.extend([Value::clone(one)]),
        }
    }
    Ok(Reduced { value: list.into(), unchanged_prefix })
}
