//! The JSON body of an assistant.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use wattle_project::agent_server::id::assistant_uuid;
use wattle_project::agent_server::time::format_time_with_micros;

/// A graph with settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Assistant {
    /// Id of the assistant.
    #[schema(format = "uuid")]
    pub assistant_id: String,
    /// Id of the graph.
    pub graph_id: String,
    /// Default settings of runs.
    pub config: Value,
    /// Default context of runs.
    pub context: Value,
    /// Arbitrary metadata.
    pub metadata: Map<String, Value>,
    /// Display name.
    pub name: String,
    /// Creation time.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Number of the version.
    pub version: u32,
    /// Human-readable description.
    pub description: Option<String>,
}

impl Assistant {
    /// Returns the default assistant of a graph.
    pub fn for_graph(graph: &str, description: Option<String>, since_ms: i64) -> Self {
        Self {
            assistant_id: assistant_uuid(graph).to_string(),
            graph_id: graph.to_owned(),
            config: json!({}),
            context: json!({}),
            metadata: Map::from_iter([("created_by".to_owned(), "system".into())]),
            name: graph.to_owned(),
            created_at: format_time_with_micros(since_ms),
            updated_at: format_time_with_micros(since_ms),
            version: 1,
            description,
        }
    }
}
