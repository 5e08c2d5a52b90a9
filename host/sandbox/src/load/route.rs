//! The routes of a plugin, with their OpenAPI descriptions.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde_json::Value;
use wattle_run::ports::openapi::{EndpointDescription, Operation, SCHEMAS};
use wattle_run::ports::sandbox::WebRoute;

use crate::bindings::exports::wattle::plugin::web;
use crate::json::extra_field;
use crate::load::description::{
    MAX_DOC_CHARS, MAX_ITEMS, MAX_NAME_CHARS, Schemas, invalid_description,
};
use crate::load::rejection::{Rejection, too_large};
use crate::load::text::sanitize;

/// Maximum length of a path, in characters.
const MAX_PATH_CHARS: usize = 512;

/// Maximum length of the name of a schema, in characters. The names of nested generic types are
/// long.
const MAX_SCHEMA_NAME_CHARS: usize = 128;

/// Converts routes, and checks that there are not too many and that no route occurs twice. The
/// result is sorted by method and path.
pub(super) fn into_routes(
    routes: Vec<web::Route>,
    schemas: &mut Schemas,
) -> Result<Vec<WebRoute>, Rejection> {
    if routes.len() > MAX_ITEMS {
        return Err(too_large("routes", routes.len() as u64, MAX_ITEMS as u64));
    }
    let mut found: BTreeMap<(String, String), WebRoute> = BTreeMap::new();
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    for route in routes {
        let route = into_route(route, schemas)?;
        for (name, schema) in route.openapi.iter().flat_map(|openapi| &openapi.schemas) {
            let known = named.entry(name.clone()).or_insert_with(|| schema.clone());
            if known != schema {
                return Err(invalid_description(&format!(
                    "two of its routes describe the schema `{name}` differently"
                )));
            }
        }
        let key = (route.method.clone(), route.path.clone());
        if let Some(twice) = found.insert(key, route) {
            return Err(invalid_description(&format!(
                "it has the route {} {} twice",
                twice.method, twice.path
            )));
        }
    }
    Ok(found.into_values().collect())
}

fn into_route(route: web::Route, schemas: &mut Schemas) -> Result<WebRoute, Rejection> {
    let web::Route { method, path, extra } = route;
    let good_method = (1..=MAX_NAME_CHARS).contains(&method.len())
        && method.chars().all(|c| c.is_ascii_uppercase());
    let good_path = path.starts_with('/')
        && path.chars().count() <= MAX_PATH_CHARS
        && path.chars().all(|c| c.is_ascii_graphic());
    if !(good_method && good_path) {
        let (method, path) = (sanitize(&method, MAX_NAME_CHARS), sanitize(&path, MAX_PATH_CHARS));
        return Err(invalid_description(&format!(
            "`{method} {path}` is not a route: the method must be upper case, and the path must \
             start with `/` and have only ASCII characters without spaces"
        )));
    }
    let openapi = match extra_field(&extra, "openapi") {
        Some(text) => Some(into_openapi(text, &format!("{method} {path}"), schemas)?),
        None => None,
    };
    Ok(WebRoute { method, path, openapi })
}

/// Parses the description of an endpoint. A description contains every schema that it refers to, so
/// the description of a whole app is valid if the descriptions of its endpoints are valid.
fn into_openapi(
    text: &str,
    route: &str,
    schemas: &mut Schemas,
) -> Result<EndpointDescription, Rejection> {
    let rejection = |problem: &str| {
        invalid_description(&format!("`openapi` of `{route}` is not a description: {problem}"))
    };
    let document = schemas.parse(text, route, "openapi")?;
    let mut described = EndpointDescription::deserialize(&document)
        .map_err(|error| rejection(&error.to_string()))?;
    if let Some(name) = described.schemas.keys().find(|name| !is_schema_name(name)) {
        let name = sanitize(name, MAX_NAME_CHARS);
        return Err(rejection(&format!(
            "the name `{name}` of a schema does not have 1 to {MAX_SCHEMA_NAME_CHARS} characters \
             of `[a-zA-Z0-9._-]`"
        )));
    }
    if let Some(status) = described.operation.responses.keys().find(|key| !is_status(key)) {
        let status = sanitize(status, MAX_NAME_CHARS);
        return Err(rejection(&format!("`{status}` is neither a status nor `default`")));
    }
    if !each_schema(&described).all(|schema| matches!(schema, Value::Object(_) | Value::Bool(_))) {
        return Err(rejection("one of its schemas is neither an object nor a boolean"));
    }
    if let Some(status) = referred_response(&document) {
        return Err(rejection(&format!(
            "the response of `{status}` is a reference; write the response in its place"
        )));
    }
    let names: BTreeSet<String> = described.schemas.keys().cloned().collect();
    let mut unknown = None;
    described.visit_references(&mut |reference| {
        let name = reference.strip_prefix(SCHEMAS);
        if name.is_none_or(|name| !names.contains(name)) {
            unknown = Some(sanitize(reference, MAX_PATH_CHARS));
        }
    });
    if let Some(reference) = unknown {
        return Err(rejection(&format!(
            "it refers to `{reference}`, which is not one of its schemas"
        )));
    }
    sanitize_texts(&mut described.operation);
    Ok(described)
}

