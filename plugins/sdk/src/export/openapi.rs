//! The OpenAPI descriptions of the endpoints of a plugin.
//!
//! All endpoints share the schemas. The schema of a type in requests describes what the type reads,
//! and its schema in responses what it writes. If the two differ, the schema in requests has a name
//! of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::export::HandlerEntry;
use crate::export::operation::{Generators, Operation, SCHEMAS};

/// Suffix of the name of a schema in requests that differs from the schema in responses. No Rust
/// type has a `.` in its name.
const REQUEST_SUFFIX: &str = ".Request";

/// The operations of endpoints in the order of their entries, and the schemas that they refer to.
struct Described {
    operations: Vec<Value>,
    schemas: Map<String, Value>,
}

fn describe(entries: &[HandlerEntry]) -> Described {
    let mut generators = Generators::new();
    let mut operations: Vec<Value> =
        entries.iter().map(|entry| operation(entry, &mut generators)).collect();
    let mut schemas = generators.responses.take_definitions(false);
    let requests = generators.requests.take_definitions(false);
    let renamed = different(&requests, &schemas);
    for (name, mut schema) in requests {
        rename(&mut schema, &renamed);
        let name = if renamed.contains(&name) { name + REQUEST_SUFFIX } else { name };
        schemas.insert(name, schema);
    }
    for operation in &mut operations {
        for part in ["parameters", "requestBody"] {
            if let Some(part) = operation.get_mut(part) {
                rename(part, &renamed);
            }
        }
    }
    Described { operations, schemas }
}

fn operation(entry: &HandlerEntry, generators: &mut Generators) -> Value {
    let mut operation = Operation::new(entry.path, generators);
    (entry.describe)(&mut operation);
    operation.into_object(entry.doc)
}

/// Returns the names of the schemas that differ between requests and responses, themselves or in
/// the schemas that they refer to.
fn different(requests: &Map<String, Value>, responses: &Map<String, Value>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    loop {
        let is_different = |name: &str, schema: &Value| {
            let other = responses.get(name);
            other.is_some_and(|it| it != schema || !references(schema).is_disjoint(&known))
        };
        let found = requests.iter().filter(|(name, schema)| is_different(name, schema));
        let found: BTreeSet<String> = found.map(|(name, _)| name.clone()).collect();
        if found.len() == known.len() {
            return found;
        }
        known = found;
    }
}

/// Returns the names of the schemas that a document refers to.
fn references(document: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add_references(document, &mut names);
    names
}

fn add_references(document: &Value, names: &mut BTreeSet<String>) {
    match document {
        Value::Array(items) => {
            for item in items {
                add_references(item, names);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        names.extend(schema_name(reference).map(ToOwned::to_owned));
                    }
                    other => add_references(other, names),
                }
            }
        }
        _ => {}
    }
}

/// Changes the references of a document to the schemas that have another name in requests.
fn rename(document: &mut Value, renamed: &BTreeSet<String>) {
    match document {
        Value::Array(items) => {
            for item in items {
                rename(item, renamed);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        if schema_name(reference).is_some_and(|name| renamed.contains(name)) {
                            reference.push_str(REQUEST_SUFFIX);
                        }
                    }
                    other => rename(other, renamed),
                }
            }
        }
        _ => {}
    }
}

fn schema_name(reference: &str) -> Option<&str> {
    reference.strip_prefix('#')?.strip_prefix(SCHEMAS)?.strip_prefix('/')
}

/// Returns the extension field `openapi` of each route: its operation, and the schemas that the
/// operation refers to.
pub fn describe_routes(entries: &[HandlerEntry]) -> Vec<Value> {
    let Described { operations, schemas } = describe(entries);
    let described = |operation: Value| {
        let names = all_references(&operation, &schemas).into_iter();
        let named = names.filter_map(|name| schemas.get(&name).cloned().map(|it| (name, it)));
        let named: Map<String, Value> = named.collect();
        json!({ "operation": operation, "schemas": named })
    };
    operations.into_iter().map(described).collect()
}

