//! A document of the long-term memory, as clients see it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_run::ports::memory;

use wattle_project::agent_server::time::iso;

/// A document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// Labels from the widest to the narrowest.
    pub namespace: Vec<String>,
    /// Its key there.
    pub key: String,
    /// The document.
    pub value: Value,
    /// When it was first written.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last written.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundItem {
    /// Which.
    #[serde(flatten)]
    pub item: Item,
    /// How well it fits the words, from 0 to 1; `null` without words.
    pub score: Option<f64>,
}

impl From<memory::Item> for Item {
    fn from(item: memory::Item) -> Self {
        Self {
            namespace: item.namespace,
            key: item.key,
            value: item.value,
            created_at: iso(item.created_ms),
            updated_at: iso(item.updated_ms),
        }
    }
}

impl From<memory::Item> for FoundItem {
    fn from(item: memory::Item) -> Self {
        Self { score: item.score, item: item.into() }
    }
}
