//! A long-term memory with hooks before and after each call.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch, PutItem};

/// A call of the memory.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// Name of the method of [`Memory`].
    pub method: &'static str,
    /// The namespace or prefix of the call; empty for `sweep`.
    pub namespace: &'c [String],
}

/// Hooks that a test runs around the calls of a memory.
#[async_trait]
pub trait Hook: Send + Sync {
    /// Runs before each call. Its error fails the call.
    async fn before(&self, call: Call<'_>) -> Result<(), Failure> {
        let _ = call;
        Ok(())
    }

    /// Runs after each successful call. Its error replaces the result.
    async fn after(&self, call: Call<'_>) -> Result<(), Failure> {
        let _ = call;
        Ok(())
    }
}

/// A memory with hooks.
pub struct Hooked<H> {
    below: Arc<dyn Memory>,
    hook: H,
}

impl<H: Hook> Hooked<H> {
    /// Creates a memory with hooks over another memory.
    pub fn over(below: Arc<dyn Memory>, hook: H) -> Self {
        Self { below, hook }
    }

    async fn through<T: Send>(
        &self,
        method: &'static str,
        namespace: &[String],
        done: impl Future<Output = Result<T, Failure>> + Send,
    ) -> Result<T, Failure> {
        let call = Call { method, namespace };
        self.hook.before(call).await?;
        let answer = done.await?;
        self.hook.after(call).await?;
        Ok(answer)
    }
}

impl<H> Deref for Hooked<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.hook
    }
}

#[async_trait]
impl<H: Hook> Memory for Hooked<H> {
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        self.through("get", namespace, self.below.get(scope, namespace, key, now_ms)).await
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        self.through("peek", namespace, self.below.peek(scope, namespace, key, now_ms)).await
    }

    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure> {
        let namespace = item.namespace.clone();
        self.through("put", &namespace, self.below.put(scope, item, now_ms)).await
    }

    async fn compare_and_set(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let namespace = item.namespace.clone();
        let set = self.below.compare_and_set(scope, known, item, now_ms);
        self.through("compare_and_set", &namespace, set).await
    }

    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure> {
        self.through("delete", namespace, self.below.delete(scope, namespace, key)).await
    }

    async fn compare_and_delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let delete = self.below.compare_and_delete(scope, namespace, key, known, now_ms);
        self.through("compare_and_delete", namespace, delete).await
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &MemorySearch,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        self.through("search", &search.prefix, self.below.search(scope, search, now_ms)).await
    }

    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let listed = self.below.list(scope, namespace, after, limit, now_ms);
        self.through("list", namespace, listed).await
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        self.through("namespaces", &list.prefix, self.below.namespaces(scope, list, now_ms)).await
    }

    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure> {
        self.through("usage", prefix, self.below.usage(scope, prefix)).await
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        self.through("clear", prefix, self.below.clear(scope, prefix)).await
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        self.through("sweep", &[], self.below.sweep(now_ms)).await
    }
}
