//! The reducer `merge`, which replaces top-level keys of an object.

use serde_json::{Map, Value};

/// Returns an error if a write is not an object.
pub(super) fn check(write: &Value) -> Result<(), String> {
    if write.is_object() { Ok(()) } else { Err("only an object can be merged".to_owned()) }
}

/// Returns the old object with the keys of all writes. The last write of a key wins.
pub(super) fn reduce(current: Option<&Value>, writes: &[&Value]) -> Result<Value, String> {
    let mut merged = match current {
        Some(Value::Object(fields)) => fields.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err("the value is not an object".to_owned()),
    };
    for write in writes {
        let Value::Object(fields) = write else {
            return Err("only an object can be merged".to_owned());
        };
        merged.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(Value::Object(merged))
}
