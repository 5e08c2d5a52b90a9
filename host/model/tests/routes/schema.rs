//! Tool schemas in the form that each provider accepts.

use serde_json::{Value, json};

use crate::support::{ask_tools, bodies, chat, complete, json_response, routes, server, table};

/// Returns the schemas that the host sends to a provider of the kind `kind`.
async fn sent(kind: &str, schemas: [&Value; 2]) -> Vec<Value> {
    // The response is malformed in two of the formats; only the request matters.
    let server = server(vec![json_response(&chat("hi"))]).await;
    let routes = routes(table(kind, &server.uri(), &json!({}), &json!({})));
    let mut request = ask_tools("hi");
    for (tool, schema) in request.tools.iter_mut().zip(schemas) {
        tool.arguments_schema = schema.clone();
    }
    let _ = complete(&routes, &request).await;
    let body = bodies(&server).await.remove(0);
    let (list, place) = match kind {
        "openai" => ("/tools", "/function/parameters"),
        "gemini" => ("/tools/0/functionDeclarations", "/parametersJsonSchema"),
        _ => ("/tools", "/input_schema"),
    };
    let tools = body.pointer(list).and_then(Value::as_array).unwrap();
    tools.iter().map(|tool| tool.pointer(place).unwrap().clone()).collect()
}

#[tokio::test]
async fn unusual_schema_is_adapted_to_the_provider() {
    let odd = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "list": { "type": "array" },
            "kind": { "const": "a" },
            "gone": { "$ref": "#/definitions/gone", "description": "d" },
            "filter[id]": { "type": "string", "pattern": "^(?!a)" },
        },
        "required": "list",
    });
    let fine = json!({
        "properties": { "b": { "type": "string" }, "a": { "enum": ["x"] } },
        "required": ["b"], "type": "object",
    });
    let gone = json!({ "description": "d" });
    let told = json!({ "type": "string", "description": "pattern: ^(?!a)" });
    for (kind, expected) in [
        (
            "openai",
            json!({ "type": "object", "properties": {
                "list": { "type": "array", "items": {} }, "kind": { "const": "a" },
                "gone": gone, "filter[id]": told,
            } }),
        ),
        (
            "gemini",
            json!({ "type": "object", "properties": {
                "list": { "type": "array", "items": {} }, "kind": { "enum": ["a"] },
                "gone": gone, "filter[id]": told,
            } }),
        ),
        (
            "anthropic",
            json!({
                "type": "object",
                "properties": {
                    "list": { "type": "array" }, "kind": { "const": "a" }, "gone": gone,
                },
                "patternProperties": {
                    "^filter\\[id\\]$": { "type": "string", "pattern": "^(?!a)" },
                },
            }),
        ),
    ] {
        let schemas = sent(kind, [&odd, &fine]).await;
        assert_eq!(schemas[0], expected, "{kind}");
        // The accepted schema is sent byte for byte.
        assert_eq!(schemas[1].to_string(), fine.to_string(), "{kind}");
    }
}

#[tokio::test]
async fn tool_without_arguments_gets_an_object_without_properties() {
    let (bare, empty) = (json!({ "type": "object" }), json!({}));
    for kind in ["openai", "gemini", "anthropic"] {
        for schema in sent(kind, [&bare, &empty]).await {
            assert_eq!(schema, json!({ "type": "object", "properties": {} }), "{kind}");
        }
    }
}
