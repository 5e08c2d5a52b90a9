//! Port: the long-term memory of agents, JSON documents under namespaces, shared by all threads.

mod check;
mod filter;

use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};

pub use check::check_place;
pub use filter::parse_filter;

use crate::ports::store::Damage;

/// Stands for any one part of a namespace in a pattern.
pub const ANY_PART: &str = "*";

/// Whose memory it is: tenants never see one another's. `None` is the memory of requests without a
/// tenant, not of everybody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryScope {
    /// What guests and clients of a tenant read and write.
    Agents(Option<String>),
    /// What the host itself keeps for a tenant. No guest and no client ever works in this scope, so
    /// that what the host reads here is what the host wrote.
    Host(Option<String>),
}

impl MemoryScope {
    /// The tenant for whom it is.
    #[must_use]
    pub fn tenant(&self) -> Option<&String> {
        let (Self::Agents(tenant) | Self::Host(tenant)) = self;
        tenant.as_ref()
    }
}

/// One document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its namespace, such as `["users", "42"]`; never empty.
    pub namespace: Vec<String>,
    /// Its key, unique in the namespace.
    pub key: String,
    /// The document. Filters see the fields of an object; any other has none.
    pub value: Value,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    /// How well it fits the query of a search, from 0 to 1; `None` without a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A document to be written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PutItem {
    /// Its namespace.
    pub namespace: Vec<String>,
    /// Its key.
    pub key: String,
    /// The document.
    pub value: Value,
    /// How long it is kept; for ever without it.
    pub ttl_ms: Option<u64>,
    /// Whether a read or a search that finds it begins its time anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refresh_on_read: bool,
}

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Only in namespaces that begin so.
    pub prefix: Vec<String>,
    /// All of these must hold.
    pub filter: Vec<Condition>,
    /// Words to rank by: the share of them that a document holds, in its key, field names or values;
    /// documents with none are left out.
    pub query: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Skip so many.
    pub offset: usize,
    /// Whether documents that are found live no longer for it, whatever was said when they were
    /// written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peek: bool,
}

/// One condition on a field of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The field at the top of the document. A missing one is like `null`.
    pub field: String,
    /// How to compare.
    pub compare: Compare,
    /// With what.
    pub value: Value,
}

/// How a field is compared. Order exists between numbers and between texts only; anything else is
/// neither greater nor less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Equal; an object or list as a whole.
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

/// Which namespaces to list, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListNamespaces {
    /// Only those that begin so; `*` stands for any one part.
    pub prefix: Vec<String>,
    /// Only those that end so; `*` stands for any one part.
    pub suffix: Vec<String>,
    /// Cut to so many parts; those that become equal are listed once.
    pub max_depth: Option<usize>,
    /// At most so many.
    pub limit: usize,
    /// Skip so many.
    pub offset: usize,
}

/// Long-term memory. Namespaces and keys are any text, NUL included; documents that have expired
/// are as good as deleted. Callers have checked what they hand in (`check` of the requests,
/// [`check_place`]), so that every adapter can hold it.
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

    /// The same, and the document lives no longer for it, whatever was said when it was written.
    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure>;

    /// Writes one document, durable when this returns. `created_ms` of one that is there stays.
    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure>;

    /// Writes one document if the one that is there is what the caller knows (`None`: there is none),
    /// durable when this returns, and nobody writes it in between. Answers whether what was to be
    /// written is there now: so it may be made again when the answer was lost, and those who would
    /// write the same thing have all done it.
    async fn put_if(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure>;

    /// Deletes one document, durable when this returns; not an error if it is missing.
    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure>;

    /// Deletes one document if it is what the caller knows, durable when this returns, and nobody
    /// writes it in between. Answers whether none is there now, so it may be made again when the
    /// answer was lost.
    async fn delete_if(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure>;

    /// Finds documents: by score and then newest update first with a query, newest update first
    /// without one. `limit` if there is too much to look at.
    async fn search(
        &self,
        scope: &MemoryScope,
        search: &Search,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure>;

    /// Reads the documents of one namespace, not of those under it, in the order of their keys: at
    /// most `limit` of those behind the key `after`, fewer where they are large, and none if none is
    /// left. However many there are, each is answered once if it is there all the time. They live no
    /// longer for it.
    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure>;

    /// Lists namespaces that hold a document. `limit` if there is too much to look at.
    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure>;

    /// Deletes all documents under a prefix. Answers how many, those that had expired included.
    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure>;

    /// Deletes what has expired. Answers how many. The host calls it every half minute.
    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure>;

    /// Reads all documents and names what is damaged, and what was lost before. A memory that keeps no
    /// file of its own leaves that to whatever keeps its bytes.
    async fn survey(&self) -> Result<Vec<Damage>, Failure> {
        Ok(Vec::new())
    }

    /// Writes all documents, as they are at one moment, into a folder that is there.
    async fn backup(&self, folder: &Path) -> Result<(), Failure> {
        let _ = folder;
        let message = "only a memory in a file is backed up; use `pg_dump` for a database";
        Err(Failure::new(code::UNSUPPORTED, message))
    }
}
