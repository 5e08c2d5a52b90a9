//! JSON bodies of the long-term memory endpoints.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_run::ports::memory::{Item, PutItem};

/// A document of the long-term memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryDocument {
    /// Namespace of the document, such as `["users", "42"]`.
    pub namespace: Vec<String>,
    /// Key of the document, unique in the namespace.
    pub key: String,
    /// Value of the document.
    pub value: Value,
    /// Time of the first write, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last write, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Fraction of the query words that the document contains, from 0 to 1; absent for a search
    /// without `query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl From<Item> for MemoryDocument {
    fn from(item: Item) -> Self {
        let Item { namespace, key, value, created_ms, updated_ms, score } = item;
        Self { namespace, key, value, created_ms, updated_ms, score }
    }
}

/// Request to write a document.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutMemoryDocument {
    /// Namespace of the document, with at least one part.
    pub namespace: Vec<String>,
    /// Key of the document.
    pub key: String,
    /// Value of the document.
    pub value: Value,
    /// Lifetime in milliseconds; unlimited by default.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// True if each read of the document, and each search that finds it, restarts the TTL.
    #[serde(default)]
    pub refresh_on_read: bool,
}

impl From<PutMemoryDocument> for PutItem {
    fn from(put: PutMemoryDocument) -> Self {
        let PutMemoryDocument { namespace, key, value, ttl_ms, refresh_on_read } = put;
        Self { namespace, key, value, ttl_ms, refresh_on_read }
    }
}

/// A search for documents.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySearchDocument {
    /// First parts of the namespaces to search.
    pub prefix: Vec<String>,
    /// Conditions on the fields of a document's value. Maps a field name to the wanted value, or to
    /// an object of the operators `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`.
    pub filter: Option<Value>,
    /// Words by which documents are ranked. A document with none of the words is not a result.
    pub query: Option<String>,
    /// Maximum number of documents, up to 500; 50 by default.
    pub limit: Option<usize>,
    /// Number of documents to skip.
    pub offset: usize,
}

/// The number of deleted documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ClearedDocument)]
pub struct ClearedMemoryDocument {
    /// Number of deleted documents.
    pub deleted: usize,
}
