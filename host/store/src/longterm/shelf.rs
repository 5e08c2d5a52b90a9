//! What is the same for all that can walk through their documents in the order of their places.

use std::ops::Range;

use wattle_graph::failure::Failure;
use wattle_run::limit::MEMORY_ANSWER_BYTES;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, Search};

use crate::longterm::find::{Answer, Finder};
use crate::longterm::list::{Lister, Step};
use crate::longterm::path;
use crate::longterm::record::{Place, Record};

/// Looks at a document: its path, its key, and what is kept of it.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], &str, Record) -> Result<Step, Failure> + 'v;

/// Documents in order.
pub(crate) trait Shelf {
    /// Visits documents in a range of paths for as long as the visitor wants.
    ///
    /// # Errors
    ///
    /// Those of the visitor, and those of what holds the documents.
    fn walk(&self, paths: Range<Vec<u8>>, visit: &mut Visit<'_>) -> Result<(), Failure>;

    /// Visits documents behind a place for as long as the visitor wants.
    ///
    /// # Errors
    ///
    /// As of [`Shelf::walk`].
    fn walk_behind(&self, place: &Place, visit: &mut Visit<'_>) -> Result<(), Failure>;
}

/// Finds documents.
///
/// # Errors
///
/// Those of [`Shelf::walk`] and `limit`.
pub(crate) fn search(
    shelf: &impl Shelf,
    scope: &MemoryScope,
    search: &Search,
    now_ms: i64,
) -> Result<Answer, Failure> {
    let mut finder = Finder::new(search, now_ms);
    shelf.walk(path::under(&path::encode(scope, &search.prefix)), &mut |path, key, record| {
        finder.offer((path.to_vec(), key.to_owned()), record)?;
        Ok(Step::Next)
    })?;
    finder.finish()
}

/// Documents of one namespace by their keys, up to the size of one answer.
pub(crate) struct Listing {
    path: Vec<u8>,
    limit: usize,
    now_ms: i64,
    bytes: usize,
    items: Vec<Item>,
}

impl Listing {
    /// Before any document.
    pub(crate) fn new(path: Vec<u8>, limit: usize, now_ms: i64) -> Self {
        Self { path, limit, now_ms, bytes: 0, items: Vec::new() }
    }

    /// Takes the next document; done when that is not of this namespace or one too many.
    ///
    /// # Errors
    ///
    /// `broken` if it is damaged.
    pub(crate) fn offer(
        &mut self,
        path: &[u8],
        key: &str,
        record: &Record,
    ) -> Result<Step, Failure> {
        let bytes = self.bytes.saturating_add(record.document.len());
        let is_too_large = bytes > MEMORY_ANSWER_BYTES && !self.items.is_empty();
        if path != self.path || self.items.len() >= self.limit || is_too_large {
            return Ok(Step::Done);
        }
        if record.is_alive(self.now_ms) {
            self.items.push(record.item(path, key)?);
            self.bytes = bytes;
        }
        Ok(Step::Next)
    }

    /// What was taken.
    pub(crate) fn finish(self) -> Vec<Item> {
        self.items
    }
}

/// Documents of a namespace behind a key.
///
/// # Errors
///
/// Those of [`Shelf::walk_behind`].
pub(crate) fn list(
    shelf: &impl Shelf,
    after: &Place,
    limit: usize,
    now_ms: i64,
) -> Result<Vec<Item>, Failure> {
    let mut listing = Listing::new(after.0.clone(), limit, now_ms);
    shelf.walk_behind(after, &mut |path, key, record| listing.offer(path, key, &record))?;
    Ok(listing.finish())
}

/// Lists namespaces.
///
/// # Errors
///
/// Those of [`Shelf::walk`] and `limit`.
pub(crate) fn namespaces(
    shelf: &impl Shelf,
    scope: &MemoryScope,
    list: &ListNamespaces,
    now_ms: i64,
) -> Result<Vec<Vec<String>>, Failure> {
    let mut lister = Lister::new(scope, list);
    let literal = path::encode(scope, path::literal(&list.prefix));
    shelf.walk(path::under(&literal), &mut |path, _, record| {
        lister.offer(path, record.is_alive(now_ms))
    })?;
    Ok(lister.finish())
}
