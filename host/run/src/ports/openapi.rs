//! OpenAPI descriptions of endpoints, as plugins give them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Beginning of a reference to a schema with a name.
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

/// Calls a function with each reference in a document: with each text that has the key `$ref`.
pub fn visit_references(document: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match document {
        Value::Array(items) => {
            for item in items {
                visit_references(item, visit);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(reference) if key == "$ref" => visit(reference),
                    other => visit_references(other, visit),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_visited_wherever_they_are() {
        let mut document = json!({
            "$ref": "a",
            "anyOf": [{ "$ref": "b" }, { "properties": { "$ref": { "$ref": "c" } } }],
        });
        visit_references(&mut document, &mut |reference| reference.push('!'));
        assert_eq!(
            document,
            json!({
                "$ref": "a!",
                "anyOf": [{ "$ref": "b!" }, { "properties": { "$ref": { "$ref": "c!" } } }],
            })
        );
    }

    #[test]
    fn operation_is_that_of_openapi() {
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
