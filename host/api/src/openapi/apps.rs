//! The endpoints of apps in the OpenAPI document. They change with every reload of an app, so they
//! are added to the document of the host when a client requests it.

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use wattle_run::app::App;
use wattle_run::ports::openapi::{
    EndpointDescription, Operation, Parameter, ParameterPlace, SCHEMAS,
};
use wattle_run::ports::sandbox::WebRoute;

use super::{REFUSALS, meaning};
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

/// Key of the response for all statuses without one of their own.
const DEFAULT: &str = "default";

/// Adds the endpoints of apps to a document, as their plugins describe them. An app has a tag, and
/// its name precedes the names of its schemas.
pub(super) fn add(document: &mut Value, apps: &[Arc<App>]) {
    for app in apps.iter().filter(|app| !routes(app).is_empty()) {
        let tag = json!({ "name": tag(app), "description": app.doc });
        if let Some(tags) = document["tags"].as_array_mut() {
            tags.push(tag);
        }
        for route in routes(app) {
            add_route(document, app, route);
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
    let mut operation = json!(complete(operation, &route.path));
    // The host itself responds to requests that it rejects.
    let problem = json!({ "$ref": format!("{SCHEMAS}{}", REFUSALS.schema) });
    let content = &mut operation["responses"][DEFAULT]["content"];
    content[REFUSALS.media_type] = json!({ "schema": problem });
    operation["tags"] = json!([tag(app)]);
    access::write_default(method, &mut operation);
    // A parameter for the rest of a path is `{*name}` in routes.
    let path = format!("/apps/{}{}", app.name, route.path.replace("{*", "{"));
    document["paths"][path][method.as_str().to_ascii_lowercase()] = operation;
}

/// Adds the parts that OpenAPI demands: the parameters of the path, the default response, and the
/// description of each response.
fn complete(mut operation: Operation, path: &str) -> Operation {
    let described = std::mem::take(&mut operation.parameters);
    let is_of_path = |parameter: &Parameter| parameter.place == ParameterPlace::Path;
    let (known, others): (Vec<_>, Vec<_>) = described.into_iter().partition(is_of_path);
    let of_path = path_parameters(path).map(|name| {
        let known = known.iter().find(|parameter| parameter.name == name).cloned();
        Parameter { required: true, ..known.unwrap_or_else(|| text_parameter(name)) }
    });
    operation.parameters = of_path.chain(others).collect();
    operation.responses.entry(DEFAULT.to_owned()).or_default();
    for (status, response) in &mut operation.responses {
        if response.description.is_empty() {
            let text = if status == DEFAULT { "Error" } else { meaning(status) };
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

fn text_parameter(name: &str) -> Parameter {
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
/// characters of an app's name, so the others, and `.` and `_`, are numbers between `_`.
fn schema_name(app: &App, name: &str) -> String {
    let mut whole = String::new();
    for c in app.name.as_str().chars() {
        if c.is_ascii_alphanumeric() || c == '-' {
            whole.push(c);
        } else {
            whole.push_str(&format!("_{:x}_", u32::from(c)));
        }
    }
    whole.push('.');
    whole + name
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
    fn references_of_schemas_are_renamed_and_data_is_not() {
        let schema = |name: &str| {
            let place = format!("{SCHEMAS}{name}");
            json!({
                "anyOf": [{ "$ref": place }, { "const": { "$ref": "#/components/schemas/Item" } }],
                "discriminator": { "propertyName": "kind", "mapping": { "item": place } },
            })
        };
        let schemas = BTreeMap::from([("Item".to_owned(), schema("Item"))]);
        let mut described = EndpointDescription { schemas, ..EndpointDescription::default() };
        rename_references(&mut described, &App::empty(AppName::new("asset").unwrap()));
        assert_eq!(described.schemas["Item"], schema("asset.Item"));
    }

    #[test]
    fn description_is_completed() {
        let operation = complete(Operation::default(), "/items/{id}/{*rest}");
        let names: Vec<&str> = operation.parameters.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["id", "rest"]);
        assert!(operation.parameters.iter().all(|parameter| parameter.required));
        assert_eq!(operation.responses[DEFAULT].description, "Error");
        let other = Parameter { name: "other".to_owned(), ..text_parameter("id") };
        let limit = Parameter { place: ParameterPlace::Query, ..text_parameter("limit") };
        let responses = BTreeMap::from([("404".to_owned(), Response::default())]);
        let parameters = vec![other, limit.clone()];
        let operation = Operation { parameters, responses, ..Operation::default() };
        let operation = complete(operation, "/items/{id}");
        assert_eq!(operation.parameters, [text_parameter("id"), limit]);
        assert_eq!(operation.responses["404"].description, "Not Found");
    }
}
