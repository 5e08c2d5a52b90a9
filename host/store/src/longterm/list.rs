//! Collects the namespaces of a listing from documents in key order, and decides which documents
//! the scan skips.

use wattle_graph::failure::Failure;
use wattle_run::ports::memory::{ListNamespaces, MemoryScope};

use crate::longterm::find::Budget;
use crate::longterm::path;

/// How a scan continues after a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// With the next document.
    Next,
    /// With the first document whose path is this one or after it.
    Skip(Vec<u8>),
    /// The scan ends.
    Done,
}

/// Collects the namespaces that a listing returns, from documents in key order.
pub(crate) struct Lister<'l> {
    scope: &'l MemoryScope,
    list: &'l ListNamespaces,
    /// Number of matches before the page.
    skipped: usize,
    namespaces: Vec<Vec<String>>,
    budget: Budget,
}

impl<'l> Lister<'l> {
    /// Creates a lister without namespaces.
    pub(crate) fn new(scope: &'l MemoryScope, list: &'l ListNamespaces) -> Self {
        Self { scope, list, skipped: 0, namespaces: Vec::new(), budget: Budget::default() }
    }

    /// Adds the namespace of a document under the literal part of the prefix.
    ///
    /// # Errors
    ///
    /// `limit` if the listing reads too many documents, `broken` if the path is damaged.
    pub(crate) fn offer(&mut self, path: &[u8], is_alive: bool) -> Result<Step, Failure> {
        if self.namespaces.len() >= self.list.limit {
            return Ok(Step::Done);
        }
        self.budget.count(0, &self.list.prefix)?;
        if !is_alive {
            return Ok(Step::Next);
        }
        let mut namespace = path::decode(path)?;
        let ListNamespaces { prefix, suffix, max_depth, offset, .. } = self.list;
        if !path::begins(&namespace, prefix) || !path::ends(&namespace, suffix) {
            return Ok(Step::Skip(path::past(path)));
        }
        let next = match max_depth {
            Some(depth) if *depth < namespace.len() => {
                namespace.truncate(*depth);
                path::past_all(&path::encode(self.scope, &namespace))
            }
            // Longer namespaces, which are cut to this one, come after it and must not be listed
            // again.
            Some(depth) if *depth == namespace.len() => path::past_all(path),
            _ => path::past(path),
        };
        if self.skipped < *offset {
            self.skipped += 1;
        } else {
            self.namespaces.push(namespace);
        }
        Ok(Step::Skip(next))
    }

    /// Returns the requested page.
    pub(crate) fn finish(self) -> Vec<Vec<String>> {
        self.namespaces
    }
}
