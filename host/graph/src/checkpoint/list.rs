//! Lists whose versions share their items.

use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::Value;

/// Number of items of a full chunk. A new version of a list copies the pointers to all chunks, and
/// the pointers to the items of one chunk. A list of 4,096 items has as many of the former as of
/// the latter.
const CHUNK_ITEMS: usize = 64;

/// A JSON array that shares its items with other versions of the same list.
#[derive(Clone, Default)]
pub struct SharedList {
    /// Every chunk but the last is full, and none is empty.
    chunks: Vec<Arc<Vec<Item>>>,
}

#[derive(Clone)]
struct Item {
    value: Arc<Value>,
}

impl From<Value> for Item {
    fn from(value: Value) -> Self {
        Self { value: Arc::new(value) }
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value) || self.value == other.value
    }
}

impl SharedList {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        let Some((last, full)) = self.chunks.split_last() else { return 0 };
        full.len() * CHUNK_ITEMS + last.len()
    }

    /// Returns true if the list has no items.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the items in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.items_from(0).map(|item| &*item.value)
    }

    /// Returns the items from a position on; `None` if the list is shorter.
    pub fn tail(&self, from: usize) -> Option<Vec<&Value>> {
        let rest = self.len().checked_sub(from)?;
        let mut items = Vec::with_capacity(rest);
        items.extend(self.items_from(from).map(|item| &*item.value));
        Some(items)
    }

    /// Returns true if the list begins with the items of another.
    pub fn starts_with(&self, other: &Self) -> bool {
        let mut chunks = self.chunks.iter().zip(&other.chunks);
        let same = |(mine, other): (&Arc<Vec<Item>>, &Arc<Vec<Item>>)| {
            Arc::ptr_eq(mine, other) || mine.starts_with(other)
        };
        self.len() >= other.len() && chunks.all(same)
    }

    /// Returns a copy of the list as a JSON array.
    pub fn to_value(&self) -> Value {
        Value::Array(self.iter().cloned().collect())
    }

    fn items_from(&self, from: usize) -> impl Iterator<Item = &Item> {
        let chunks = self.chunks.get(from / CHUNK_ITEMS..).unwrap_or_default();
        chunks.iter().flat_map(|chunk| chunk.iter()).skip(from % CHUNK_ITEMS)
    }

    fn push_item(&mut self, item: Item) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK_ITEMS => Arc::make_mut(last).push(item),
            _ => self.chunks.push(Arc::new(vec![item])),
        }
    }
}

impl PartialEq for SharedList {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.starts_with(other)
    }
}

impl PartialEq<[Value]> for SharedList {
    fn eq(&self, other: &[Value]) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl Extend<Value> for SharedList {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, items: I) {
        for item in items {
            self.push_item(item.into());
        }
    }
}

impl FromIterator<Value> for SharedList {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let mut list = Self::default();
        list.extend(items);
        list
    }
}

impl fmt::Debug for SharedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for SharedList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.len()))?;
        for item in self.iter() {
            items.serialize_element(item)?;
        }
        items.end()
    }
}

#[cfg(test)]
impl SharedList {
    /// Returns the number of items that are not those of another version at the same positions.
    pub(crate) fn unshared_with(&self, other: &Self) -> usize {
        let items = self.items_from(0).zip(other.items_from(0));
        let shared = items.filter(|(mine, other)| Arc::ptr_eq(&mine.value, &other.value));
        self.len() - shared.count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde_json::json;

    use super::*;

    fn list(items: &[u8]) -> SharedList {
        items.iter().map(|item| json!(item)).collect()
    }

    #[test]
    fn a_longer_version_shares_all_items() {
        for items in [0, 10, 64, 2_000] {
            let old: SharedList = (0..items).map(|n| json!({ "n": n })).collect();
            let mut new = old.clone();
            new.extend([json!("new")]);
            assert_eq!((new.len(), new.unshared_with(&old)), (items + 1, 1));
            let copied =
                new.chunks.iter().zip(&old.chunks).filter(|(new, old)| !Arc::ptr_eq(new, old));
            assert!(copied.count() <= 1, "one chunk has new pointers");
        }
    }

    proptest! {
        #[test]
        fn a_list_is_its_array(
            start in vec(any::<u8>(), 0..150), more in vec(any::<u8>(), 0..150), from in 0_usize..320,
        ) {
            let mut grown = list(&start);
            grown.extend(list(&more).iter().cloned());
            let array: Vec<u8> = start.iter().chain(&more).copied().collect();
            prop_assert_eq!(grown.len(), array.len());
            prop_assert_eq!(grown.is_empty(), array.is_empty());
            prop_assert_eq!(grown.to_value(), json!(array));
            prop_assert_eq!(json!(grown), json!(array));
            prop_assert_eq!(serde_json::to_string(&grown).unwrap(), json!(array).to_string());
            let tail = grown.tail(from).map(|items| json!(items));
            prop_assert_eq!(tail, array.get(from..).map(|items| json!(items)));
            prop_assert_eq!(grown == list(&start), array == start);
            prop_assert_eq!(&grown, &list(&array));
            prop_assert_eq!(grown.starts_with(&list(&more)), array.starts_with(&more));
            prop_assert!(grown.starts_with(&list(&start)));
        }
    }
}
