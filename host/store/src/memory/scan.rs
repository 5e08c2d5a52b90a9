//! The queries of the adapters that can scan documents in order.

use std::ops::Range;

use wattle_graph::failure::Failure;
use wattle_run::limit::MEMORY_ANSWER_BYTES;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch};

use crate::memory::document::{DocumentKey, StoredDocument};
use crate::memory::namespaces::{NamespaceCollector, ScanStep};
use crate::memory::path;
use crate::memory::search::{SearchCollector, SearchPage};

/// Visits a document with its path and key, and decides how the scan continues.
pub(crate) type Visitor<'v> =
    dyn FnMut(&[u8], &str, StoredDocument) -> Result<ScanStep, Failure> + 'v;

/// Documents in the order of their paths and keys.
pub(crate) trait DocumentScan {
    /// Visits the documents in a range of paths until the visitor returns [`ScanStep::Stop`].
    ///
    /// # Errors
    ///
    /// Errors of the visitor and of the storage.
    fn scan(&self, paths: Range<Vec<u8>>, visit: &mut Visitor<'_>) -> Result<(), Failure>;

    /// Visits the documents after a path and key until the visitor returns [`ScanStep::Stop`].
    ///
    /// # Errors
    ///
    /// The errors of [`DocumentScan::scan`].
    fn scan_after(&self, doc_key: &DocumentKey, visit: &mut Visitor<'_>) -> Result<(), Failure>;
}

/// Searches documents.
///
/// # Errors
///
/// The errors of [`DocumentScan::scan`], and `limit` if too many documents would be read.
pub(crate) fn search(
    documents: &impl DocumentScan,
    scope: &MemoryScope,
    search: &MemorySearch,
    now_ms: i64,
) -> Result<SearchPage, Failure> {
    let mut collector = SearchCollector::new(search, now_ms);
    documents.scan(
        path::prefix_range(&path::encode(scope, &search.prefix)),
        &mut |path, key, stored| {
            collector.collect((path.to_vec(), key.to_owned()), stored)?;
            Ok(ScanStep::Next)
        },
    )?;
    collector.finish()
}

/// Collects a page of the documents of one namespace in the order of their keys. The page is
/// limited by the number and the bytes of its documents.
pub(crate) struct PageCollector {
    path: Vec<u8>,
    limit: usize,
    now_ms: i64,
    bytes: usize,
    items: Vec<Item>,
}

impl PageCollector {
    /// Creates an empty page.
    pub(crate) fn new(path: Vec<u8>, limit: usize, now_ms: i64) -> Self {
        Self { path, limit, now_ms, bytes: 0, items: Vec::new() }
    }

    /// Adds the next document. Returns [`ScanStep::Stop`] if the document belongs to another
    /// namespace or the page is full.
    ///
    /// # Errors
    ///
    /// `broken` if the document is damaged.
    pub(crate) fn push(
        &mut self,
        path: &[u8],
        key: &str,
        stored: &StoredDocument,
    ) -> Result<ScanStep, Failure> {
        let bytes = self.bytes.saturating_add(stored.document.len());
        let is_too_large = bytes > MEMORY_ANSWER_BYTES && !self.items.is_empty();
        if path != self.path || self.items.len() >= self.limit || is_too_large {
            return Ok(ScanStep::Stop);
        }
        if stored.is_alive(self.now_ms) {
            self.items.push(stored.item(path, key)?);
            self.bytes = bytes;
        }
        Ok(ScanStep::Next)
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
/// The errors of [`DocumentScan::scan_after`].
pub(crate) fn list(
    documents: &impl DocumentScan,
    after: &DocumentKey,
    limit: usize,
    now_ms: i64,
) -> Result<Vec<Item>, Failure> {
    let mut collector = PageCollector::new(after.0.clone(), limit, now_ms);
    documents.scan_after(after, &mut |path, key, stored| collector.push(path, key, &stored))?;
    Ok(collector.finish())
}

/// Lists namespaces.
///
/// # Errors
///
/// The errors of [`DocumentScan::scan`], and `limit` if too many documents would be read.
pub(crate) fn namespaces(
    documents: &impl DocumentScan,
    scope: &MemoryScope,
    list: &ListNamespaces,
    now_ms: i64,
) -> Result<Vec<Vec<String>>, Failure> {
    let mut collector = NamespaceCollector::new(scope, list);
    let literal = path::encode(scope, path::literal_prefix(&list.prefix));
    documents.scan(path::prefix_range(&literal), &mut |path, _, stored| {
        collector.visit(path, stored.is_alive(now_ms))
    })?;
    Ok(collector.finish())
}
