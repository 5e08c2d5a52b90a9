//! JSON conversions whose errors contain the path of the invalid value, and JSON Schemas of types.

#[cfg(test)]
mod shapes;
mod split;
mod text;

use std::borrow::Cow;
use std::fmt::Display;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::split::Fields;
pub use self::text::JsonText;
use crate::failure::Failure;

/// Extension fields: named values of a record in addition to its fixed fields. Unknown keys are
/// ignored.
pub type Extra = Map<String, Value>;

/// The input of a node that reads no channels, or the arguments of a tool without arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

impl JsonSchema for Empty {
    fn schema_name() -> Cow<'static, str> {
        "Empty".into()
    }

    // The derived schema has no `properties`. For a node, this would select the whole state as
    // input.
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "object", "properties": {}})
    }
}

/// Parses JSON text. A failure contains `what` and the path of the invalid value.
pub(crate) fn read<T: DeserializeOwned>(what: impl Display, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| invalid_text::<T>(&what, text, &error))
}

/// Returns the failure for rejected text. Parses the text again to find the path of the invalid
/// value, because a parser that keeps the path allocates for every key.
#[cold]
fn invalid_text<T: DeserializeOwned>(
    what: &dyn Display,
    text: &str,
    error: &serde_json::Error,
) -> Failure {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let again: Result<T, _> = serde_path_to_error::deserialize(&mut deserializer);
    match again {
        Err(found) => mistake(what, &found.path().to_string(), found.inner()),
        // The value is valid, and more text follows it.
        Ok(_) => mistake(what, ".", error),
    }
}

/// Converts a JSON value to a type. A failure contains `what` and the path of the invalid value.
pub(crate) fn from_value<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| mistake(&what, &error.path().to_string(), error.inner()))
}

/// Serializes a value as JSON. A failure contains `what`.
pub(crate) fn to_value(what: &str, value: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| not_written(&what, &error))
}

/// Serializes a value as JSON text. A failure contains `what`.
pub(crate) fn to_text(what: impl Display, value: &impl Serialize) -> Result<JsonText, Failure> {
    JsonText::of(value).map_err(|error| not_written(&what, &error))
}

/// Serializes each field of an object as JSON text. `null` has no fields. Returns `None` for any
/// other value. A failure contains `what`.
pub(crate) fn to_fields(
    what: impl Display,
    value: &impl Serialize,
) -> Result<Option<Fields>, Failure> {
    split::fields(value).map_err(|error| not_written(&what, &error))
}

fn not_written(what: &dyn Display, error: &serde_json::Error) -> Failure {
    Failure::internal(format!("write {what} as JSON: {error}"))
}

/// Returns the schema for deserializing a type. References are inlined.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the schema for serializing a type. References are inlined.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // Graphs and models do not need the name of the Rust type.
    schema.remove("title");
    schema.into()
}

/// Plurals that messages are about.
const PLURALS: [&str; 2] = ["the arguments", "the settings"];

fn mistake(what: &dyn Display, path: &str, error: &serde_json::Error) -> Failure {
    let what = what.to_string();
    let verb = if PLURALS.contains(&what.as_str()) { "are" } else { "is" };
    let message = if path == "." {
        format!("{what} {verb} invalid: {error}")
    } else {
        format!("{what} {verb} invalid at `{path}`: {error}")
    };
    let details = Map::from_iter([("path".to_owned(), Value::from(path))]);
    Failure::invalid(message).with_details(details)
}

/// Returns the schema of an object without properties.
pub(crate) fn empty_object_schema() -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(Map::new()));
    Value::Object(schema)
}

/// Returns true if a schema accepts only `null`.
pub(crate) fn is_null_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use proptest::sample::{Index, select};
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::{from_value, input_schema, mistake, read};
    use crate::failure::Failure;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Inner {
        #[serde(rename = "count")]
        _count: u32,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Outer {
        #[serde(rename = "rows")]
        _rows: Vec<Inner>,
    }

    /// Parses JSON text and keeps the path of each value.
    fn read_with_paths<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Failure> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| mistake(&what, &error.path().to_string(), error.inner()))?;
        deserializer.end().map_err(|error| mistake(&what, ".", &error))?;
        Ok(value)
    }

    #[test]
    fn errors_name_the_path() {
        let failure = read::<Outer>("the input", r#"{"rows":[{"count":1},{"count":"x"}]}"#);
        let failure = failure.unwrap_err();
        assert!(failure.message.starts_with("the input is invalid at `rows[1].count`:"));
        assert_eq!(failure.details.as_deref(), Some(&json!({"path": "rows[1].count"})));
        let failure = from_value::<Outer>("the input", &json!({})).unwrap_err();
        assert_eq!(failure.message, "the input is invalid: missing field `rows`");
        let failure = from_value::<Outer>("the arguments", &json!({})).unwrap_err();
        assert_eq!(failure.message, "the arguments are invalid: missing field `rows`");
    }

    #[test]
    fn text_after_the_document_is_rejected() {
        let failure = read::<Value>("the input", "1 2").unwrap_err();
        assert!(failure.message.starts_with("the input is invalid: "), "{}", failure.message);
        assert_eq!(failure.details.as_deref(), Some(&json!({"path": "."})));
    }

    proptest! {
        #[test]
        fn texts_are_read_as_by_a_parser_that_always_tracks_paths(
            counts in vec(select(vec!["1", "1", "-1", "1.5", "\"x\"", "null", "[]", "01"]), 0..4),
            rest in "[\\]}{,1 ]{0,2}",
            end in option::of(any::<Index>()),
        ) {
            let rows: Vec<_> = counts.iter().map(|it| format!(r#"{{"count":{it}}}"#)).collect();
            let text = format!(r#"{{"rows":[{}]}}{rest}"#, rows.join(","));
            let text = &text[..end.map_or(text.len(), |end| end.index(text.len()))];
            let expected = read_with_paths::<Outer>("the input", text);
            prop_assert_eq!(read::<Outer>("the input", text), expected);
            prop_assert_eq!(read::<Value>("it", text), read_with_paths::<Value>("it", text));
        }
    }

    #[test]
    fn schemas_are_inline_and_objects() {
        let schema = input_schema::<Outer>();
        assert_eq!(schema["properties"]["rows"]["items"]["type"], "object");
        assert!(schema.get("$schema").is_none() && schema.get("$defs").is_none());
        assert_eq!(input_schema::<Value>(), json!({}));
    }
}
