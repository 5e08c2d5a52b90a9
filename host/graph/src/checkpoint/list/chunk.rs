//! Chunks: parts of a list that its versions share.

use std::sync::OnceLock;

use super::index::ChunkIndex;
use super::item::Item;

/// Items of a list, with an index that is computed when it is first needed.
pub(super) struct Chunk {
    items: Vec<Item>,
    index: OnceLock<Box<ChunkIndex>>,
}

impl From<Item> for Chunk {
    fn from(item: Item) -> Self {
        Self { items: vec![item], index: OnceLock::new() }
    }
}

/// A clone has no index, because it is made in order to change it.
impl Clone for Chunk {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), index: OnceLock::new() }
    }
}

impl Chunk {
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Appends an item.
    pub(super) fn push(&mut self, item: Item) {
        self.index.take();
        self.items.push(item);
    }

    /// Replaces the item at a position, which exists. Returns the old item.
    pub(super) fn replace(&mut self, place: usize, item: Item) -> Item {
        self.index.take();
        std::mem::replace(&mut self.items[place], item)
    }

    /// Returns true if the index is known and need not be computed.
    pub(super) fn is_indexed(&self) -> bool {
        self.index.get().is_some()
    }

    pub(super) fn index(&self) -> &ChunkIndex {
        self.index.get_or_init(|| Box::new(ChunkIndex::of(&self.items)))
    }
}
