//! Long-term memory without a file, for tests and for `kind = "memory"`. The documents are lost
//! when the process ends.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch, PutItem};

use crate::lock::lock;
use crate::memory::document::{CompareOutcome, DocumentKey, StoredDocument, stored_bytes};
use crate::memory::namespaces::ScanStep;
use crate::memory::path;
use crate::memory::scan::{self, DocumentScan, Visitor};

/// Long-term memory in the process. Clones share the documents.
#[derive(Clone, Debug, Default)]
pub struct VolatileMemory(Arc<Mutex<Documents>>);

#[derive(Debug, Default)]
struct Documents(BTreeMap<DocumentKey, StoredDocument>);

impl VolatileMemory {
    /// Creates a memory without documents.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Documents {
    /// Extends the sliding expiry of a document that a read or a search found.
    fn refresh_expiry(&mut self, doc_key: &DocumentKey, now_ms: i64) {
        if let Some(stored) = self.0.get_mut(doc_key)
            && let Some(expires_ms) = stored.refreshed_expiry(now_ms)
        {
            stored.expires_ms = Some(expires_ms);
        }
    }

    fn item(&self, doc_key: &DocumentKey, now_ms: i64) -> Result<Option<Item>, Failure> {
        let stored = self.0.get(doc_key).filter(|stored| stored.is_alive(now_ms));
        stored.map(|stored| stored.item(&doc_key.0, &doc_key.1)).transpose()
    }

    fn retain(&mut self, keep: impl Fn(&DocumentKey, &StoredDocument) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|doc_key, stored| keep(doc_key, stored));
        before - self.0.len()
    }
}

impl DocumentScan for Documents {
    fn scan(&self, mut paths: Range<Vec<u8>>, visit: &mut Visitor<'_>) -> Result<(), Failure> {
        'part: while paths.start < paths.end {
            let from = Bound::Included((paths.start.clone(), String::new()));
            let to = Bound::Excluded((paths.end.clone(), String::new()));
            for ((path, key), stored) in self.0.range((from, to)) {
                match visit(path, key, stored.clone())? {
                    ScanStep::Next => {}
                    ScanStep::Stop => return Ok(()),
                    ScanStep::SeekTo(next) => {
                        paths.start = next;
                        continue 'part;
                    }
                }
            }
            return Ok(());
        }
        Ok(())
    }

    fn scan_after(&self, doc_key: &DocumentKey, visit: &mut Visitor<'_>) -> Result<(), Failure> {
        let after = (Bound::Excluded(doc_key), Bound::Unbounded);
        for ((path, key), stored) in self.0.range::<DocumentKey, _>(after) {
            if matches!(visit(path, key, stored.clone())?, ScanStep::Stop) {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Memory for VolatileMemory {
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        let doc_key = (path::encode(scope, namespace), key.to_owned());
        let mut documents = lock(&self.0);
        documents.refresh_expiry(&doc_key, now_ms);
        documents.item(&doc_key, now_ms)
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        lock(&self.0).item(&(path::encode(scope, namespace), key.to_owned()), now_ms)
    }

    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure> {
        let doc_key = (path::encode(scope, &item.namespace), item.key.clone());
        let mut documents = lock(&self.0);
        let stored = StoredDocument::after_put(documents.0.get(&doc_key), &item, now_ms);
        documents.0.insert(doc_key, stored);
        Ok(())
    }

    async fn compare_and_set(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let doc_key = (path::encode(scope, &item.namespace), item.key.clone());
        let mut documents = lock(&self.0);
        let old = documents.0.get(&doc_key);
        let outcome = StoredDocument::compare_for_put(old, known, &item, now_ms);
        if outcome == CompareOutcome::Write {
            let stored = StoredDocument::after_put(old, &item, now_ms);
            documents.0.insert(doc_key, stored);
        }
        Ok(outcome != CompareOutcome::Conflict)
    }

    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure> {
        lock(&self.0).0.remove(&(path::encode(scope, namespace), key.to_owned()));
        Ok(())
    }

    async fn compare_and_delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let doc_key = (path::encode(scope, namespace), key.to_owned());
        let mut documents = lock(&self.0);
        let outcome = StoredDocument::compare_for_delete(documents.0.get(&doc_key), known, now_ms);
        if outcome == CompareOutcome::Write {
            documents.0.remove(&doc_key);
        }
        Ok(outcome != CompareOutcome::Conflict)
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &MemorySearch,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let mut documents = lock(&self.0);
        let page = scan::search(&*documents, scope, search, now_ms)?;
        for doc_key in &page.refreshed {
            documents.refresh_expiry(doc_key, now_ms);
        }
        Ok(page.items)
    }

    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let after = (path::encode(scope, namespace), after.to_owned());
        scan::list(&*lock(&self.0), &after, limit, now_ms)
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        scan::namespaces(&*lock(&self.0), scope, list, now_ms)
    }

    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure> {
        let paths = path::prefix_range(&path::encode(scope, prefix));
        let from = Bound::Included((paths.start, String::new()));
        let to = Bound::Excluded((paths.end, String::new()));
        let documents = lock(&self.0);
        let bytes = documents.0.range((from, to));
        Ok(bytes.map(|((path, key), stored)| stored_bytes(path, key, &stored.document)).sum())
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        let paths = path::prefix_range(&path::encode(scope, prefix));
        Ok(lock(&self.0).retain(|(path, _), _| !paths.contains(path)))
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        Ok(lock(&self.0).retain(|_, stored| stored.is_alive(now_ms)))
    }
}
