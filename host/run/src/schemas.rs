//! A cache of compiled schemas.
//!
//! Nodes raise interrupts with the same response schema, call the same tools and ask models for the
//! same documents again and again. Compiling a schema takes milliseconds, and up to half a second
//! if it has many patterns. The cache keeps compiled schemas by the digest of their text. For a
//! schema that cannot be compiled, it keeps the error.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use wattle_graph::id::Digest;
use wattle_graph::limit::SCHEMA_BYTES;
use wattle_graph::schema::{Formats, Schema, SchemaError, SchemaSource};

use crate::blocking::{are_large_schemas, block_in_place_in_turn};
use crate::json::approx_bytes;
use crate::memory_budget::CacheBudget;
use crate::meter::WorkOwner;

/// A compiled schema, or the reason why it cannot be compiled.
type Compiled = Result<Arc<Schema>, SchemaError>;

/// Compiled schemas. The least recently used schemas are removed when the memory of all of them
/// exceeds the capacity. A schema that alone exceeds the capacity is compiled every time.
#[derive(Debug)]
pub struct SchemaCache {
    capacity_bytes: u64,
    entries: Mutex<Entries>,
}

impl Default for SchemaCache {
    /// Creates a cache with the capacity of the [default budget](CacheBudget::default).
    fn default() -> Self {
        Self::with_capacity(CacheBudget::default().schemas_bytes)
    }
}

impl SchemaCache {
    /// Creates a cache of schemas that take at most `capacity_bytes` in memory.
    #[must_use]
    pub fn with_capacity(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, entries: Mutex::default() }
    }

    /// Returns a compiled schema. Compiles a large schema in a turn of the owner, off the threads
    /// that tasks share.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the value is not a JSON Schema, or exceeds a limit.
    pub async fn compile(
        &self,
        owner: impl Into<WorkOwner>,
        schema: &Value,
        formats: Formats,
    ) -> Compiled {
        let Some(key) = Key::of(schema, formats) else { return compile(schema, formats) };
        let known = self.entries().get(key);
        if let Some(known) = known {
            return known;
        }
        let is_long = are_large_schemas([schema]);
        block_in_place_in_turn(owner, is_long, || self.compile_new(key, schema)).await
    }

    /// Compiles a schema that is not in the cache, unless another caller has done so meanwhile.
    fn compile_new(&self, key: Key, schema: &Value) -> Compiled {
        let known = self.entries().get(key);
        if let Some(known) = known {
            return known;
        }
        let compiled = compile(schema, key.formats);
        let removed = self.entries().insert(key, compiled.clone(), self.capacity_bytes);
        // The lock is released before the removed schemas are freed, because that takes a while.
        drop(removed);
        compiled
    }

    /// Locks the entries. No code that can panic runs under this lock.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SchemaSource for SchemaCache {
    fn compiled(&self, schema: &Value, formats: Formats) -> Compiled {
        let Some(key) = Key::of(schema, formats) else { return compile(schema, formats) };
        self.compile_new(key, schema)
    }
}

fn compile(schema: &Value, formats: Formats) -> Compiled {
    let compiled = match formats {
        Formats::OfDraft => Schema::compile(schema),
        Formats::Enforced => Schema::compile_with_formats(schema),
    };
    compiled.map(Arc::new)
}

/// The text of a schema, and how it was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    digest: Digest,
    formats: Formats,
}

impl Key {
    /// Returns the key of a schema; `None` if the schema is certainly too large, because rejecting
    /// it is faster than computing its digest.
    fn of(schema: &Value, formats: Formats) -> Option<Self> {
        let is_possible = approx_bytes(schema) <= 2 * SCHEMA_BYTES;
        let digest = || Digest::of(schema.to_string().as_bytes());
        is_possible.then(|| Self { digest: digest(), formats })
    }
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// Keys by their last use, least recent first.
    by_use: BTreeMap<u64, Key>,
    /// Number of uses so far, which numbers the next use.
    uses: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    compiled: Compiled,
    bytes: u64,
    last_use: u64,
}

impl Entries {
    fn get(&mut self, key: Key) -> Option<Compiled> {
        let entry = self.by_key.get_mut(&key)?;
        self.by_use.remove(&entry.last_use);
        self.uses += 1;
        entry.last_use = self.uses;
        self.by_use.insert(entry.last_use, key);
        Some(entry.compiled.clone())
    }

