//! Port: the long-term memory, JSON documents under namespaces that all threads share.

mod check;
mod filter;

use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};

pub use check::check_key;
pub use filter::parse_filter;

use crate::json::approx_bytes;
use crate::limit::MEMORY_ROW_BYTES;
use crate::ports::store::Damage;

/// Matches any one part of a namespace in a pattern.
pub const WILDCARD: &str = "*";

/// The owner of documents. Tenants cannot see each other's documents. `None` means requests without
/// a tenant; their documents are not shared with tenants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryScope {
    /// Documents that guests and clients of a tenant read and write.
    Tenant(Option<String>),
    /// Documents that the host itself keeps for a tenant. Guests and clients have no access to this
    /// scope, so the host reads only what it wrote.
    Host(Option<String>),
}

impl MemoryScope {
    /// Returns the tenant of the scope.
    #[must_use]
    pub fn tenant(&self) -> Option<&String> {
        let (Self::Tenant(tenant) | Self::Host(tenant)) = self;
        tenant.as_ref()
    }
}

/// One document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Namespace, such as `["users", "42"]`; never empty.
    pub namespace: Vec<String>,
    /// Key, unique in the namespace.
    pub key: String,
    /// The document. Filters compare the fields of an object; other values have no fields.
    pub value: Value,
    /// Time of the first write, milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last write, milliseconds since 1970.
    pub updated_ms: i64,
    /// Score for the query of a search, from 0 to 1; `None` without a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A document to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PutItem {
    /// Namespace of the document.
    pub namespace: Vec<String>,
    /// Key of the document.
    pub key: String,
    /// The document.
    pub value: Value,
    /// Time to live in milliseconds. Unlimited if `None`.
    pub ttl_ms: Option<u64>,
    /// True if each read, and each search that finds the document, restarts the time to live.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refresh_on_read: bool,
}

impl PutItem {
    /// Returns the approximate number of bytes for which the document counts in the usage of a
    /// memory.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let place: usize = self.namespace.iter().chain([&self.key]).map(String::len).sum();
        MEMORY_ROW_BYTES + place as u64 + approx_bytes(&self.value)
    }
}

/// A query for documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemorySearch {
    /// Only namespaces with this prefix.
    pub prefix: Vec<String>,
    /// Conditions that must all hold.
    pub filter: Vec<Condition>,
    /// Words by which the documents are ranked. The score is the share of the words that occur in
    /// the key, field names or values of a document. Documents without any of the words are
    /// omitted.
    pub query: Option<String>,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
    /// True if the search does not restart the time to live of the documents that it finds, even if
    /// they have `refresh_on_read`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peek: bool,
}

/// One condition on a field of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// A field at the top level of the document. A missing field counts as `null`.
    pub field: String,
    /// How the field is compared with `value`.
    pub compare: Compare,
    /// The value that the field is compared with.
    pub value: Value,
}

/// The operator of a [`Condition`]. Only numbers and strings are ordered; other values are neither
/// greater nor less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Equal. Objects and arrays are compared as a whole.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
}

/// A query for namespaces, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListNamespaces {
    /// Only namespaces with this prefix; `*` matches any one part.
    pub prefix: Vec<String>,
    /// Only namespaces with this suffix; `*` matches any one part.
    pub suffix: Vec<String>,
    /// Truncates namespaces to this number of parts. Duplicates are listed once.
    pub max_depth: Option<usize>,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

/// Long-term memory. Namespaces and keys are arbitrary text, NUL included. Expired documents count
/// as deleted. Callers validate requests first (`check` of the requests, [`check_key`]), so that
/// every adapter can store them.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Reads one document.
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure>;

    /// Reads one document without a restart of its time to live, even if it has `refresh_on_read`.
    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure>;

    /// Writes one document. The document is durable when this method returns. An existing document
    /// keeps its `created_ms`.
    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure>;

    /// Compare-and-set: writes a document atomically if the stored value equals `known` (`None`: no
    /// document). The document is durable when this method returns. Returns true if the store holds
    /// the new value afterwards, so that a retry after a lost response is safe. Concurrent writers
    /// of the same value all get true.
    async fn compare_and_set(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure>;

    /// Deletes one document. The deletion is durable when this method returns. A missing document
    /// is not an error.
    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure>;

    /// Deletes a document atomically if the stored value equals `known`. The deletion is durable
    /// when this method returns. Returns true if there is no document afterwards, so that a retry
    /// after a lost response is safe.
    async fn compare_and_delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure>;

    /// Finds documents. With a query, the order is by score and then by newest update; without a
    /// query, by newest update. Fails with `limit` if there are too many documents to examine.
    async fn search(
        &self,
        scope: &MemoryScope,
        search: &MemorySearch,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure>;

    /// Reads the documents of one namespace, without those of longer namespaces, ordered by key: at
    /// most `limit` documents after the key `after`, fewer if they are large, and none after the
    /// last one. A document that exists during the whole listing is returned exactly once. Listing
    /// does not restart the time to live.
    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure>;

    /// Lists namespaces that hold a document. Fails with `limit` if there are too many documents to
    /// examine.
    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure>;

    /// Returns the number of bytes of all documents with a namespace prefix, including expired
    /// documents that the sweep has not deleted yet. A document counts with its namespace, its key,
    /// its JSON and [`MEMORY_ROW_BYTES`]. Called often, so an adapter should not read all documents
    /// each time.
    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure>;

    /// Deletes all documents with a namespace prefix. Returns their number, including expired
    /// documents.
    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure>;

    /// Deletes expired documents. Returns their number. The host calls this method every half
    /// minute.
    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure>;

    /// Reads all documents and returns what is damaged, and what was lost earlier. A memory without
    /// a file of its own leaves this check to the system that stores its bytes.
    async fn find_damage(&self) -> Result<Vec<Damage>, Failure> {
        Ok(Vec::new())
    }

    /// Writes a consistent snapshot of all documents to an existing folder.
    async fn backup(&self, folder: &Path) -> Result<(), Failure> {
        let _ = folder;
        let message = "only a memory in a file is backed up; use `pg_dump` for a database";
        Err(Failure::new(code::UNSUPPORTED, message))
    }
}
