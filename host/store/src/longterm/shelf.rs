//! The queries of all adapters with an ordered document scan.

use std::ops::Range;

use wattle_graph::failure::Failure;
use wattle_run::limit::MEMORY_ANSWER_BYTES;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch};

use crate::longterm::find::{Answer, Finder};
use crate::longterm::list::{Lister, Step};
use crate::longterm::path;
use crate::longterm::record::{Place, Record};

/// Visits a document with its path and key, and decides how the scan continues.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], &str, Record) -> Result<Step, Failure> + 'v;

/// Documents in the order of their paths and keys.
pub(crate) trait Shelf {
    /// Visits the documents in a range of paths until the visitor returns [`Step::Done`].
    ///
    /// # Errors
    ///
    /// Errors of the visitor and of the storage.
    fn walk(&self, paths: Range<Vec<u8>>, visit: &mut Visit<'_>) -> Result<(), Failure>;

    /// Visits the documents after a path and key until the visitor returns [`Step::Done`].
    ///
    /// # Errors
    ///
    /// As [`Shelf::walk`].
    fn walk_behind(&self, place: &Place, visit: &mut Visit<'_>) -> Result<(), Failure>;
}

/// Searches documents.
///
/// # Errors
///
/// Those of [`Shelf::walk`] and `limit`.
pub(crate) fn search(
    shelf: &impl Shelf,
    scope: &MemoryScope,
    search: &MemorySearch,
    now_ms: i64,
) -> Result<Answer, Failure> {
    let mut finder = Finder::new(search, now_ms);
    shelf.walk(path::under(&path::encode(scope, &search.prefix)), &mut |path, key, record| {
        finder.offer((path.to_vec(), key.to_owned()), record)?;
        Ok(Step::Next)
    })?;
    finder.finish()
}

/// Collects a page of one namespace by key, bounded by number and bytes.
pub(crate) struct Listing {
    path: Vec<u8>,
    limit: usize,
    now_ms: i64,
    bytes: usize,
    items: Vec<Item>,
}

impl Listing {
    /// Creates an empty page.
    pub(crate) fn new(path: Vec<u8>, limit: usize, now_ms: i64) -> Self {
        Self { path, limit, now_ms, bytes: 0, items: Vec::new() }
    }

    /// Adds the next document. Returns [`Step::Done`] if it belongs to another namespace or the
    /// page is full.
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

    /// Returns the page.
    pub(crate) fn finish(self) -> Vec<Item> {
        self.items
    }
}

/// Returns the documents of a namespace after a key.
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
