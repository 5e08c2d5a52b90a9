//! Conversions between JSON and CEL values.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt, DYN_TYPE,
    Type,
};
use cel::common::value::{Builtin, BuiltinRef, Val};
use cel::objects::Key;

use super::meter::{ConditionBudget, text_size};
use crate::checkpoint::{ChannelValue, Content, SharedList};

/// The common type of arrays and objects that are not converted yet.
static EITHER_TYPE: Type = DYN_TYPE;

/// Converts the value of a channel like [`to_cel`].
pub(super) fn channel_to_cel<'v>(
    value: &'v ChannelValue,
    budget: &ConditionBudget,
) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    match value.content() {
        Content::List(list) => {
            budget.take(1)?;
            Ok(Unread::boxed(Source::List(list), budget))
        }
        Content::Other(value) => to_cel(value, budget),
    }
}

/// Converts a JSON value and counts a step. Strings are borrowed. Integers that fit into 64 bits
/// become `int`, so that expressions can combine them with literals.
///
/// An array or an object is converted when an expression first reads it. The conversion counts the
/// size of the value as steps.
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
        serde_json::Value::Array(items) => Unread::boxed(Source::Array(items), budget),
        serde_json::Value::Object(fields) => Unread::boxed(Source::Object(fields), budget),
    })
}

/// An array or an object. The first read converts the value, but not the arrays and objects inside
/// of it. Clones share the converted value.
#[derive(Clone, Debug)]
struct Unread<'v> {
    source: Source<'v>,
    budget: ConditionBudget,
    converted: Arc<OnceLock<Box<dyn Val + 'v>>>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'v> {
    List(&'v SharedList),
    Array(&'v [serde_json::Value]),
    Object(&'v serde_json::Map<String, serde_json::Value>),
}

impl<'v> Unread<'v> {
    fn boxed(source: Source<'v>, budget: &ConditionBudget) -> Box<dyn Val + 'v> {
        Box::new(Self { source, budget: budget.clone(), converted: Arc::default() })
    }

    /// Returns the list or map of the interpreter.
    fn read(&self) -> &(dyn Val + 'v) {
        let budget = &self.budget;
        let converted = self.converted.get_or_init(|| match self.source {
            Source::List(list) => list_to_cel(list.iter(), budget),
            Source::Array(items) => list_to_cel(items.iter(), budget),
            Source::Object(fields) => map_to_cel(fields, budget),
        });
        &**converted
    }
}

/// Converts the items of an array. Leaves out the items after the step limit: the result of the
/// evaluation is discarded.
fn list_to_cel<'v>(
    items: impl Iterator<Item = &'v serde_json::Value>,
    budget: &ConditionBudget,
) -> Box<dyn Val + 'v> {
    let items = items.map_while(|item| to_cel(item, budget).ok());
    Box::new(CelList::from(items.collect::<Vec<_>>()))
}

/// Converts the fields of an object like [`list_to_cel`].
fn map_to_cel<'v>(
    fields: &'v serde_json::Map<String, serde_json::Value>,
    budget: &ConditionBudget,
) -> Box<dyn Val + 'v> {
    let entry = |(key, value): (&'v String, &'v serde_json::Value)| {
        budget.take(text_size(key.len())).ok()?;
        Some((CelMapKey::from(key.as_str()), to_cel(value, budget).ok()?))
    };
    Box::new(CelMap::from(fields.iter().map_while(entry).collect::<HashMap<_, _>>()))
}

impl Val for Unread<'_> {
    fn get_type(&self) -> &Type {
        match self.source {
            Source::List(_) | Source::Array(_) => CelList::cel_type(),
            Source::Object(_) => CelMap::cel_type(),
        }
    }

    fn cel_type() -> &'static Type {
        &EITHER_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        self.read().as_adder()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.read().as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.read().as_indexer()
    }

    fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
    where
        Self: 'w,
    {
        self.read().clone_as_boxed().into_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.read().as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.read().as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        self.get_type().kind() == other.get_type().kind() && self.read().equals(other)
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }

    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        self.read().as_builtin()
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        self.read().clone_as_boxed().into_builtin()
    }
}

/// The size is the number of items, which needs no conversion.
impl Sizer for Unread<'_> {
    fn size(&self) -> CelInt {
        let items = match self.source {
            Source::List(list) => list.len(),
            Source::Array(items) => items.len(),
            Source::Object(fields) => fields.len(),
        };
        CelInt::from(i64::try_from(items).unwrap_or(i64::MAX))
    }
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