    /// Adds a schema. Returns the entries that it replaces.
    fn insert(&mut self, key: Key, compiled: Compiled, capacity_bytes: u64) -> Vec<Entry> {
        let bytes = weight(&compiled);
        if bytes > capacity_bytes {
            return Vec::new();
        }
        // Another caller may have added the same schema.
        let mut removed = Vec::from_iter(self.remove(key));
        while self.bytes + bytes > capacity_bytes {
            let oldest = self.by_use.first_key_value().map(|(_, key)| *key);
            let Some(oldest) = oldest else { break };
            removed.extend(self.remove(oldest));
        }
        self.uses += 1;
        self.by_use.insert(self.uses, key);
        self.by_key.insert(key, Entry { compiled, bytes, last_use: self.uses });
        self.bytes += bytes;
        removed
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.by_key.remove(&key)?;
        self.by_use.remove(&entry.last_use);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

/// Returns the memory of an entry, in bytes.
fn weight(compiled: &Compiled) -> u64 {
    /// Memory of the entry itself.
    const ENTRY: u64 = 500;
    ENTRY
        + match compiled {
            Ok(schema) => schema.memory(),
            Err(error) => error.to_string().len() as u64,
        }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;
    use serde_json::json;

    use super::*;
    use crate::blocking::hold_all_turns;
    use crate::caller_id::CallerId;

    fn schema(number: usize) -> Value {
        json!({ "type": "object", "title": format!("schema {number}") })
    }

    #[tokio::test]
    async fn equal_schemas_are_compiled_once() {
        let cache = SchemaCache::default();
        let dated = json!({ "format": "date", "pattern": "^2" });
        let first = cache.compile(CallerId::default(), &dated, Formats::OfDraft).await.unwrap();
        let again =
            cache.compile(CallerId::default(), &dated.clone(), Formats::OfDraft).await.unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(Arc::ptr_eq(&first, &cache.compiled(&dated, Formats::OfDraft).unwrap()));
        let strict = cache.compiled(&dated, Formats::Enforced).unwrap();
        assert!(strict.validate(&json!("2x")).is_err() && first.validate(&json!("2x")).is_ok());
        let other = cache.compile(CallerId::default(), &schema(1), Formats::OfDraft).await.unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[tokio::test]
    async fn large_schemas_that_are_not_in_the_cache_wait_for_their_turn() {
        let cache = SchemaCache::default();
        let (large, small) = (json!({ "pattern": "^[a-z]+[0-9]$" }), schema(1));
        let held = hold_all_turns().await;
        let mut waiting = pin!(cache.compile(CallerId::default(), &large, Formats::OfDraft));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert!(cache.compile(CallerId::default(), &small, Formats::OfDraft).await.is_ok());
        drop(held);
        let compiled = waiting.await.unwrap();
        let _held = hold_all_turns().await;
        let again = cache.compile(CallerId::default(), &large, Formats::OfDraft).await.unwrap();
        assert!(Arc::ptr_eq(&compiled, &again));
    }

    #[tokio::test]
    async fn schema_errors_are_cached_except_for_schemas_that_are_too_large() {
        let cache = SchemaCache::default();
        let broken = json!({ "type": "nothing" });
        let error =
            cache.compile(CallerId::default(), &broken, Formats::OfDraft).await.unwrap_err();
        assert_eq!(
            cache.compile(CallerId::default(), &broken, Formats::OfDraft).await.unwrap_err(),
            error
        );
        assert_eq!(cache.entries().by_key.len(), 1);
        let large = json!({ "title": "x".repeat(1 << 20) });
        let error = cache.compile(CallerId::default(), &large, Formats::OfDraft).await.unwrap_err();
        assert!(matches!(error, SchemaError::Limit(_)), "{error}");
        assert_eq!(cache.entries().by_key.len(), 1);
    }

    #[test]
    fn least_recently_used_schemas_are_removed() {
        let one = weight(&compile(&schema(1), Formats::OfDraft));
        let cache = SchemaCache::with_capacity(3 * one);
        let compiled = |number| cache.compiled(&schema(number), Formats::OfDraft).unwrap();
        let (first, second) = (compiled(1), compiled(2));
        compiled(3);
        assert!(Arc::ptr_eq(&first, &compiled(1)));
        compiled(4);
        assert_eq!(cache.entries().by_key.len(), 3);
        assert!(cache.entries().bytes <= cache.capacity_bytes);
        assert!(Arc::ptr_eq(&first, &compiled(1)));
        assert!(!Arc::ptr_eq(&second, &compiled(2)), "schema 2 was the least recently used");
        let heavy = json!({ "pattern": "^[a-z]+[0-9]$" });
        cache.compiled(&heavy, Formats::OfDraft).unwrap();
        assert_eq!(cache.entries().by_key.len(), 3, "the schema alone exceeds the capacity");
    }
}
