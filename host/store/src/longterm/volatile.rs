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
use crate::longterm::list::Step;
use crate::longterm::path;
use crate::longterm::record::{Place, Record, Swap, stored_bytes};
use crate::longterm::shelf::{self, Shelf, Visit};

/// Long-term memory in the process. Clones share the documents.
#[derive(Clone, Debug, Default)]
pub struct VolatileMemory(Arc<Mutex<Documents>>);

#[derive(Debug, Default)]
struct Documents(BTreeMap<Place, Record>);

impl VolatileMemory {
    /// Creates a memory without documents.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Documents {
    /// Extends the sliding expiry of a document that a read or a search found.
    fn touch(&mut self, place: &Place, now_ms: i64) {
        if let Some(record) = self.0.get_mut(place)
            && let Some(expires_ms) = record.refreshed(now_ms)
        {
            record.expires_ms = Some(expires_ms);
        }
    }

    fn item(&self, place: &Place, now_ms: i64) -> Result<Option<Item>, Failure> {
        let record = self.0.get(place).filter(|record| record.is_alive(now_ms));
        record.map(|record| record.item(&place.0, &place.1)).transpose()
    }

    fn retain(&mut self, keep: impl Fn(&Place, &Record) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|place, record| keep(place, record));
        before - self.0.len()
    }
}

impl Shelf for Documents {
    fn walk(&self, mut paths: Range<Vec<u8>>, visit: &mut Visit<'_>) -> Result<(), Failure> {
        'part: while paths.start < paths.end {
            let from = Bound::Included((paths.start.clone(), String::new()));
            let to = Bound::Excluded((paths.end.clone(), String::new()));
            for ((path, key), record) in self.0.range((from, to)) {
                match visit(path, key, record.clone())? {
                    Step::Next => {}
                    Step::Done => return Ok(()),
                    Step::Skip(next) => {
                        paths.start = next;
                        continue 'part;
                    }
                }
            }
            return Ok(());
        }
        Ok(())
    }

    fn walk_behind(&self, place: &Place, visit: &mut Visit<'_>) -> Result<(), Failure> {
        let behind = (Bound::Excluded(place), Bound::Unbounded);
        for ((path, key), record) in self.0.range::<Place, _>(behind) {
            if matches!(visit(path, key, record.clone())?, Step::Done) {
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
        let place = (path::encode(scope, namespace), key.to_owned());
        let mut documents = lock(&self.0);
        documents.touch(&place, now_ms);
        documents.item(&place, now_ms)
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
        let place = (path::encode(scope, &item.namespace), item.key.clone());
        let mut documents = lock(&self.0);
        let record = Record::after(documents.0.get(&place), &item, now_ms);
        documents.0.insert(place, record);
        Ok(())
    }

    async fn compare_and_set(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let place = (path::encode(scope, &item.namespace), item.key.clone());
        let mut documents = lock(&self.0);
        let old = documents.0.get(&place);
        let swap = Record::swap(old, known, &item, now_ms);
        if swap == Swap::Write {
            let record = Record::after(old, &item, now_ms);
            documents.0.insert(place, record);
        }
        Ok(swap != Swap::Refuse)
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
        let place = (path::encode(scope, namespace), key.to_owned());
        let mut documents = lock(&self.0);
        let removal = Record::removal(documents.0.get(&place), known, now_ms);
        if removal == Swap::Write {
            documents.0.remove(&place);
        }
        Ok(removal != Swap::Refuse)
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &MemorySearch,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let mut documents = lock(&self.0);
        let answer = shelf::search(&*documents, scope, search, now_ms)?;
        for place in &answer.refreshed {
            documents.touch(place, now_ms);
        }
        Ok(answer.items)
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
        shelf::list(&*lock(&self.0), &after, limit, now_ms)
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        shelf::namespaces(&*lock(&self.0), scope, list, now_ms)
    }

    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure> {
        let paths = path::under(&path::encode(scope, prefix));
        let from = Bound::Included((paths.start, String::new()));
        let to = Bound::Excluded((paths.end, String::new()));
        let documents = lock(&self.0);
        let bytes = documents.0.range((from, to));
        Ok(bytes.map(|((path, key), record)| stored_bytes(path, key, &record.document)).sum())
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        let paths = path::under(&path::encode(scope, prefix));
        Ok(lock(&self.0).retain(|(path, _), _| !paths.contains(path)))
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        Ok(lock(&self.0).retain(|_, record| record.is_alive(now_ms)))
    }
}
