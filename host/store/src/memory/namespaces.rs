//! Collects the namespaces of a listing from documents in key order, and decides which documents
//! the scan skips.

use wattle_graph::failure::Failure;
use wattle_run::ports::memory::{ListNamespaces, MemoryScope};

use crate::memory::path;
use crate::memory::search::ScanBudget;

/// How a scan continues after a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScanStep {
    /// With the next document.
    Next,
    /// With the first document whose path is equal to this path or sorts after it.
    SeekTo(Vec<u8>),
    /// The scan ends.
    Stop,
}

/// Collects the namespaces that a listing returns, from documents in key order.
pub(crate) struct NamespaceCollector<'l> {
    scope: &'l MemoryScope,
    list: &'l ListNamespaces,
    /// Number of matches before the page.
    skipped: usize,
    namespaces: Vec<Vec<String>>,
    budget: ScanBudget,
}

impl<'l> NamespaceCollector<'l> {
    /// Creates a collector without namespaces.
    pub(crate) fn new(scope: &'l MemoryScope, list: &'l ListNamespaces) -> Self {
        Self { scope, list, skipped: 0, namespaces: Vec::new(), budget: ScanBudget::default() }
    }

    /// Adds the namespace of a document under the literal part of the prefix.
    ///
    /// # Errors
    ///
    /// `limit` if the listing reads too many documents, `broken` if the path is damaged.
    pub(crate) fn visit(&mut self, path: &[u8], is_alive: bool) -> Result<ScanStep, Failure> {
        if self.namespaces.len() >= self.list.limit {
            return Ok(ScanStep::Stop);
        }
        self.budget.count(0, &self.list.prefix)?;
        if !is_alive {
            return Ok(ScanStep::Next);
        }
        let mut namespace = path::decode(path)?;
        let ListNamespaces { prefix, suffix, max_depth, offset, .. } = self.list;
        if !path::matches_prefix(&namespace, prefix) || !path::matches_suffix(&namespace, suffix) {
            return Ok(ScanStep::SeekTo(path::successor(path)));
        }
        let next = match max_depth {
            Some(depth) if *depth < namespace.len() => {
                namespace.truncate(*depth);
                path::after_prefix(&path::encode(self.scope, &namespace))
            }
            // Skips the longer namespaces that follow: `max_depth` would cut each of them to this
            // namespace, which is already listed.
            Some(depth) if *depth == namespace.len() => path::after_prefix(path),
            _ => path::successor(path),
        };
        if self.skipped < *offset {
            self.skipped += 1;
        } else {
            self.namespaces.push(namespace);
        }
        Ok(ScanStep::SeekTo(next))
    }

    /// Returns the requested page.
    pub(crate) fn finish(self) -> Vec<Vec<String>> {
        self.namespaces
    }
}
