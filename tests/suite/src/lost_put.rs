//! A long-term memory whose next put is made and never answered, as if the host died right
//! behind it.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Notify;
use wattle_graph::failure::Failure;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, PutItem, Search};
use wattle_store::VolatileMemory;

/// A memory that loses the answer of one put.
#[derive(Default)]
pub struct LostPut {
    inner: VolatileMemory,
    losing: AtomicUsize,
    made: Notify,
    puts: AtomicUsize,
    reads: AtomicUsize,
}

impl LostPut {
    /// The next put is made and never answered.
    pub fn lose_next(&self) {
        self.losing.store(1, Ordering::SeqCst);
    }

    /// Waits until a put was made whose answer is lost.
    pub async fn lost(&self) {
        self.made.notified().await;
    }

    /// How many puts were made.
    pub fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    /// How many documents were read by their key.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Memory for LostPut {
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.get(scope, namespace, key, now_ms).await
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.peek(scope, namespace, key, now_ms).await
    }

    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        self.inner.put(scope, item, now_ms).await?;
        if self.losing.swap(0, Ordering::SeqCst) > 0 {
            self.made.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn put_if(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        self.inner.put_if(scope, known, item, now_ms).await
    }

    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        self.inner.list(scope, namespace, after, limit, now_ms).await
    }

    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure> {
        self.inner.delete(scope, namespace, key).await
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &Search,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        self.inner.search(scope, search, now_ms).await
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        self.inner.namespaces(scope, list, now_ms).await
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        self.inner.clear(scope, prefix).await
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        self.inner.sweep(now_ms).await
    }
}
