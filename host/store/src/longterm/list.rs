//! Which namespaces a list tells. Documents come in the order of their places, and the list says
//! which of them need not be looked at.

use wattle_graph::failure::Failure;
use wattle_run::ports::memory::{ListNamespaces, MemoryScope};

use crate::longterm::find::Budget;
use crate::longterm::path;

/// Where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// At the next document.
    Next,
    /// At the first document whose path is this one or after it.
    Skip(Vec<u8>),
    /// Nowhere.
    Done,
}

/// Takes documents in order and keeps the namespaces that a list answers with.
pub(crate) struct Lister<'l> {
    scope: &'l MemoryScope,
    list: &'l ListNamespaces,
    /// How many fitted before the page began.
    skipped: usize,
    namespaces: Vec<Vec<String>>,
    budget: Budget,
}

impl<'l> Lister<'l> {
    /// Before any document.
    pub(crate) fn new(scope: &'l MemoryScope, list: &'l ListNamespaces) -> Self {
        Self { scope, list, skipped: 0, namespaces: Vec::new(), budget: Budget::default() }
    }

    /// Looks at a document under the literal part of the prefix.
    ///
    /// # Errors
    ///
    /// `limit` if it is one too many.
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
            // Namespaces that are cut to this one come after it, and must not be listed again.
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

    /// The page that was asked for.
    pub(crate) fn finish(self) -> Vec<Vec<String>> {
        self.namespaces
    }
}
