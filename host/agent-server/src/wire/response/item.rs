//! The JSON body of a store item, which is a document of the long-term memory.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_run::ports::memory;

use wattle_project::agent_server::time::format_time_with_micros;

/// An item of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// Labels of the namespace, from the widest to the narrowest.
    pub namespace: Vec<String>,
    /// Key of the item, unique in the namespace.
    pub key: String,
    /// Value of the item.
    pub value: Value,
    /// Time of the first write.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last write.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// An item that matches a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundItem {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// Fraction of the query words that the item contains, from 0 to 1; `null` without a query.
    pub score: Option<f64>,
}

impl From<memory::Item> for Item {
    fn from(item: memory::Item) -> Self {
        Self {
            namespace: item.namespace,
            key: item.key,
            value: item.value,
            created_at: format_time_with_micros(item.created_ms),
            updated_at: format_time_with_micros(item.updated_ms),
        }
    }
}

impl From<memory::Item> for FoundItem {
    fn from(item: memory::Item) -> Self {
        Self { score: item.score, item: item.into() }
    }
}
