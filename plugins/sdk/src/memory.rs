//! Long-term memory across threads: JSON documents, each with a namespace and a key.
//!
//! A plugin can access the granted namespaces of the tenant for which it runs. Reads are journaled,
//! so a node that is executed again reads the same documents. Writes are idempotent.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::{Failure, memory, testing::FakeHost};
//!
//! FakeHost::new().run(|| {
//!     memory::put(&["users", "42"], "language", json!("de"))?;
//!     let item = memory::get(&["users", "42"], "language")?;
//!     assert_eq!(item.map(|item| item.value), Some(json!("de")));
//!     let found = memory::Search::under(&["users"]).limit(10).run()?;
//!     assert_eq!(found.len(), 1);
//!     memory::delete(&["users", "42"], "language")
//! })?;
//! # Ok::<_, Failure>(())
//! ```

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::json::{self, Extra};

/// Default maximum number of search results.
const DEFAULT_LIMIT: u32 = 20;

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Namespace, such as `["users", "42"]`.
    pub namespace: Vec<String>,
    /// Key of the document, unique in the namespace.
    pub key: String,
    /// Value of the document.
    pub value: Value,
    /// Time of the first write, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last write, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Fraction of the query words that the document contains, from 0 to 1; `None` without a query.
    pub score: Option<f64>,
}

impl Item {
    /// Returns the value as a type.
    pub fn value_as<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::from_value(&format!("the document `{}`", self.key), &self.value)
    }
}

/// Reads a document. Returns `None` if it does not exist or has expired.
pub fn get(namespace: &[&str], key: &str) -> Result<Option<Item>, Failure> {
    host::memory::get(&owned(namespace), key)
}

/// Writes a document without expiry. Replaces an existing document.
pub fn put(namespace: &[&str], key: &str, value: impl Into<Value>) -> Result<(), Failure> {
    host::memory::put(&owned(namespace), key, value.into(), None)
}

/// Writes a document that expires after `ttl_ms` milliseconds.
///
/// ```
/// use wattle_plugin::{Failure, memory, testing::FakeHost};
///
/// FakeHost::new().now_ms(0).run(|| {
///     memory::put_for(&["users", "42"], "cart", "tea", 60_000)?;
///     assert!(memory::get(&["users", "42"], "cart")?.is_some());
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn put_for(
    namespace: &[&str],
    key: &str,
    value: impl Into<Value>,
    ttl_ms: u64,
) -> Result<(), Failure> {
    host::memory::put(&owned(namespace), key, value.into(), Some(ttl_ms))
}

/// Writes a document with a sliding expiry: it expires `ttl_ms` milliseconds after the last read or
/// search that returned it.
///
/// ```
/// use wattle_plugin::{Failure, memory, testing::FakeHost};
///
/// let host = FakeHost::new().now_ms(0);
/// host.run(|| {
///     memory::put_while_read(&["users", "42"], "cart", "tea", 60_000)?;
///     for _ in 0..3 {
///         host.advance_ms(50_000);
///         assert!(memory::get(&["users", "42"], "cart")?.is_some());
///     }
///     host.advance_ms(60_000);
///     assert!(memory::get(&["users", "42"], "cart")?.is_none());
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn put_while_read(
    namespace: &[&str],
    key: &str,
    value: impl Into<Value>,
    ttl_ms: u64,
) -> Result<(), Failure> {
    host::memory::put_while_read(&owned(namespace), key, value.into(), ttl_ms)
}

/// Deletes a document. Succeeds even if the document does not exist.
pub fn delete(namespace: &[&str], key: &str) -> Result<(), Failure> {
    host::memory::delete(&owned(namespace), key)
}

/// Lists the namespaces under a prefix that contain documents, sorted by name: at most `limit`,
/// after the first `offset`. Namespaces longer than `max_depth` are truncated. A `*` in the prefix
/// matches any single part.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::{Failure, memory, testing::FakeHost};
///
/// FakeHost::new().run(|| {
///     memory::put(&["users", "42"], "language", json!("de"))?;
///     assert_eq!(memory::list_namespaces(&["users"], None, 10, 0)?, [["users", "42"]]);
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn list_namespaces(
    prefix: &[&str],
    max_depth: Option<u32>,
    limit: u32,
    offset: u32,
) -> Result<Vec<Vec<String>>, Failure> {
    host::memory::list_namespaces(&owned(prefix), max_depth, limit, offset)
}

/// A search for documents.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::{Failure, memory, testing::FakeHost};
///
/// FakeHost::new().run(|| {
///     memory::put(&["facts"], "tea", json!({"text": "She likes green tea", "sure": 0.9}))?;
///     memory::put(&["facts"], "dog", json!({"text": "She has a dog", "sure": 0.2}))?;
///     let sure = memory::Search::under(&["facts"]).filter(json!({"sure": {"$gte": 0.5}})).run()?;
///     assert_eq!(sure[0].key, "tea");
///     let found = memory::Search::under(&["facts"]).query("green tea").run()?;
///     assert_eq!((found[0].key.as_str(), found[0].score), ("tea", Some(1.0)));
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Search {
    /// Prefix of the namespaces to search.
    pub prefix: Vec<String>,
    /// JSON object that maps each field to a value, or to operators and values such as
    /// `{"$gt": value}`. The operators are `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`. All
    /// conditions must hold. A missing field is treated as `null`.
    pub filter: Option<Value>,
    /// Words by which documents are ranked. Documents with more of the words come first, and
    /// documents without any are not results. Without a query, the most recently written documents
    /// come first.
    pub query: Option<String>,
    /// Maximum number of documents to return.
    pub limit: u32,
    /// Number of documents to skip.
    pub offset: u32,
    /// Extension fields.
    pub extra: Extra,
}

impl Search {
    /// Creates a search under a namespace prefix for the first 20 documents.
    pub fn under(prefix: &[&str]) -> Self {
        Self { prefix: owned(prefix), limit: DEFAULT_LIMIT, ..Self::default() }
    }

    /// Sets the filter on fields of the documents.
    pub fn filter(mut self, filter: Value) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Ranks documents by the words of a query.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// Sets the maximum number of documents to return.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the number of documents to skip.
    pub fn offset(mut self, offset: u32) -> Self {
        self.offset = offset;
        self
    }

    /// Runs the search.
    ///
    /// # Errors
    ///
    /// `invalid` if the filter has an unknown operator.
    pub fn run(self) -> Result<Vec<Item>, Failure> {
        host::memory::search(self)
    }
}

fn owned(namespace: &[&str]) -> Vec<String> {
    namespace.iter().map(|&part| part.to_owned()).collect()
}
