//! JSON as CEL values.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};

/// Converts a JSON value. Whole numbers become `int` where they fit, so that they can be
/// calculated with literals.
pub(super) fn to_cel(value: &serde_json::Value) -> cel::Value {
    match value {
        serde_json::Value::Null => cel::Value::Null,
        serde_json::Value::Bool(flag) => cel::Value::Bool(*flag),
        serde_json::Value::Number(number) => number_to_cel(number),
        serde_json::Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => {
            cel::Value::List(Arc::new(items.iter().map(to_cel).collect()))
        }
        serde_json::Value::Object(fields) => {
            let fields: HashMap<Key, cel::Value> =
                fields.iter().map(|(key, value)| (key.clone().into(), to_cel(value))).collect();
            cel::Value::Map(Map { map: Arc::new(fields) })
        }
    }
}

fn number_to_cel(number: &serde_json::Number) -> cel::Value {
    if let Some(whole) = number.as_i64() {
        cel::Value::Int(whole)
    } else if let Some(large) = number.as_u64() {
        cel::Value::UInt(large)
    } else {
        cel::Value::Float(number.as_f64().unwrap_or(f64::NAN))
    }
}
