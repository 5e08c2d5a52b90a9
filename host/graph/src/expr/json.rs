//! Conversions between JSON and CEL values.

use std::collections::{BTreeMap, HashMap};

use cel::ExecutionError;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use cel::objects::Key;

use super::meter::{ConditionBudget, text_size};
use crate::checkpoint::{ChannelValue, Content};

/// Converts the value of a channel like [`to_cel`].
pub(super) fn channel_to_cel<'v>(
    value: &'v ChannelValue,
    budget: &ConditionBudget,
) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    match value.content() {
        Content::List(list) => {
            budget.take(1)?;
            let items = list.iter().map(|item| to_cel(item, budget));
            Ok(Box::new(CelList::from(items.collect::<Result<Vec<_>, _>>()?)))
        }
        Content::Other(value) => to_cel(value, budget),
    }
}

/// Converts a JSON value and counts its size as steps. Strings are borrowed. Integers that fit into
/// 64 bits become `int`, so that expressions can combine them with literals.
pub(super) fn to_cel<'v>(
    value: &'v serde_json::Value,
    budget: &ConditionBudget,
) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    budget.take(1)?;
    Ok(match value {
        serde_json::Value::Null => Box::new(CelNull),
        serde_json::Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        serde_json::Value::Number(number) => number_to_cel(number),
        serde_json::Value::String(text) => Box::new(CelString::from(text.as_str())),
        serde_json::Value::Array(items) => {
            let items = items.iter().map(|item| to_cel(item, budget));
            Box::new(CelList::from(items.collect::<Result<Vec<_>, _>>()?))
        }
        serde_json::Value::Object(fields) => {
            let entry = |(key, value): (&'v String, &'v serde_json::Value)| {
                budget.take(text_size(key.len()))?;
                Ok((CelMapKey::from(key.as_str()), to_cel(value, budget)?))
            };
            let entries = fields.iter().map(entry);
            Box::new(CelMap::from(entries.collect::<Result<HashMap<_, _>, ExecutionError>>()?))
        }
    })
}

fn number_to_cel<'v>(number: &serde_json::Number) -> Box<dyn Val + 'v> {
    if let Some(whole) = number.as_i64() {
        Box::new(CelInt::from(whole))
    } else if let Some(large) = number.as_u64() {
        Box::new(CelUInt::from(large))
    } else {
        Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
    }
}

/// Converts a value back to JSON, with sorted keys. Returns `None` for a value without a JSON form.
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
            // Keys of different types can have the same text. The string key sorts last and wins.
            let pair = |(key, value): (&Key, &cel::Value)| {
                let is_text = matches!(key, Key::String(_));
                Some(((key.to_string(), is_text), from_cel(value)?))
            };
            let sorted = fields.map.iter().map(pair).collect::<Option<BTreeMap<_, _>>>()?;
            serde_json::Value::Object(sorted.into_iter().map(|((key, _), it)| (key, it)).collect())
        }
        _ => return None,
    })
}
