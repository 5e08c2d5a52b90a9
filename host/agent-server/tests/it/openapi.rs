//! The OpenAPI document of all paths: complete, consistent, and as published.

use std::collections::BTreeSet;

use serde_json::Value;
use wattle_api::native;

use crate::host::Host;

/// HTTP methods that operations may have.
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

async fn document() -> Value {
    let mut document = Host::new().get("/openapi.json").await.ok();
    document["info"]["version"] = "[VERSION]".into();
    document
}

/// Returns whether a path does not belong to the native API.
fn is_agents(path: &str) -> bool {
    !path.starts_with("/api/") && !path.starts_with("/blobs/")
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

#[tokio::test]
async fn the_document_is_as_published() {
    let mut document = document().await;
    // The native paths have a snapshot of their own.
    let own = native::router().into_openapi();
    let schemas = own.components.as_ref().unwrap().schemas.clone();
    let paths = document["paths"].as_object_mut().unwrap();
    paths.retain(|path, _| is_agents(path));
    let known = document["components"]["schemas"].as_object_mut().unwrap();
    known.retain(|name, _| !schemas.contains_key(name));
    insta::assert_json_snapshot!(document);
}

#[tokio::test]
async fn the_native_api_is_in_the_same_document() {
    let document = document().await;
    for path in native::router().into_openapi().paths.paths.keys() {
        assert!(document["paths"].get(path).is_some(), "{path}");
    }
    assert!(document["paths"].get("/threads/{id}/runs/stream").is_some());
}

#[tokio::test]
async fn no_two_schemas_have_one_name() {
    let own = wattle_api::native::router().into_openapi().components.unwrap().schemas;
    let host = Host::new();
    let further = wattle_agent_server::router(host.server.clone()).into_openapi();
    let further = further.components.unwrap().schemas;
    let both: Vec<_> = own.keys().filter(|name| further.contains_key(*name)).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[tokio::test]
async fn every_operation_has_its_own_id_and_a_summary() {
    let document = document().await;
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        assert!(METHODS.contains(&method.as_str()), "{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path}");
        let summary = operation["summary"].as_str().unwrap();
        assert!(!summary.is_empty() && !summary.contains('\n'), "{method} {path}: {summary}");
        let answers = operation["responses"].as_object().unwrap();
        for (status, answer) in answers {
            let answer = match answer["$ref"].as_str() {
                Some(place) => document.pointer(place.trim_start_matches('#')).unwrap(),
                None => answer,
            };
            assert!(answer["description"].is_string(), "{method} {path} {status}");
        }
    }
}

#[tokio::test]
async fn every_referenced_schema_exists() {
    let document = document().await;
    let text = document.to_string();
    let named = text.split("\"#/components/schemas/").skip(1);
    for name in named.map(|rest| rest.split('"').next().unwrap()) {
        assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn body_is_optional_where_no_field_is_required() {
    let document = document().await;
    let needs = |path: &str| document["paths"][path]["post"]["requestBody"]["required"].clone();
    assert_eq!(needs("/threads"), false);
    assert_eq!(needs("/threads/search"), false);
    assert_eq!(needs("/runs"), true);
    assert_eq!(needs("/assistants"), true);
    let host = Host::new();
    assert_eq!(host.post("/threads/search", Value::Null).await.status, 422);
    assert_eq!(host.call("POST", "/threads/search", None).await.status, 200);
    assert_eq!(host.call("POST", "/runs", None).await.status, 422);
}
