//! What clients do with assistants.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{IfExists, Invalid, SortOrder};

/// A new assistant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantCreate {
    /// Its graph.
    #[schema(required = true, min_length = 1)]
    pub graph_id: String,
    /// Its id; a fresh one without it.
    #[schema(format = "uuid")]
    pub assistant_id: Option<String>,
    /// Settings of its runs.
    pub config: Option<Map<String, Value>>,
    /// The context of its runs.
    #[schema(value_type = Option<Object>)]
    pub context: Option<Value>,
    /// Free facts.
    pub metadata: Option<Map<String, Value>>,
    /// If there is such an assistant already.
    pub if_exists: Option<IfExists>,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// A change of an assistant, which makes a version of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantPatch {
    /// Another graph.
    pub graph_id: Option<String>,
    /// Settings in place of those that it has.
    pub config: Option<Map<String, Value>>,
    /// A context in place of that which it has.
    #[schema(value_type = Option<Object>)]
    pub context: Option<Value>,
    /// Facts that are added to those that it has.
    pub metadata: Option<Map<String, Value>>,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// Versions of an assistant that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantVersions {
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// At most so many; ten without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
}

/// The version of an assistant that runs use from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssistantLatest {
    /// Its number.
    pub version: u32,
}

/// Assistants that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantSearch {
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// Only of this graph.
    pub graph_id: Option<String>,
    /// Only with this in their name.
    pub name: Option<String>,
    /// At most so many; ten without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
    /// `assistant_id`, `graph_id`, `name`, `created_at` or `updated_at`.
    #[schema(pattern = "^(assistant_id|graph_id|name|created_at|updated_at)$")]
    pub sort_by: Option<String>,
    /// Which end comes first.
    pub sort_order: Option<SortOrder>,
    /// Only these fields of each.
    pub select: Option<Vec<String>>,
}

/// Assistants that are counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AssistantCount {
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// Only of this graph.
    pub graph_id: Option<String>,
    /// Only with this in their name.
    pub name: Option<String>,
}

/// Settings and context of an assistant, which say the same of what its nodes are handed: clients
/// of both ages read it where they know it.
///
/// # Errors
///
/// [`Invalid::Value`] if both say something, [`Invalid::Schema`] if one is no object.
pub fn settled(
    config: Option<Map<String, Value>>,
    context: Option<Value>,
) -> Result<(Map<String, Value>, Value), Invalid> {
    let mut config = config.unwrap_or_default();
    let configurable = match config.remove("configurable") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(no_object("config.configurable")),
    };
    let context = match context {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(no_object("context")),
    };
    let handed = match (configurable.is_empty(), context.is_empty()) {
        (false, false) => {
            let why = "`config.configurable` and `context` cannot both be given; use `context`";
            return Err(Invalid::Value(why.to_owned()));
        }
        (false, true) => configurable,
        (true, _) => context,
    };
    if !handed.is_empty() {
        config.insert("configurable".to_owned(), Value::Object(handed.clone()));
    }
    Ok((config, Value::Object(handed)))
}

fn no_object(field: &str) -> Invalid {
    Invalid::Schema(format!("`{field}` of the request must be an object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn both(config: Value, context: Value) -> Result<Value, Invalid> {
        let config = config.as_object().cloned();
        settled(config, Some(context)).map(|(config, context)| json!([config, context]))
    }

    #[test]
    fn context_and_settings_say_the_same() {
        let tags = json!({ "tags": ["a"], "configurable": { "x": 1 } });
        assert_eq!(both(tags.clone(), Value::Null), Ok(json!([tags, { "x": 1 }])));
        let only = json!([{ "configurable": { "x": 1 } }, { "x": 1 }]);
        assert_eq!(both(json!({}), json!({ "x": 1 })), Ok(only));
        assert_eq!(both(Value::Null, Value::Null), Ok(json!([{}, {}])));
        assert!(matches!(both(tags, json!({ "y": 1 })), Err(Invalid::Value(_))));
        assert!(matches!(both(json!({}), json!(7)), Err(Invalid::Schema(_))));
    }
}
