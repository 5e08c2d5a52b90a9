//! Long-term memory across threads: JSON documents under namespaces.
//!
//! A plugin sees the namespaces that its grant names, of the tenant for whom it works. Reads are
//! journaled: a node that is executed again sees what it saw. Writes are safe to repeat.
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

/// Writes one document, in place of the one that is there. It is kept until it is deleted.
pub fn put(namespace: &[&str], key: &str, value: impl Into<Value>) -> Result<(), Failure> {
    host::memory::put(&owned(namespace), key, value.into(), None)
}

/// Writes one document that is as good as deleted after `ttl_ms` milliseconds.
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

/// Writes one document that is as good as deleted once nobody has read or found it for `ttl_ms`
/// milliseconds.
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

/// Deletes one document; not an error if it is missing.
pub fn delete(namespace: &[&str], key: &str) -> Result<(), Failure> {
    host::memory::delete(&owned(namespace), key)
}

/// Lists up to `limit` namespaces under a prefix, cut at a depth if one is given. A `*` in the
/// prefix matches any one part.
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
    /// Only documents under this path.
    pub prefix: Vec<String>,
    /// JSON object of field to value, or to operators such as `{"$gt": value}`: `$eq`, `$ne`,
    /// `$gt`, `$gte`, `$lt`, `$lte`. All must hold; a missing field is like `null`.
    pub filter: Option<Value>,
    /// Words to rank by: the share of them that a document holds. Documents with none are left
    /// out. Without words the newest update comes first.
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

    /// Only documents whose fields fit.
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
