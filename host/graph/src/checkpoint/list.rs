//! Lists whose versions share their items.

mod chunk;
mod index;
mod item;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::Value;

use self::chunk::Chunk;
use self::item::Item;
use crate::id::Digest;
use crate::weight::{VALUE_BYTES, weight};

pub(crate) use self::item::id_hash;

/// Number of items of a full chunk. A new version of a list copies the pointers to all chunks, and
/// the pointers to the items of one chunk. A list with 4,096 items has 64 chunks, so its new
/// version copies 128 pointers. [`SharedList::digest`] depends on this number.
const CHUNK_ITEMS: usize = 64;

/// What the digest of a list begins with: the name of the form of the digest.
const DIGEST_FORM: &[u8] = b"wattle list 1";

/// A JSON array that shares its items with other versions of the same list.
#[derive(Clone, Default)]
pub struct SharedList {
    /// Every chunk but the last is full, and none is empty.
    chunks: Vec<Arc<Chunk>>,
    /// True if all items are known to be messages whose ids differ.
    has_unique_ids: bool,
    /// The [`weight`] of the list, once it was computed. A later version computes only the weight
    /// of its new items.
    weight: OnceLock<u64>,
}

impl SharedList {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        let Some((last, full)) = self.chunks.split_last() else { return 0 };
        full.len() * CHUNK_ITEMS + last.items().len()
    }

    /// Returns true if the list has no items.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the item at a position.
    pub fn get(&self, place: usize) -> Option<&Value> {
        let chunk = self.chunks.get(place / CHUNK_ITEMS)?;
        chunk.items().get(place % CHUNK_ITEMS).map(|item| &*item.value)
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

    /// Returns the items at the positions from `from` up to but not including `to`. Positions after
    /// the end of the list are left out.
    pub fn range(&self, from: usize, to: usize) -> impl Iterator<Item = &Value> {
        self.items_from(from).take(to.saturating_sub(from)).map(|item| &*item.value)
    }

    /// Returns true if the list begins with the items of `other`.
    pub fn starts_with(&self, other: &Self) -> bool {
        let mut chunks = self.chunks.iter().zip(&other.chunks);
        let same = |(mine, other): (&Arc<Chunk>, &Arc<Chunk>)| {
            Arc::ptr_eq(mine, other) || mine.items().starts_with(other.items())
        };
        self.len() >= other.len() && chunks.all(same)
    }

    /// Returns the [`weight`] of the list, in bytes.
    pub fn weight(&self) -> u64 {
        *self.weight.get_or_init(|| VALUE_BYTES + self.iter().map(weight).sum::<u64>())
    }

    /// Returns the sum of the weights of the items at the positions from `from` up to but not
    /// including `to`, in bytes. That of all items is computed once, as [`Self::weight`].
    pub(crate) fn range_weight(&self, from: usize, to: usize) -> u64 {
        if from == 0 && to >= self.len() {
            return self.weight() - VALUE_BYTES;
        }
        self.range(from, to).map(weight).sum()
    }

    /// Returns true if the weight is known and need not be computed.
    pub fn is_weighed(&self) -> bool {
        self.weight.get().is_some()
    }

    /// Returns the digest of the items, each without its `id` if that is a string, as in messages.
    /// The digest depends only on the items and their order. Its form is fixed, so that later hosts
    /// compute the same digest. A new version of a list serializes only the items of the chunks
    /// that it does not share.
    pub fn digest(&self) -> Digest {
        let mut parts = DIGEST_FORM.to_vec();
        parts.extend_from_slice(&(self.len() as u64).to_le_bytes());
        for chunk in &self.chunks {
            parts.extend_from_slice(chunk.index().digest.as_bytes());
        }
        Digest::of(&parts)
    }

    /// Returns the length of the list as JSON text, in bytes. Like [`Self::digest`], it leaves out
    /// the `id` of an item, and a new version computes only what it does not share.
    pub fn json_bytes(&self) -> u64 {
        let items: u64 = self.chunks.iter().map(|chunk| chunk.index().bytes).sum();
        let commas = self.len().saturating_sub(1) as u64;
        items + commas + 2
    }

    /// Returns the items without an index, in order. [`Self::digest`], [`Self::json_bytes`] and the
    /// functions of [`conversation`](crate::conversation) serialize these once. A new version of an
    /// indexed list has at most those of the chunks that it does not share.
    pub fn unindexed(&self) -> impl Iterator<Item = &Value> {
        let chunks = self.chunks.iter().filter(|chunk| !chunk.is_indexed());
        chunks.flat_map(|chunk| chunk.items()).map(|item| &*item.value)
    }

    /// Returns a copy of the list as a JSON array.
    pub fn to_value(&self) -> Value {
        Value::Array(self.iter().cloned().collect())
    }

    /// Returns the chunks in order, each with the position of its first item.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, &Chunk)> {
        (0_usize..).step_by(CHUNK_ITEMS).zip(self.chunks.iter().map(|chunk| &**chunk))
    }

    /// Returns the items in order, as the shared pointers.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.items_from(0).map(|item| &item.value)
    }

    /// Returns the [`id_hash`] of each message in order.
    pub(crate) fn id_hashes(&self) -> impl Iterator<Item = u64> {
        self.items_from(0).map(|item| item.id_hash)
    }

    /// Returns the position of the first message with an id.
    pub(crate) fn position_of_id(&self, id: &str) -> Option<usize> {
        let hash = id_hash(id);
        let has_id = |item: &Item| {
            item.id_hash == hash && item.value.get("id").and_then(Value::as_str) == Some(id)
        };
        self.items_from(0).position(has_id)
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, value: Arc<Value>) {
        self.push_item(value.into());
    }

    /// Replaces the item at a position, which exists.
    pub(crate) fn set(&mut self, place: usize, value: Arc<Value>) {
        self.has_unique_ids = false;
        let chunk = Arc::make_mut(&mut self.chunks[place / CHUNK_ITEMS]);
        let old = chunk.replace(place % CHUNK_ITEMS, Item::from(value.clone()));
        if let Some(sum) = self.weight.get_mut() {
            *sum = *sum - weight(&old.value) + weight(&value);
        }
    }

    /// Returns the list without the items at some positions.
    pub(crate) fn without(self, removed: &BTreeSet<usize>) -> Self {
        let Some(first) = removed.first() else { return self };
        let same = first / CHUNK_ITEMS;
        let chunks = self.chunks.iter().take(same).cloned().collect();
        let mut kept = Self { chunks, ..Self::default() };
        for (place, item) in (same * CHUNK_ITEMS..).zip(self.items_from(same * CHUNK_ITEMS)) {
            if !removed.contains(&place) {
                kept.push_item(item.clone());
            }
        }
        if let Some(sum) = self.weight.get() {
            let gone = removed.iter().filter_map(|place| self.get(*place)).map(weight);
            kept.weight = OnceLock::from(sum - gone.sum::<u64>());
        }
        kept
    }

    /// Returns true if all items are known to be messages whose ids differ.
    pub(crate) fn has_unique_ids(&self) -> bool {
        self.has_unique_ids
    }

    /// Records that all items are messages whose ids differ, until the list changes.
    pub(crate) fn with_unique_ids(self) -> Self {
        Self { has_unique_ids: true, ..self }
    }

    fn items_from(&self, from: usize) -> impl Iterator<Item = &Item> {
        let chunks = self.chunks.get(from / CHUNK_ITEMS..).unwrap_or_default();
        chunks.iter().flat_map(|chunk| chunk.items()).skip(from % CHUNK_ITEMS)
    }

    fn push_item(&mut self, item: Item) {
        self.has_unique_ids = false;
        if let Some(sum) = self.weight.get_mut() {
            *sum += weight(&item.value);
        }
        match self.chunks.last_mut() {
            Some(last) if last.items().len() < CHUNK_ITEMS => Arc::make_mut(last).push(item),
            _ => self.chunks.push(Arc::new(Chunk::from(item))),
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
            self.push(Arc::new(item));
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
    /// Returns true if all items have an index.
    pub(crate) fn is_indexed(&self) -> bool {
        self.unindexed().next().is_none()
    }

    /// Returns the number of items that this version does not share, at the same position, with
    /// another version.
    pub(crate) fn unshared_with(&self, other: &Self) -> usize {
        let items = self.items_from(0).zip(other.items_from(0));
        let shared = items.filter(|(mine, other)| Arc::ptr_eq(&mine.value, &other.value));
        self.len() - shared.count()
    }
}
