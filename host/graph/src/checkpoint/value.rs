//! The value of a channel.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::checkpoint::list::SharedList;
use crate::json_text;
use crate::weight::{SHARED_ITEM_BYTES, weight};

/// The value of a channel, which many checkpoints share. A clone copies a pointer.
///
/// An array is a [`SharedList`]: the versions of a list that grows share its items.
#[derive(Clone)]
pub struct ChannelValue(Arc<Kind>);

enum Kind {
    List(SharedList),
    /// The value, and its weight once that has been computed.
    Other(Value, OnceLock<u64>),
}

/// A borrowed [`ChannelValue`].
#[derive(Clone, Copy, Debug)]
pub enum Content<'v> {
    /// An array.
    List(&'v SharedList),
    /// Any value that is not an array.
    Other(&'v Value),
}

impl ChannelValue {
    /// Returns the list, or the value that is not a list.
    pub fn content(&self) -> Content<'_> {
        match &*self.0 {
            Kind::List(list) => Content::List(list),
            Kind::Other(value, _) => Content::Other(value),
        }
    }

    /// Returns the list; `None` for a value that is not an array.
    pub fn list(&self) -> Option<&SharedList> {
        match self.content() {
            Content::List(list) => Some(list),
            Content::Other(_) => None,
        }
    }

    /// Returns the items of a list, and any other value as the only item.
    pub fn items(&self) -> impl Iterator<Item = &Value> {
        let (list, other) = match self.content() {
            Content::List(list) => (Some(list), None),
            Content::Other(value) => (None, Some(value)),
        };
        other.into_iter().chain(list.into_iter().flat_map(SharedList::iter))
    }

    /// Returns the value as JSON. Copies a list with all of its items.
    pub fn value(&self) -> Cow<'_, Value> {
        match self.content() {
            Content::List(list) => Cow::Owned(list.to_value()),
            Content::Other(value) => Cow::Borrowed(value),
        }
    }

    /// Appends the value as JSON text; see [`json_text::append`].
    ///
    /// # Errors
    ///
    /// Errors of the serializer.
    pub fn append_text(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        match self.content() {
            Content::List(list) => json_text::append_list(text, list.iter()),
            Content::Other(value) => json_text::append(text, value),
        }
    }

    /// Returns the [`weight`] of the value, in bytes. The weight is computed once. A new version of
    /// a list computes only the weight of the added items.
    pub fn weight(&self) -> u64 {
        match &*self.0 {
            Kind::List(list) => list.weight(),
            Kind::Other(value, known) => *known.get_or_init(|| weight(value)),
        }
    }

    /// Returns the memory that the value takes, in bytes: its [`weight`](Self::weight), and
    /// [`SHARED_ITEM_BYTES`] for each item of a list.
    pub fn memory_bytes(&self) -> u64 {
        self.weight() + SHARED_ITEM_BYTES * self.list().map_or(0, SharedList::len) as u64
    }

    /// Returns true if the weight is known and need not be computed.
    pub fn is_weighed(&self) -> bool {
        match &*self.0 {
            Kind::List(list) => list.is_weighed(),
            Kind::Other(_, known) => known.get().is_some(),
        }
    }

    /// Returns true if both are one shared value. Equal values need not be.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the address of the value. While the value or a clone of it exists, only its clones
    /// have the same address.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl From<Value> for ChannelValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => SharedList::from_iter(items).into(),
            other => Self(Arc::new(Kind::Other(other, OnceLock::new()))),
        }
    }
}

impl From<SharedList> for ChannelValue {
    fn from(list: SharedList) -> Self {
        Self(Arc::new(Kind::List(list)))
    }
}

impl PartialEq for ChannelValue {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared_with(other)
            || match (self.content(), other.content()) {
                (Content::List(one), Content::List(other)) => one == other,
                (Content::Other(one), Content::Other(other)) => one == other,
                _ => false,
            }
    }
}

impl PartialEq<Value> for ChannelValue {
    fn eq(&self, other: &Value) -> bool {
        match (self.content(), other) {
            (Content::List(list), Value::Array(items)) => *list == items[..],
            (Content::List(_), _) => false,
            (Content::Other(value), other) => value == other,
        }
    }
}

impl fmt::Debug for ChannelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content() {
            Content::List(list) => fmt::Debug::fmt(list, f),
            Content::Other(value) => fmt::Debug::fmt(value, f),
        }
    }
}

impl Serialize for ChannelValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.content() {
            Content::List(list) => list.serialize(serializer),
            Content::Other(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ChannelValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_channel_value_reads_as_its_json() {
        for value in [
            json!(null),
            json!("text"),
            json!([]),
            json!([1, [2], "x"]),
            json!({ "z": [1], "a": 2 }),
        ] {
            let shared = ChannelValue::from(value.clone());
            assert_eq!(shared, value);
            assert_eq!(*shared.value(), value);
            assert_eq!(shared.list().map(SharedList::len), value.as_array().map(Vec::len));
            assert!(!shared.is_weighed());
            assert_eq!((shared.weight(), shared.is_weighed()), (weight(&value), true));
            let items = value.as_array().map_or(0, Vec::len) as u64;
            assert_eq!(shared.memory_bytes(), weight(&value) + items * SHARED_ITEM_BYTES);
            let text = value.to_string();
            assert_eq!(serde_json::to_string(&shared).unwrap(), text);
            let mut appended = Vec::new();
            shared.append_text(&mut appended).unwrap();
            assert_eq!(appended, text.as_bytes());
            assert_eq!(serde_json::from_str::<ChannelValue>(&text).unwrap(), shared);
            let (clone, equal) = (shared.clone(), ChannelValue::from(value));
            assert!(shared.is_shared_with(&clone) && shared.address() == clone.address());
            assert!(!shared.is_shared_with(&equal) && shared.address() != equal.address());
        }
        assert_ne!(ChannelValue::from(json!([1])), json!([1, 2]));
        assert_ne!(ChannelValue::from(json!([1])), json!(1));
        assert_ne!(ChannelValue::from(json!([])), ChannelValue::from(json!({})));
    }

    #[test]
    fn a_value_that_is_not_a_list_is_its_only_item() {
        let items = |value: Value| ChannelValue::from(value).items().cloned().collect::<Vec<_>>();
        assert_eq!(items(json!([1, [2]])), [json!(1), json!([2])]);
        assert_eq!(items(json!({ "a": 1 })), [json!({ "a": 1 })]);
        assert_eq!(items(json!([])), [] as [Value; 0]);
    }
}
