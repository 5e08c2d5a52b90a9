//! Chunks: parts of a list that its versions share.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::index::ChunkIndex;
use super::item::{Item, id_hash};
use crate::message::{call_ids, result_call_id};

/// Items of a list, with an index that is computed when it is first needed.
pub(crate) struct Chunk {
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

    /// Returns the number of tool calls with an id.
    pub(crate) fn calls(&self) -> usize {
        self.index().calls
    }

    /// Returns true if a message requests a tool call with this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.index().call_ids.binary_search(&id_hash(id)).is_ok()
            && self.items.iter().any(|item| call_ids(&item.value).any(|(_, other)| other == id))
    }

    /// Returns the tool calls without a later result in the chunk, each as the position of its
    /// message in the chunk and its id. Of calls with the same id, only the first is returned.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = (usize, &str)> {
        self.index().open_calls.iter().filter_map(move |(place, call)| {
            let place = usize::from(*place);
            let calls = &self.items[place].value["tool_calls"];
            Some((place, calls[*call as usize]["id"].as_str()?))
        })
    }

    /// Removes the tool calls, by their ids, that have a result in the chunk. The time is that of
    /// the smaller set, the calls or the results.
    pub(crate) fn remove_with_result(&self, calls: &mut HashMap<&str, usize>) {
        let results: &[(u64, u8)] = &self.index().results;
        if calls.len() <= results.len() {
            calls.retain(|id, _| !self.has_result(id));
            return;
        }
        for (_, place) in results {
            if let Some(id) = result_call_id(&self.items[usize::from(*place)].value) {
                calls.remove(id);
            }
        }
    }

    fn has_result(&self, id: &str) -> bool {
        let (results, hash) = (&self.index().results, id_hash(id));
        let first = results.partition_point(|(other, _)| *other < hash);
        let mut found = results[first..].iter().take_while(|(other, _)| *other == hash);
        found.any(|(_, place)| result_call_id(&self.items[usize::from(*place)].value) == Some(id))
    }

    /// Returns the position in the chunk of the last user message.
    pub(crate) fn last_user(&self) -> Option<usize> {
        self.index().last_user.map(usize::from)
    }
}
