//! The reducer `append`, which adds items to an array.

use serde_json::Value;

use super::Reduced;

/// Appends the items of each write that is an array, and any other write as one item.
pub(super) fn reduce(current: Option<&Value>, writes: &[&Value]) -> Result<Reduced, String> {
    let mut items = match current {
        Some(Value::Array(items)) => items.clone(),
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return Err("the value is not an array".to_owned()),
    };
    let unchanged_prefix = current.filter(|current| current.is_array()).map(|_| items.len());
    for write in writes {
        match write {
            Value::Array(more) => items.extend(more.iter().cloned()),
            one => items.push((*one).clone()),
        }
    }
    Ok(Reduced { value: Value::Array(items), unchanged_prefix })
}
