//! JSON as CEL values.

use std::collections::{BTreeMap, HashMap};
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

/// Converts a value back to JSON, with keys in order; nothing for what JSON has no form for.
pub(super) fn from_cel(value: &cel::Value) -> Option<serde_json::Value> {
    Some(match value {
        cel::Value::Null => serde_json::Value::Null,
        cel::Value::Bool(flag) => (*flag).into(),
        cel::Value::Int(number) => (*number).into(),
        cel::Value::UInt(number) => (*number).into(),
        cel::Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        cel::Value::String(text) => text.as_str().into(),
        cel::Value::List(items) => items.iter().map(from_cel).collect::<Option<Vec<_>>>()?.into(),
        cel::Value::Map(fields) => {
            let pair =
                |(key, value): (&Key, &cel::Value)| Some((key.to_string(), from_cel(value)?));
            let sorted = fields.map.iter().map(pair).collect::<Option<BTreeMap<_, _>>>()?;
            serde_json::Value::Object(sorted.into_iter().collect())
        }
        _ => return None,
    })
}
