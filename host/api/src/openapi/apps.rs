//! The endpoints of apps in the OpenAPI document. They change with every reload of an app.

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use wattle_graph::json_text;
use wattle_graph::weight::weight;
use wattle_run::app::App;
use wattle_run::ports::openapi::{
    EndpointDescription, Operation, Parameter, ParameterPlace, SCHEMAS,
};
use wattle_run::ports::sandbox::WebRoute;

use super::{COMMON_ERRORS, reason_phrase};
use crate::app_route::routes;
use crate::guard::access;

/// Methods that OpenAPI can describe.
static METHODS: [Method; 8] = [
    Method::GET,
    Method::PUT,
    Method::POST,
    Method::DELETE,
    Method::OPTIONS,
    Method::HEAD,
    Method::PATCH,
    Method::TRACE,
];

/// Key of the response for all statuses that have no separate response.
const DEFAULT: &str = "default";

/// Maximum size of the endpoints of all apps, in bytes, as text or as values in memory. Each app
/// can use at most half of the size that the apps before it leave, so that no app takes all of the
/// size. The host keeps the text in memory.
const MAX_BYTES: u64 = 32 << 20;

/// JSON pointers to the parts of a document that each app extends.
const APP_POINTERS: [&str; 2] = ["/paths", "/components/schemas"];

/// Adds the endpoints of apps to a document, as their plugins describe them. An app has a tag, and
/// its name precedes the names of its schemas. If the endpoints of an app exceed the size limit,
/// the document omits these endpoints, and the tag of the app says so.
///
/// # Errors
///
/// The errors of the serializer.
pub(super) fn add(document: &mut Value, apps: &[Arc<App>]) -> serde_json::Result<()> {
    add_routes(document, apps.iter().map(|app| (&**app, routes(app))))
}

fn add_routes<'a>(
    document: &mut Value,
    apps: impl Iterator<Item = (&'a App, &'a [WebRoute])>,
) -> serde_json::Result<()> {
    let mut remaining = MAX_BYTES;
    for (app, routes) in apps.filter(|(_, routes)| !routes.is_empty()) {
        let mut app_part = json!({ "paths": {}, "components": { "schemas": {} } });
        for route in routes {
            add_route(&mut app_part, app, route);
        }
        let bytes = weight(&app_part).max(json_text::length(&app_part)?);
        let max_bytes = remaining / 2;
        let mut doc = app.doc.clone();
        if bytes <= max_bytes {
            remaining -= bytes;
            merge(document, app_part);
        } else {
            let problem = format!(
                "The endpoints are not described here: the description has {bytes} bytes, and \
                 the limit for this app is {max_bytes} bytes."
            );
            tracing::warn!(app = %app.name, "{problem}");
            if !doc.is_empty() {
                doc.push_str("\n\n");
            }
            doc.push_str(&problem);
        }
        if let Some(tags) = document["tags"].as_array_mut() {
            tags.push(json!({ "name": tag(app), "description": doc }));
        }
    }
    Ok(())
}

/// Moves the parts of an app into a document.
fn merge(document: &mut Value, mut app_part: Value) {
    for pointer in APP_POINTERS {
        let part = app_part.pointer_mut(pointer).map(Value::take);
        if let (Some(Value::Object(target)), Some(Value::Object(part))) =
            (document.pointer_mut(pointer), part)
        {
            target.extend(part);
        }
    }
}

fn tag(app: &App) -> String {
    format!("apps/{}", app.name)
}

fn add_route(document: &mut Value, app: &App, route: &WebRoute) {
    let Some(method) = METHODS.iter().find(|method| method.as_str() == route.method) else {
        return;
    };
    let mut described = route.openapi.clone().unwrap_or_default();
    rename_references(&mut described, app);
    let EndpointDescription { operation, schemas } = described;
    for (name, schema) in schemas {
        document["components"]["schemas"][schema_name(app, &name)] = schema;
    }
    let mut operation = json!(complete_operation(operation, &route.path));
    // The host itself responds to requests that it rejects.
    let problem = json!({ "$ref": format!("{SCHEMAS}{}", COMMON_ERRORS.schema) });
    let content = &mut operation["responses"][DEFAULT]["content"];
    content[COMMON_ERRORS.media_type] = json!({ "schema": problem });
    operation["tags"] = json!([tag(app)]);
    access::write_default(method, &mut operation);
    // A parameter for the rest of a path is `{*name}` in routes.
    let path = format!("/apps/{}{}", app.name, route.path.replace("{*", "{"));
    document["paths"][path][method.as_str().to_ascii_lowercase()] = operation;
}

/// Adds the parts that OpenAPI demands: the parameters of the path, the default response, and the
/// description of each response.
fn complete_operation(mut operation: Operation, path: &str) -> Operation {
    let described = std::mem::take(&mut operation.parameters);
    let is_in_path = |parameter: &Parameter| parameter.place == ParameterPlace::Path;
    let (in_path, others): (Vec<_>, Vec<_>) = described.into_iter().partition(is_in_path);
    let of_path = path_parameters(path).map(|name| {
        let described = in_path.iter().find(|parameter| parameter.name == name).cloned();
        Parameter { required: true, ..described.unwrap_or_else(|| string_parameter(name)) }
    });
    operation.parameters = of_path.chain(others).collect();
    operation.responses.entry(DEFAULT.to_owned()).or_default();
    for (status, response) in &mut operation.responses {
        if response.description.is_empty() {
            let text = if status == DEFAULT { "Error" } else { reason_phrase(status) };
            text.clone_into(&mut response.description);
        }
    }
    operation
}