/// Returns the names of the schemas that an operation refers to, also through other schemas.
fn all_references(operation: &Value, schemas: &Map<String, Value>) -> BTreeSet<String> {
    let mut names = references(operation);
    let mut waiting: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = waiting.pop() {
        for next in schemas.get(&name).map(references).unwrap_or_default() {
            if names.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    names
}

/// Returns the OpenAPI document of endpoints.
pub fn openapi(title: &str, entries: &[HandlerEntry]) -> Value {
    let Described { operations, schemas } = describe(entries);
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (entry, operation) in entries.iter().zip(operations) {
        let path = entry.path.replace("{*", "{");
        paths.entry(path).or_default().insert(entry.method.to_ascii_lowercase(), operation);
    }
    let schemas: BTreeMap<String, Value> = schemas.into_iter().collect();
    json!({
        "openapi": "3.1.0",
        // OpenAPI demands a version. That of the app is in its manifest.
        "info": { "title": title, "version": "1" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{describe_routes, openapi};
    use crate::export::{Handler, HandlerEntry};
    use crate::prelude::{Deserialize, Failure, JsonSchema, Request, Response, Serialize, handler};

    /// An item.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Item {
        name: String,
        #[serde(default)]
        tags: Vec<String>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Basket {
        items: Vec<Item>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Problem {
        error: String,
    }

    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "event", content = "data", rename_all = "lowercase")]
    enum Step {
        Done(Item),
    }

    /// Replaces
    /// an item.
    ///
    /// Keeps its tags.
    #[handler(PUT, "/items/{id}/{*rest}", query(dry: Option<bool>), body = Basket,
        returns = Basket, returns(204), returns(304), events = Step, bytes = "text/csv",
        error = Problem)]
    fn replace(_request: &Request) -> Result<Response, Failure> {
        Response::json(200, &Basket { items: Vec::new() })
    }

    #[handler(GET, "/items")]
    fn list(_request: &Request) -> Result<Response, Failure> {
        Response::json(422, &Problem { error: Step::Done(item()).name() })
    }

    fn item() -> Item {
        Item { name: "lamp".to_owned(), tags: Vec::new() }
    }

    impl Step {
        fn name(self) -> String {
            let Self::Done(item) = self;
            item.name
        }
    }

    const ENTRIES: &[HandlerEntry] = &[replace::ENTRY, list::ENTRY];

    fn reference(name: &str) -> Value {
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }

    #[test]
    fn document_has_the_declared_types() {
        let document = openapi("shop", ENTRIES);
        let operation = &document["paths"]["/items/{id}/{rest}"]["put"];
        assert_eq!(operation["summary"], "Replaces an item.");
        assert_eq!(operation["description"], "Keeps its tags.");
        let text = json!({ "type": "string" });
        assert_eq!(
            operation["parameters"],
            json!([
                { "name": "id", "in": "path", "required": true, "schema": text },
                { "name": "rest", "in": "path", "required": true, "schema": text },
                { "name": "dry", "in": "query", "required": false,
                    "schema": { "type": "boolean" } },
            ])
        );
        assert_eq!(
            operation["responses"],
            json!({
                "200": { "description": "Success", "content": {
                    "application/json": { "schema": reference("Basket") },
                    "text/event-stream": { "schema": reference("Step") },
                    "text/csv": { "schema": text },
                } },
                "204": { "description": "Success" },
                "304": { "description": "Redirection" },
                "default": { "description": "Error", "content": {
                    "application/json": { "schema": reference("Problem") },
                } },
            })
        );
    }

    #[test]
    fn type_that_reads_other_documents_than_it_writes_has_two_schemas() {
        let document = openapi("shop", ENTRIES);
        let body = &document["paths"]["/items/{id}/{rest}"]["put"]["requestBody"];
        assert_eq!(body["required"], true);
        let schema = &body["content"]["application/json"]["schema"];
        assert_eq!(*schema, reference("Basket.Request"));
        let schemas = &document["components"]["schemas"];
        let items = |name: &str| schemas[name]["properties"]["items"]["items"].clone();
        assert_eq!(items("Basket.Request"), reference("Item.Request"));
        assert_eq!(items("Basket"), reference("Item"));
        assert_eq!(schemas["Item.Request"]["required"], json!(["name"]));
        assert_eq!(schemas["Item"]["required"], json!(["name", "tags"]));
        assert_eq!(schemas["Item"]["description"], "An item.");
    }

    #[test]
    fn route_has_only_the_schemas_that_it_refers_to() {
        let routes = describe_routes(ENTRIES);
        let names: Vec<&String> = routes[0]["schemas"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["Basket", "Basket.Request", "Item", "Item.Request", "Problem", "Step"]);
        let nothing = json!({ "default": { "description": "Response" } });
        assert_eq!(routes[1], json!({ "operation": { "responses": nothing }, "schemas": {} }));
    }
}
