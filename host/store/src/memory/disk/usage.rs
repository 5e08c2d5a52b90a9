//! The bytes of the documents under prefixes of paths.
//!
//! The documents under a prefix are counted when their bytes are first requested. From then on the
//! writer keeps the number exact, so that later requests read nothing.

use std::collections::HashMap;
use std::mem;
use std::sync::Mutex;

use wattle_run::limit::METERED_OWNERS;

use crate::lock::lock;
use crate::memory::path;

/// A change of the bytes of a document, with the path of the document.
pub(crate) type ByteChange = (Vec<u8>, i64);

/// The bytes under the requested prefixes.
#[derive(Default)]
pub(crate) struct Usage(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    of: HashMap<Vec<u8>, Count>,
    last_id: u64,
}

/// The bytes under one prefix.
struct Count {
    /// Distinguishes this count from earlier and later counts under the same prefix.
    id: u64,
    /// `None` while the documents are counted.
    bytes: Option<u64>,
    /// Difference in bytes by the changes that the writer has committed since the count began.
    changed: i64,
}

impl Usage {
    /// Returns the bytes under a prefix, if they are known.
    pub(crate) fn cached(&self, prefix: &[u8]) -> Option<u64> {
        lock(&self.0).of.get(prefix)?.bytes
    }

    /// Begins to count. No commit happens while `begin_read` runs, so the effect of each commit is
    /// either in the bytes that the count reads or in `changed`. Returns the id of the count.
    ///
    /// # Errors
    ///
    /// The errors of `begin_read`.
    pub(crate) fn begin<T, E>(
        &self,
        prefix: &[u8],
        begin_read: impl FnOnce() -> Result<T, E>,
    ) -> Result<(u64, T), E> {
        let mut counts = lock(&self.0);
        let begun = begin_read()?;
        // Requests can name any number of tenants, so the map is bounded.
        if counts.of.len() >= METERED_OWNERS {
            counts.of.clear();
        }
        counts.last_id += 1;
        let id = counts.last_id;
        counts.of.insert(prefix.to_vec(), Count { id, bytes: None, changed: 0 });
        Ok((id, begun))
    }

    /// Ends a count with the bytes that were read. Returns the bytes including the changes since
    /// the count began.
    pub(crate) fn finish(&self, prefix: &[u8], id: u64, read: u64) -> u64 {
        let mut counts = lock(&self.0);
        let Some(count) = counts.of.get_mut(prefix).filter(|count| count.id == id) else {
            return read;
        };
        *count.bytes.insert(read.saturating_add_signed(count.changed))
    }

    /// Commits changes of documents.
    ///
    /// # Errors
    ///
    /// The errors of `commit`. After an error, all counts are discarded, because the content of the
    /// file is unknown.
    pub(crate) fn commit<E>(
        &self,
        changes: Vec<ByteChange>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut counts = lock(&self.0);
        // Removes all counts first, so that no count remains after an error or a panic.
        let mut of = mem::take(&mut counts.of);
        commit()?;
        if !of.is_empty() {
            for (path, change) in changes {
                apply(&mut of, &path, change);
            }
        }
        counts.of = of;
        Ok(())
    }
}

fn apply(of: &mut HashMap<Vec<u8>, Count>, path: &[u8], change: i64) {
    for prefix in path::prefixes(path) {
        if let Some(count) = of.get_mut(prefix) {
            match &mut count.bytes {
                Some(bytes) => *bytes = bytes.saturating_add_signed(change),
                None => count.changed = count.changed.saturating_add(change),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_run::ports::memory::MemoryScope;

    use super::*;

    fn path(parts: &[&str]) -> Vec<u8> {
        let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
        path::encode(&MemoryScope::Tenant(None), &parts)
    }

    fn change(usage: &Usage, parts: &[&str], bytes: i64, result: Result<(), ()>) {
        let _ = usage.commit(vec![(path(parts), bytes)], || result);
    }

    fn begin(usage: &Usage, parts: &[&str]) -> u64 {
        usage.begin(&path(parts), || Ok::<_, ()>(())).unwrap().0
    }

    #[test]
    fn count_includes_changes_since_its_beginning() {
        let usage = Usage::default();
        change(&usage, &["a", "b"], 100, Ok(()));
        let id = begin(&usage, &["a"]);
        change(&usage, &["a", "b"], 20, Ok(()));
        change(&usage, &["c"], 7, Ok(()));
        assert_eq!(usage.cached(&path(&["a"])), None);
        assert_eq!(usage.finish(&path(&["a"]), id, 100), 120);
        change(&usage, &["a"], -50, Ok(()));
        assert_eq!((usage.cached(&path(&["a"])), usage.cached(&path(&["c"]))), (Some(70), None));
    }

    #[test]
    fn outdated_count_is_not_kept() {
        let usage = Usage::default();
        let (first, second) = (begin(&usage, &["a"]), begin(&usage, &["a"]));
        assert_eq!(usage.finish(&path(&["a"]), first, 5), 5);
        assert_eq!(usage.cached(&path(&["a"])), None);
        assert_eq!(usage.finish(&path(&["a"]), second, 6), 6);
        assert_eq!(usage.cached(&path(&["a"])), Some(6));
    }

    #[test]
    fn failed_commit_discards_all_counts() {
        let usage = Usage::default();
        let id = begin(&usage, &["a"]);
        usage.finish(&path(&["a"]), id, 5);
        change(&usage, &["a"], 1, Err(()));
        assert_eq!(usage.cached(&path(&["a"])), None);
    }
}
