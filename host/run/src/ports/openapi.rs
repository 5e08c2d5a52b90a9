//! OpenAPI descriptions of endpoints, as plugins give them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Prefix of a reference to a named schema.
pub const SCHEMAS: &str = "#/components/schemas/";

/// The description of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointDescription {
    /// The operation.
    pub operation: Operation,
    /// JSON Schemas by name, which the operation and the schemas refer to.
    #[serde(default)]
    pub schemas: BTreeMap<String, Value>,
}

/// An operation of OpenAPI 3.1. Other fields of OpenAPI are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The purpose of the endpoint in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Further description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// The body of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_body: Option<RequestBody>,
    /// Responses by status, or by `default` for all other statuses.
    #[serde(default)]
    pub responses: BTreeMap<String, Response>,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// Place of the parameter in a request.
    #[serde(rename = "in")]
    pub place: ParameterPlace,
    /// True if every request has the parameter.
    #[serde(default)]
    pub required: bool,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of the value.
    pub schema: Value,
}

/// The place of a parameter in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterPlace {
    /// The path.
    Path,
    /// The query string.
    Query,
    /// The headers.
    Header,
    /// The header `cookie`.
    Cookie,
}

/// The body of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestBody {
    /// True if every request has a body.
    #[serde(default)]
    pub required: bool,
    /// The content by media type.
    pub content: BTreeMap<String, MediaType>,
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// The content by media type; empty if the response has no body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub content: BTreeMap<String, MediaType>,
}

/// The content of a body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediaType {
    /// JSON Schema of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// Keywords of JSON Schema whose value is a schema.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas.
const LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value is a map from names to schemas.
const MAP_KEYWORDS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

impl EndpointDescription {
    /// Calls a function with each reference of the schemas: with each `$ref` at a place where JSON
    /// Schema has one, and with each value of a `mapping` of a `discriminator`. A `mapping` value
    /// that is only the name of a schema is first replaced by a reference to this schema.
    ///
    /// A `$ref` at any other place is data, such as in the value of `const`.
    pub fn visit_references(&mut self, visit: &mut dyn FnMut(&mut String)) {
        let Self { operation, schemas } = self;
        let Operation { parameters, request_body, responses, .. } = operation;
        let bodies = request_body.iter_mut().flat_map(|body| body.content.values_mut());
        let contents = bodies.chain(responses.values_mut().flat_map(|it| it.content.values_mut()));
        let of_contents = contents.filter_map(|content| content.schema.as_mut());
        let of_parameters = parameters.iter_mut().map(|parameter| &mut parameter.schema);
        for schema in of_parameters.chain(of_contents).chain(schemas.values_mut()) {
            visit_schema(schema, visit);
        }
    }
}

fn visit_schema(schema: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    let Value::Object(fields) = schema else { return };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("$ref", Value::String(reference)) => visit(reference),
            ("discriminator", Value::Object(fields)) => visit_mapping(fields, visit),
            (key, Value::Array(schemas)) if LIST_KEYWORDS.contains(&key) => {
                for schema in schemas {
                    visit_schema(schema, visit);
                }
            }
            (key, Value::Object(schemas)) if MAP_KEYWORDS.contains(&key) => {
                for schema in schemas.values_mut() {
                    visit_schema(schema, visit);
                }
            }
            (key, schema) if SCHEMA_KEYWORDS.contains(&key) => visit_schema(schema, visit),
            _ => {}
        }
    }
}

fn visit_mapping(discriminator: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut String)) {
    let mapping = discriminator.get_mut("mapping").and_then(Value::as_object_mut);
    for value in mapping.into_iter().flat_map(Map::values_mut) {
        if let Value::String(reference) = value {
            if !reference.contains(['#', '/']) {
                reference.insert_str(0, SCHEMAS);
            }
            visit(reference);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Marks the references of a schema.
    fn visited(schema: Value) -> Value {
        let schemas = BTreeMap::from([("Item".to_owned(), schema)]);
        let mut described = EndpointDescription { schemas, ..EndpointDescription::default() };
        described.visit_references(&mut |reference| reference.push('!'));
        described.schemas.remove("Item").unwrap()
    }

    #[test]
    fn references_are_visited_wherever_a_schema_is_allowed() {
        let schema = json!({
            "$ref": "a",
            "anyOf": [{ "$ref": "b" }, { "properties": { "$ref": { "$ref": "c" } } }],
            "items": { "not": { "$ref": "d" } },
            "$defs": { "const": { "items": [{ "$ref": "e" }] } },
        });
        assert_eq!(
            visited(schema),
            json!({
                "$ref": "a!",
                "anyOf": [{ "$ref": "b!" }, { "properties": { "$ref": { "$ref": "c!" } } }],
                "items": { "not": { "$ref": "d!" } },
                "$defs": { "const": { "items": [{ "$ref": "e!" }] } },
            })
        );
        let content = BTreeMap::from([(
            "application/json".to_owned(),
            MediaType { schema: Some(json!({ "$ref": "a" })) },
        )]);
        let responses =
            BTreeMap::from([("200".to_owned(), Response { content, ..Response::default() })]);
        let operation = Operation { responses, ..Operation::default() };
        let mut described = EndpointDescription { operation, ..EndpointDescription::default() };
        let mut found = Vec::new();
        described.visit_references(&mut |reference| found.push(reference.clone()));
        assert_eq!(found, ["a"]);
    }

    #[test]
    fn example_data_in_openapi_has_no_references() {
        let data = json!({ "$ref": "a" });
        let schema = json!({
            "const": data, "enum": [data], "default": data, "example": data, "examples": [data],
            "x-more": data,
        });
        assert_eq!(visited(schema.clone()), schema);
    }

    #[test]
    fn mapping_of_a_discriminator_may_have_references_and_names() {
        let schema = |cat: &str, dog: &str| {
            let mapping = json!({ "cat": cat, "dog": dog });
            json!({ "discriminator": { "propertyName": "kind", "mapping": mapping } })
        };
        let visited = visited(schema("Cat", "#/components/schemas/Dog"));
        assert_eq!(visited, schema("#/components/schemas/Cat!", "#/components/schemas/Dog!"));
    }

    #[test]
    fn operation_is_serialized_as_in_openapi() {
        let document = json!({
            "summary": "Lists items.",
            "parameters": [
                { "name": "limit", "in": "query", "required": false,
                    "schema": { "type": "integer" } },
            ],
            "requestBody": {
                "required": true, "content": { "application/json": { "schema": true } },
            },
            "responses": { "204": { "description": "Success" } },
        });
        let operation = Operation::deserialize(&document).unwrap();
        assert_eq!(operation.parameters[0].place, ParameterPlace::Query);
        assert_eq!(serde_json::to_value(operation).unwrap(), document);
    }
}
