//! JSON at the border: reading with the path of a mistake, writing, and schemas of types.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Named values beside the fixed fields of a record; an unknown key is ignored.
pub type Extra = Map<String, Value>;

/// The input of a node that reads no channel, or the arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

impl JsonSchema for Empty {
    fn schema_name() -> Cow<'static, str> {
        "Empty".into()
    }

    // The derived schema has no `properties`, which for a node means the whole state.
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "object", "properties": {}})
    }
}

/// Reads a document. `what` names it in the failure, beside the path of the mistake.
pub(crate) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Failure> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| mistake(what, &error.path().to_string(), error.inner()))?;
    deserializer.end().map_err(|error| mistake(what, ".", &error))?;
    Ok(value)
}

/// Turns a value into a type. `what` names it in the failure, beside the path of the mistake.
pub(crate) fn from_value<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| mistake(what, &error.path().to_string(), error.inner()))
}

/// Turns something serializable into a value.
pub(crate) fn to_value(what: &str, value: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value)
        .map_err(|error| Failure::internal(format!("write {what} as JSON: {error}")))
}

/// The schema of a type, for reading it, with everything inline.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a type, for writing it, with everything inline.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a graph or a model.
    schema.remove("title");
    schema.into()
}

fn mistake(what: &str, path: &str, error: &serde_json::Error) -> Failure {
    let message = if path == "." {
        format!("{what} is invalid: {error}")
    } else {
        format!("{what} is invalid at `{path}`: {error}")
    };
    let details = Map::from_iter([("path".to_owned(), Value::from(path))]);
    Failure::invalid(message).with_details(details)
}

/// An object with nothing in it, the schema of what carries no data.
pub(crate) fn empty_object_schema() -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(Map::new()));
    Value::Object(schema)
}

/// Whether a schema admits nothing but `null`.
pub(crate) fn is_null_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::{from_value, input_schema, read};

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Inner {
        #[serde(rename = "count")]
        _count: u32,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Outer {
        #[serde(rename = "rows")]
        _rows: Vec<Inner>,
    }

    #[test]
    fn a_mistake_names_its_path() {
        let failure = read::<Outer>("the input", r#"{"rows":[{"count":1},{"count":"x"}]}"#);
        let failure = failure.unwrap_err();
        assert!(failure.message.starts_with("the input is invalid at `rows[1].count`:"));
        assert_eq!(failure.details.as_deref(), Some(&json!({"path": "rows[1].count"})));
        let failure = from_value::<Outer>("the input", &json!({})).unwrap_err();
        assert_eq!(failure.message, "the input is invalid: missing field `rows`");
    }

    #[test]
    fn text_after_the_document_is_a_mistake() {
        assert!(read::<Value>("the input", "1 2").is_err());
    }

    #[test]
    fn schemas_are_inline_and_objects() {
        let schema = input_schema::<Outer>();
        assert_eq!(schema["properties"]["rows"]["items"]["type"], "object");
        assert!(schema.get("$schema").is_none() && schema.get("$defs").is_none());
        assert_eq!(input_schema::<Value>(), json!({}));
    }
}
