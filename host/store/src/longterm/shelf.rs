//! What is the same for all that can walk through their documents in the order of their places.

use std::ops::Range;

use wattle_graph::failure::Failure;
use wattle_run::ports::memory::{ListNamespaces, MemoryScope, Search};

use crate::longterm::find::{Answer, Finder};
use crate::longterm::list::{Lister, Step};
use crate::longterm::path;
use crate::longterm::record::Record;

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
