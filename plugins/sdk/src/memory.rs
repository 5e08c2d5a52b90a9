//! Long-term memory across threads: JSON documents under namespaces.
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

/// Documents that a search returns if it does not say how many it wants.
const DEFAULT_LIMIT: u32 = 20;

/// One document.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// A path such as `["users", "42"]`.
    pub namespace: Vec<String>,
    /// Its name there.
    pub key: String,
    /// The document.
    pub value: Value,
    /// When it was first written.
    pub created_ms: i64,
    /// When it was last written.
    pub updated_ms: i64,
    /// Relevance, on search results.
    pub score: Option<f64>,
}

impl Item {
    /// The document as a type.
    pub fn value_as<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::from_value(&format!("the document `{}`", self.key), &self.value)
    }
}

/// Reads one document.
pub fn get(namespace: &[&str], key: &str) -> Result<Option<Item>, Failure> {
    host::memory::get(&owned(namespace), key)
}

/// Writes one document.
pub fn put(namespace: &[&str], key: &str, value: impl Into<Value>) -> Result<(), Failure> {
    host::memory::put(&owned(namespace), key, value.into(), None)
}

/// Writes one document that expires.
pub fn put_for(
    namespace: &[&str],
    key: &str,
    value: impl Into<Value>,
    ttl_ms: u64,
) -> Result<(), Failure> {
    host::memory::put(&owned(namespace), key, value.into(), Some(ttl_ms))
}

/// Deletes one document; not an error if it is missing.
pub fn delete(namespace: &[&str], key: &str) -> Result<(), Failure> {
    host::memory::delete(&owned(namespace), key)
}

/// Lists up to `limit` namespaces under a prefix, cut at a depth if one is given.
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

/// What to look for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Search {
    /// Only documents under this path.
    pub prefix: Vec<String>,
    /// JSON object of field to value, or `{"$gt": value}` and the like.
    pub filter: Option<Value>,
    /// Words, for a search by relevance.
    pub query: Option<String>,
    /// Most documents to return.
    pub limit: u32,
    /// Documents to skip.
    pub offset: u32,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Search {
    /// Everything under a path, the first 20.
    pub fn under(prefix: &[&str]) -> Self {
        Self { prefix: owned(prefix), limit: DEFAULT_LIMIT, ..Self::default() }
    }

    /// Only documents with these fields.
    pub fn filter(mut self, filter: Value) -> Self {
        self.filter = Some(filter);
        self
    }

    /// By relevance to these words.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// Most documents to return.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Documents to skip.
    pub fn offset(mut self, offset: u32) -> Self {
        self.offset = offset;
        self
    }

    /// Searches.
    pub fn run(self) -> Result<Vec<Item>, Failure> {
        host::memory::search(self)
    }
}

fn owned(namespace: &[&str]) -> Vec<String> {
    namespace.iter().map(|&part| part.to_owned()).collect()
}