/// Returns the names of the parameters in a path: `{name}`, or `{*name}` for the rest of the path.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    let names = path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| name.trim_start_matches('*'))
}

fn string_parameter(name: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        place: ParameterPlace::Path,
        required: true,
        description: String::new(),
        schema: json!({ "type": "string" }),
    }
}

fn rename_references(described: &mut EndpointDescription, app: &App) {
    described.visit_references(&mut |reference| {
        if let Some(name) = reference.strip_prefix(SCHEMAS) {
            *reference = format!("{SCHEMAS}{}", schema_name(app, name));
        }
    });
}

/// Returns the name of an app's schema in the document of the host. OpenAPI allows only some of the
/// characters of an app's name. All other characters, and `.` and `_`, become their code points in
/// hexadecimal between two `_`.
fn schema_name(app: &App, name: &str) -> String {
    let mut prefix = String::new();
    for c in app.name.as_str().chars() {
        if c.is_ascii_alphanumeric() || c == '-' {
            prefix.push(c);
        } else {
            prefix.push_str(&format!("_{:x}_", u32::from(c)));
        }
    }
    prefix.push('.');
    prefix + name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wattle_graph::id::AppName;
    use wattle_run::ports::openapi::Response;

    use super::*;

    #[test]
    fn schemas_of_apps_have_different_names() {
        let named =
            |app: &str, name: &str| schema_name(&App::empty(AppName::new(app).unwrap()), name);
        assert_eq!(named("asset", "Item"), "asset.Item");
        assert_eq!(named("a_b", "Item"), "a_5f_b.Item");
        assert_eq!(named("a.b", "Item"), "a_2e_b.Item");
        assert_eq!(named("a", "b.Item"), "a.b.Item");
        assert_eq!(named("票", "Item"), "_7968_.Item");
    }

    #[test]
    fn tag_says_that_the_description_of_an_app_is_too_large() {
        let named = |name: &str| App::empty(AppName::new(name).unwrap());
        let route = |bytes: u64| {
            let description = "x".repeat(usize::try_from(bytes).unwrap());
            let operation = Operation { description, ..Operation::default() };
            vec![WebRoute {
                method: "GET".to_owned(),
                path: "/items".to_owned(),
                openapi: Some(EndpointDescription { operation, schemas: BTreeMap::new() }),
            }]
        };
        let sizes = [("a", MAX_BYTES / 2), ("b", MAX_BYTES / 3), ("c", MAX_BYTES / 3), ("d", 9)];
        let apps: Vec<_> =
            sizes.into_iter().map(|(name, bytes)| (named(name), route(bytes))).collect();
        let mut document = json!({ "tags": [], "paths": {}, "components": { "schemas": {} } });
        let pairs = apps.iter().map(|(app, routes)| (app, routes.as_slice()));
        add_routes(&mut document, pairs).unwrap();
        let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        assert_eq!(paths, ["/apps/b/items", "/apps/d/items"]);
        let tags = document["tags"].as_array().unwrap();
        let is_left_out = |tag: &Value| {
            tag["description"].as_str().unwrap().starts_with("The endpoints are not described")
        };
        let left_out: Vec<bool> = tags.iter().map(is_left_out).collect();
        assert_eq!(left_out, [true, false, true, false]);
    }

    #[test]
    fn references_of_schemas_are_renamed_and_data_is_not() {
        let schema = |name: &str| {
            let path = format!("{SCHEMAS}{name}");
            json!({
                "anyOf": [{ "$ref": path }, { "const": { "$ref": "#/components/schemas/Item" } }],
                "discriminator": { "propertyName": "kind", "mapping": { "item": path } },
            })
        };
        let schemas = BTreeMap::from([("Item".to_owned(), schema("Item"))]);
        let mut described = EndpointDescription { schemas, ..EndpointDescription::default() };
        rename_references(&mut described, &App::empty(AppName::new("asset").unwrap()));
        assert_eq!(described.schemas["Item"], schema("asset.Item"));
    }

    #[test]
    fn missing_parts_of_a_description_are_added() {
        let operation = complete_operation(Operation::default(), "/items/{id}/{*rest}");
        let names: Vec<&str> = operation.parameters.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["id", "rest"]);
        assert!(operation.parameters.iter().all(|parameter| parameter.required));
        assert_eq!(operation.responses[DEFAULT].description, "Error");
        let other = Parameter { name: "other".to_owned(), ..string_parameter("id") };
        let limit = Parameter { place: ParameterPlace::Query, ..string_parameter("limit") };
        let responses = BTreeMap::from([("404".to_owned(), Response::default())]);
        let parameters = vec![other, limit.clone()];
        let operation = Operation { parameters, responses, ..Operation::default() };
        let operation = complete_operation(operation, "/items/{id}");
        assert_eq!(operation.parameters, [string_parameter("id"), limit]);
        assert_eq!(operation.responses["404"].description, "Not Found");
    }
}
