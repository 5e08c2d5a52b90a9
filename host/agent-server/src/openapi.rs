//! The OpenAPI document of the paths of this server.
//!
//! The description of each handler is next to its code, and the router accepts only handlers with a
//! description. This module adds the parts that many operations have in common.

use utoipa::OpenApi as _;
use utoipa::openapi::{Content, Object, OpenApi, RefOr, Required, Schema};
use wattle_api::openapi::{CommonErrors, add_common_errors, operations};

use crate::wire::schemas::ErrorDocument;

#[derive(utoipa::OpenApi)]
#[openapi(
    components(schemas(ErrorDocument)),
    tags(
        (name = "agent-server", description = "Health and capabilities of the server"),
        (name = "agent-assistants", description = "Graphs with settings"),
        (name = "agent-threads", description = "Threads with state and history"),
        (name = "agent-runs", description = "Runs on threads, and stateless runs"),
        (name = "agent-crons", description = "Schedules that request runs"),
        (name = "agent-store", description = "Long-term memory of agents"),
        (name = "agent-protocol", description = "Commands and typed events of threads"),
    )
)]
struct ApiDoc;

/// Error responses: `{"detail": "..."}`.
const COMMON_ERRORS: CommonErrors = CommonErrors {
    schema: "FaultDocument",
    media_type: "application/json",
    always: &[401, 403, 421, 429, 500, 503],
    with_path: &[404, 422],
    with_query: &[422],
    with_body: &[413, 422],
};

/// Returns the parts of the OpenAPI document that do not depend on paths.
pub(crate) fn base() -> OpenApi {
    ApiDoc::openapi()
}

/// Adds the parts that all paths have in common.
pub(crate) fn with_common_parts(mut document: OpenApi) -> OpenApi {
    add_common_errors(&mut document, &COMMON_ERRORS);
    let OpenApi { paths, components, .. } = &mut document;
    let schemas = components.iter_mut().flat_map(|components| components.schemas.values_mut());
    schemas.for_each(strip_required_defaults);
    let schemas = components.as_ref().map(|components| &components.schemas);
    let bodies = paths.paths.values_mut().flat_map(operations);
    for body in bodies.filter_map(|(_, operation)| operation.request_body.as_mut()) {
        let RefOr::T(body) = body else { continue };
        let is_optional = body.content.values().any(|content| {
            let name = schema_name(content);
            name.and_then(|name| schemas?.get(name)).is_some_and(accepts_empty_object)
        });
        if is_optional {
            // A missing body is read as an empty object.
            body.required = Some(Required::False);
        }
    }
    document
}

/// Removes the defaults of required properties. These defaults exist because deserialization
/// accepts a missing value, which a later check reports by name.
fn strip_required_defaults(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(Object { properties, required, .. })) => {
            for name in required {
                if let Some(RefOr::T(Schema::Object(property))) = properties.get_mut(name) {
                    property.default = None;
                }
            }
        }
        RefOr::T(Schema::AllOf(parts)) => {
            parts.items.iter_mut().for_each(strip_required_defaults);
        }
        _ => {}
    }
}

/// Returns the schema name of a body.
fn schema_name(content: &RefOr<Content>) -> Option<&str> {
    let RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }) = content else { return None };
    schema.ref_location.rsplit('/').next()
}

/// Returns whether an empty object matches a schema.
fn accepts_empty_object(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if object.required.is_empty())
}
