//! Documents of the long-term memory, and requests for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_run::ports::memory::{Item, PutItem};

/// A document that outlives threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryDocument {
    /// Its namespace, such as `["users", "42"]`.
    pub namespace: Vec<String>,
    /// Its key, unique in the namespace.
    pub key: String,
    /// The document.
    pub value: Value,
    /// When it was first written, milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last written, milliseconds since 1970.
    pub updated_ms: i64,
    /// Which share of the words searched for it holds, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl From<Item> for MemoryDocument {
    fn from(item: Item) -> Self {
        let Item { namespace, key, value, created_ms, updated_ms, score } = item;
        Self { namespace, key, value, created_ms, updated_ms, score }
    }
}

/// A document to be written.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutMemoryDocument {
    /// Its namespace, at least one part.
    pub namespace: Vec<String>,
    /// Its key.
    pub key: String,
    /// The document.
    pub value: Value,
    /// How long it is kept, in milliseconds; for ever without it.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// Whether a read or a search that finds it begins its time anew.
    #[serde(default)]
    pub refresh_on_read: bool,
}

impl From<PutMemoryDocument> for PutItem {
    fn from(put: PutMemoryDocument) -> Self {
        let PutMemoryDocument { namespace, key, value, ttl_ms, refresh_on_read } = put;
        Self { namespace, key, value, ttl_ms, refresh_on_read }
    }
}

/// What to look for in the memory.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySearchDocument {
    /// Only in namespaces that begin so.
    pub prefix: Vec<String>,
    /// Fields that must hold a value, or meet `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`.
    pub filter: Option<Value>,
    /// Words to rank by; documents with none of them are left out.
    pub query: Option<String>,
    /// At most so many, 500 at the most; 50 without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: usize,
}

/// How many documents were deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClearedDocument {
    /// How many.
    pub deleted: usize,
}