fn is_schema_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=MAX_SCHEMA_NAME_CHARS).contains(&name.len()) && name.chars().all(allowed)
}

/// Returns true for `default`, a status such as `404`, and a class of statuses such as `4XX`.
fn is_status(key: &str) -> bool {
    let first = key.chars().next();
    let is_class = first.is_some_and(|first| ('1'..='5').contains(&first));
    let rest = key.get(1..).unwrap_or_default();
    let is_rest = rest == "XX" || rest.len() == 2 && rest.chars().all(|c| c.is_ascii_digit());
    key == "default" || is_class && is_rest
}

/// Returns the first status whose response is a `$ref` to a response object elsewhere. A response
/// with `$ref` has no other fields.
fn referred_response(document: &Value) -> Option<&str> {
    let mut responses = document["operation"]["responses"].as_object()?.iter();
    let (status, _) = responses.find(|(_, response)| response.get("$ref").is_some())?;
    Some(status)
}

/// Returns the schemas of parameters, bodies and responses, and the named schemas.
fn each_schema(described: &EndpointDescription) -> impl Iterator<Item = &Value> {
    let Operation { parameters, request_body, responses, .. } = &described.operation;
    let bodies = request_body.iter().flat_map(|body| body.content.values());
    let contents = bodies.chain(responses.values().flat_map(|it| it.content.values()));
    let of_contents = contents.filter_map(|content| content.schema.as_ref());
    let of_parameters = parameters.iter().map(|parameter| &parameter.schema);
    of_parameters.chain(of_contents).chain(described.schemas.values())
}

