//! A graph with settings, as clients address it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use wattle_project::agent_server::id::assistant_uuid;
use wattle_project::agent_server::time::iso;

/// A graph with settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Assistant {
    /// Its id.
    #[schema(format = "uuid")]
    pub assistant_id: String,
    /// The graph.
    pub graph_id: String,
    /// Settings of its runs.
    pub config: Value,
    /// The context of its runs.
    pub context: Value,
    /// Free facts.
    pub metadata: Map<String, Value>,
    /// What people call it.
    pub name: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Grows with each change.
    pub version: u32,
    /// What it is for.
    pub description: Option<String>,
}

impl Assistant {
    /// The one that a graph has by itself, since the graph is there.
    pub fn of_graph(graph: &str, description: Option<String>, since_ms: i64) -> Self {
        Self {
            assistant_id: assistant_uuid(graph).to_string(),
            graph_id: graph.to_owned(),
            config: json!({}),
            context: json!({}),
            metadata: Map::from_iter([("created_by".to_owned(), "system".into())]),
            name: graph.to_owned(),
            created_at: iso(since_ms),
            updated_at: iso(since_ms),
            version: 1,
            description,
        }
    }
}
