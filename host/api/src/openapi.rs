//! The OpenAPI document of the native API, and functions for the documents of further routes.

mod apps;
mod served;

use axum::http::{Method, StatusCode};
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, Schema};
use utoipa::{OpenApi as _, ToSchema};

pub(crate) use self::served::ServedDocument;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Wattle",
        description = "Native API of Wattle. Every failure is an `application/problem+json` \
                       document with a stable `code`. Paths below `/apps` are endpoints of apps, \
                       as the apps describe them. Other paths outside of `/api` and `/blobs` are \
                       those of an Agent Server, whose failures are documents with a `detail`."
    ),
    // The schema of traces is recursive, so utoipa does not find it through the endpoints.
    components(schemas(crate::problem::ProblemDocument, wattle_project::trace::GraphTrace)),
    tags(
        (name = "apps", description = "Loaded apps, their graphs and plugins"),
        (name = "threads", description = "Threads with state, history, events and trace"),
        (name = "runs", description = "Runs on threads"),
        (name = "memory", description = "Documents of the long-term memory"),
        (name = "tenants", description = "Model routes of tenants"),
        (name = "keys", description = "API keys that are created and revoked while the host runs"),
        (name = "host", description = "The host itself"),
    )
)]
struct ApiDoc;

/// Names of the security schemes: the two headers for a key.
const API_KEY_SCHEME: &str = "api_key";
const BEARER_SCHEME: &str = "bearer";

/// Error responses of the native API.
const COMMON_ERRORS: CommonErrors = CommonErrors {
    schema: "ProblemDocument",
    media_type: "application/problem+json",
    always: &[401, 403, 421, 429, 500, 503],
    with_path: &[400, 404],
    with_query: &[400],
    with_body: &[400, 413, 415, 422],
};

/// Error responses of a group of operations. An operation has the statuses of its parts: path,
/// query and body.
#[derive(Clone, Copy, Debug)]
pub struct CommonErrors {
    /// Name of the schema of the error body.
    pub schema: &'static str,
    /// Media type of the error body.
    pub media_type: &'static str,
    /// Statuses of every operation.
    pub always: &'static [u16],
    /// Statuses of operations with path parameters.
    pub with_path: &'static [u16],
    /// Statuses of operations with query parameters.
    pub with_query: &'static [u16],
    /// Statuses of operations with a request body.
    pub with_body: &'static [u16],
}

impl CommonErrors {
    fn statuses(&self, operation: &Operation) -> Vec<u16> {
        let parameters = operation.parameters.iter().flatten();
        let locations: Vec<&ParameterIn> = parameters
            .filter_map(|parameter| match parameter {
                RefOr::T(parameter) => Some(&parameter.parameter_in),
                RefOr::Ref(_) => None,
            })
            .collect();
        let mut statuses = self.always.to_vec();
        if locations.contains(&&ParameterIn::Path) {
            statuses.extend(self.with_path);
        }
        if locations.contains(&&ParameterIn::Query) {
            statuses.extend(self.with_query);
        }
        if operation.request_body.is_some() {
            statuses.extend(self.with_body);
        }
        statuses
    }

    /// Returns the name of the response component for a status.
    fn component_name(&self, status: u16) -> String {
        format!("{}{status}", self.schema)
    }

    fn response(&self, status: u16) -> Response {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(self.schema)));
        let response = ResponseBuilder::new().content(self.media_type, content.build());
        response.description(reason_phrase(&status.to_string())).build()
    }
}

/// Returns the parts of the OpenAPI document that belong to no endpoint.
pub fn base() -> OpenApi {
    ApiDoc::openapi()
}

/// Merges the OpenAPI document of the native endpoints with the document of further routes.
pub(crate) fn merge(mut native: OpenApi, further: OpenApi) -> OpenApi {
    add_common_errors(&mut native, &COMMON_ERRORS);
    let components = native.components.get_or_insert_with(Components::new);
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-key")));
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(API_KEY_SCHEME, key);
    components.add_security_scheme(BEARER_SCHEME, SecurityScheme::Http(bearer));
    let no_scopes: [&str; 0] = [];
    native.security = Some(vec![
        // A host without keys accepts requests without a key.
        SecurityRequirement::default(),
        SecurityRequirement::new(API_KEY_SCHEME, no_scopes),
        SecurityRequirement::new(BEARER_SCHEME, no_scopes),
    ]);
    native.merge(further);
    native
}

/// Adds the error responses to all operations of an OpenAPI document, and the reason phrase of each
/// status.
pub fn add_common_errors(document: &mut OpenApi, errors: &CommonErrors) {
    let OpenApi { paths, components, .. } = document;
    let shared = &mut components.get_or_insert_with(Components::new).responses;
    for operation in paths.paths.values_mut().flat_map(operations).map(|(_, it)| it) {
        operation.summary = operation.summary.take().map(|summary| summary.replace('\n', " "));
        let statuses = errors.statuses(operation);
        let responses = &mut operation.responses.responses;
        for status in statuses {
            responses.entry(status.to_string()).or_insert_with(|| {
                let name = errors.component_name(status);
                let response = Ref::from_response_name(&name);
                shared.entry(name).or_insert_with(|| errors.response(status).into());
                response.into()
            });
        }
        for (status, response) in responses {
            if let RefOr::T(response) = response
                && response.description.is_empty()
            {
                reason_phrase(status).clone_into(&mut response.description);
            }
        }
    }
}

/// Adds the schema of a type and the schemas that it refers to. Used for types whose schema utoipa
/// cannot derive.
pub fn push_schemas<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

/// Returns the operations of a path, with their methods.
pub fn operations(path: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, put, post, delete, patch, .. } = path;
    let all = [
        (Method::GET, get),
        (Method::PUT, put),
        (Method::POST, post),
        (Method::DELETE, delete),
        (Method::PATCH, patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn reason_phrase(status: &str) -> &'static str {
    let status = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok());
    status.and_then(|status| status.canonical_reason()).unwrap_or("Other")
}

#[cfg(test)]
mod tests {
    use utoipa_axum::router::OpenApiRouter;

    use crate::guard::access::Access;

    #[test]
    fn the_document_is_as_published() {
        let further = OpenApiRouter::<()>::new().into_openapi();
        let mut document = super::merge(crate::native::router().into_openapi(), further);
        Access::declare(&mut document, []);
        let mut document = serde_json::to_value(&document).unwrap();
        document["info"]["version"] = "[VERSION]".into();
        insta::assert_json_snapshot!(document);
    }
}
