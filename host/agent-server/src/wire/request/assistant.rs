//! Requests about assistants.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{IfExists, RequestError, SortOrder};

/// A new assistant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantCreate {
    /// Id or name of the graph.
    #[schema(required = true, min_length = 1)]
    pub graph_id: String,
    /// Id of the assistant, a UUID. By default the server generates one.
    #[schema(format = "uuid")]
    pub assistant_id: Option<String>,
    /// Default settings of runs.
    pub config: Option<Map<String, Value>>,
    /// Default context of runs.
    #[schema(value_type = Option<Object>)]
    pub context: Option<Value>,
    /// Arbitrary metadata.
    pub metadata: Option<Map<String, Value>>,
    /// Behavior if the assistant already exists.
    pub if_exists: Option<IfExists>,
    /// Display name.
    pub name: Option<String>,
    /// Human-readable description.
    pub description: Option<String>,
}

/// A change of an assistant. Each change creates a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantPatch {
    /// Id or name of the new graph.
    pub graph_id: Option<String>,
    /// Settings that replace the current ones.
    pub config: Option<Map<String, Value>>,
    /// A context that replaces the current one.
    #[schema(value_type = Option<Object>)]
    pub context: Option<Value>,
    /// Metadata to merge into the current metadata.
    pub metadata: Option<Map<String, Value>>,
    /// Display name.
    pub name: Option<String>,
    /// Human-readable description.
    pub description: Option<String>,
}

/// A search for versions of an assistant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantVersions {
    /// Metadata that a version must contain.
    pub metadata: Option<Map<String, Value>>,
    /// Maximum number of versions. The default is 10.
    #[schema(minimum = 1)]
    pub limit: Option<usize>,
    /// Number of versions to skip.
    pub offset: Option<usize>,
}

/// Selects the version of an assistant that later runs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssistantLatest {
    /// Number of the version.
    pub version: u32,
}

/// A search for assistants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantSearch {
    /// Metadata that an assistant must contain.
    pub metadata: Option<Map<String, Value>>,
    /// Only assistants of this graph.
    pub graph_id: Option<String>,
    /// Only assistants whose name contains this string.
    pub name: Option<String>,
    /// Maximum number of assistants. The default is 10.
    #[schema(minimum = 1)]
    pub limit: Option<usize>,
    /// Number of assistants to skip.
    pub offset: Option<usize>,
    /// Field to sort by: `assistant_id`, `graph_id`, `name`, `created_at` (the default) or
    /// `updated_at`.
    #[schema(pattern = "^(assistant_id|graph_id|name|created_at|updated_at)$")]
    pub sort_by: Option<String>,
    /// Sort order. The default is `desc`.
    pub sort_order: Option<SortOrder>,
    /// Fields to return of each assistant.
    pub select: Option<Vec<String>>,
}

/// A filter for assistants to count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantCount {
    /// Metadata that an assistant must contain.
    pub metadata: Option<Map<String, Value>>,
    /// Only assistants of this graph.
    pub graph_id: Option<String>,
    /// Only assistants whose name contains this string.
    pub name: Option<String>,
}

/// Normalizes the settings and the context of an assistant: `config.configurable` and the context
/// get the same values, because older clients read `config.configurable` and newer clients read the
/// context.
///
/// # Errors
///
/// [`RequestError::BadRequest`] if both have values, [`RequestError::Unprocessable`] if either is
/// not an object.
pub fn normalize_context(
    config: Option<Map<String, Value>>,
    context: Option<Value>,
) -> Result<(Map<String, Value>, Value), RequestError> {
    let mut config = config.unwrap_or_default();
    let configurable = match config.remove("configurable") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(not_an_object("config.configurable")),
    };
    let context = match context {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(not_an_object("context")),
    };
    let values = match (configurable.is_empty(), context.is_empty()) {
        (false, false) => {
            let why = "`config.configurable` and `context` cannot both be given; use `context`";
            return Err(RequestError::BadRequest(why.to_owned()));
        }
        (false, true) => configurable,
        (true, _) => context,
    };
    if !values.is_empty() {
        config.insert("configurable".to_owned(), Value::Object(values.clone()));
    }
    Ok((config, Value::Object(values)))
}

fn not_an_object(field: &str) -> RequestError {
    RequestError::Unprocessable(format!("`{field}` of the request must be an object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn both(config: Value, context: Value) -> Result<Value, RequestError> {
        let config = config.as_object().cloned();
        normalize_context(config, Some(context)).map(|(config, context)| json!([config, context]))
    }

    #[test]
    fn configurable_and_context_have_the_same_values() {
        let tags = json!({ "tags": ["a"], "configurable": { "x": 1 } });
        assert_eq!(both(tags.clone(), Value::Null), Ok(json!([tags, { "x": 1 }])));
        let only = json!([{ "configurable": { "x": 1 } }, { "x": 1 }]);
        assert_eq!(both(json!({}), json!({ "x": 1 })), Ok(only));
        assert_eq!(both(Value::Null, Value::Null), Ok(json!([{}, {}])));
        assert!(matches!(both(tags, json!({ "y": 1 })), Err(RequestError::BadRequest(_))));
        assert!(matches!(both(json!({}), json!(7)), Err(RequestError::Unprocessable(_))));
    }
}