fn sanitize_texts(operation: &mut Operation) {
    let Operation { summary, description, parameters, responses, .. } = operation;
    let of_parameters = parameters.iter_mut().map(|parameter| &mut parameter.description);
    let of_responses = responses.values_mut().map(|response| &mut response.description);
    for text in [summary, description].into_iter().chain(of_parameters).chain(of_responses) {
        *text = sanitize(text, MAX_DOC_CHARS);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(routes: &[(&str, &str, Value)]) -> Result<Vec<WebRoute>, Rejection> {
        let route = |(method, path, openapi): &(&str, &str, Value)| web::Route {
            method: (*method).to_owned(),
            path: (*path).to_owned(),
            extra: vec![("openapi".to_owned(), openapi.to_string())],
        };
        into_routes(routes.iter().map(route).collect(), &mut Schemas::new())
    }

    fn rejected(openapi: Value) -> String {
        let rejection = read(&[("GET", "/items", openapi)]).unwrap_err();
        assert_eq!(rejection.code, "describe");
        rejection.message
    }

    fn returning(schema: Value, schemas: Value) -> Value {
        let content = json!({ "application/json": { "schema": schema } });
        let responses = json!({ "200": { "description": "Success", "content": content } });
        json!({ "operation": { "responses": responses }, "schemas": schemas })
    }

    fn item() -> Value {
        json!({ "$ref": "#/components/schemas/Item" })
    }

    #[test]
    fn description_of_a_route_is_read() {
        let mut openapi = returning(item(), json!({ "Item": { "type": "object" } }));
        openapi["operation"]["summary"] = json!("Lists\u{7} items.");
        let routes = read(&[("POST", "/items", openapi.clone()), ("GET", "/items", openapi)]);
        let routes = routes.unwrap();
        let names: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
        assert_eq!(names, ["GET", "POST"]);
        let described = routes[0].openapi.as_ref().unwrap();
        assert_eq!(described.operation.summary, "Lists items.");
        assert_eq!(described.schemas["Item"], json!({ "type": "object" }));
    }

    #[test]
    fn route_needs_no_description() {
        let route = |path: &str| web::Route {
            method: "GET".to_owned(),
            path: path.to_owned(),
            extra: Vec::new(),
        };
        let routes = into_routes(vec![route("/b"), route("/a")], &mut Schemas::new()).unwrap();
        let paths: Vec<&str> = routes.iter().map(|route| route.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b"]);
        assert_eq!(routes[0].openapi, None);
        let twice = into_routes(vec![route("/a"), route("/a")], &mut Schemas::new()).unwrap_err();
        assert!(twice.message.contains("the route GET /a twice"), "{}", twice.message);
    }

    #[test]
    fn references_to_other_documents_are_rejected() {
        for place in ["#/components/schemas/Other", "https://example.com/x.json", "#/$defs/Item"] {
            let schema = json!({ "items": { "$ref": place } });
            let message = rejected(returning(schema, json!({ "Item": {} })));
            assert!(message.contains(&format!("it refers to `{place}`")), "{message}");
        }
        let nested = json!({ "Item": { "items": { "$ref": "#/components/schemas/Other" } } });
        assert!(rejected(returning(item(), nested)).contains("schemas/Other"));
    }

    #[test]
    fn ref_keys_in_data_are_not_references() {
        let data = json!({ "$ref": "https://example.com/x.json" });
        let properties = json!({ "$ref": { "const": data, "default": data, "examples": [data] } });
        let schema = json!({ "properties": properties, "enum": [data], "example": data });
        assert!(read(&[("GET", "/items", returning(schema, json!({})))]).is_ok());
    }

    #[test]
    fn mapping_of_a_discriminator_refers_to_schemas() {
        let union = |place: &str| {
            let discriminator = json!({ "propertyName": "kind", "mapping": { "item": place } });
            let schema = json!({ "oneOf": [item()], "discriminator": discriminator });
            returning(schema, json!({ "Item": { "type": "object" } }))
        };
        for place in ["Item", "#/components/schemas/Item"] {
            assert!(read(&[("GET", "/items", union(place))]).is_ok(), "{place}");
        }
        let message = rejected(union("Other"));
        assert!(message.contains("it refers to `#/components/schemas/Other`"), "{message}");
    }

    #[test]
    fn invalid_openapi_descriptions_of_routes_are_rejected() {
        for (openapi, problem) in [
            (json!({}), "missing field `operation`"),
            (json!({ "operation": { "parameters": [{ "name": "a" }] } }), "missing field `in`"),
            (json!({ "operation": { "responses": { "2X0": {} } } }), "`2X0` is neither"),
            (json!({ "operation": { "responses": { "600": {} } } }), "`600` is neither"),
            (json!({ "operation": { "responses": { "200": item() } } }), "`200` is a reference"),
            (returning(json!(7), json!({})), "neither an object nor a boolean"),
            (returning(item(), json!({ "Item": [] })), "neither an object nor a boolean"),
            (returning(json!(true), json!({ "a/b": {} })), "the name `a/b` of a schema"),
        ] {
            let message = rejected(openapi);
            assert!(message.contains("`openapi` of `GET /items`"), "{message}");
            assert!(message.contains(problem), "{message} does not contain {problem}");
        }
    }

    #[test]
    fn routes_that_describe_one_schema_differently_are_rejected() {
        let with = |schema: Value| returning(item(), json!({ "Item": schema }));
        let texts = with(json!({ "type": "string" }));
        let numbers = with(json!({ "type": "number" }));
        assert!(read(&[("GET", "/a", texts.clone()), ("GET", "/b", texts.clone())]).is_ok());
        let rejection = read(&[("GET", "/a", texts), ("GET", "/b", numbers)]).unwrap_err();
        assert!(rejection.message.contains("the schema `Item` differently"), "{rejection:?}");
    }
}
