//! The OpenAPI document of the native API.

use axum::Json;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Wattle",
        description = "Native API of Wattle. Every failure is an `application/problem+json` \
                       document with a stable `code`. Endpoints of apps are described by the apps."
    ),
    components(schemas(crate::problem::ProblemDocument)),
    tags(
        (name = "apps", description = "Loaded apps, their graphs and plugins"),
        (name = "threads", description = "Threads with state, history, events and trace"),
        (name = "runs", description = "Runs on threads"),
        (name = "memory", description = "What agents remember over all threads"),
        (name = "tenants", description = "Model routes that tenants bring along"),
        (name = "keys", description = "API keys that are made and revoked while the host runs"),
        (name = "host", description = "The host itself"),
    )
)]
struct Base;

/// The parts of the document that belong to no endpoint.
pub fn base() -> OpenApi {
    Base::openapi()
}

/// Answers with the document.
pub fn answer(document: &OpenApi) -> Json<OpenApi> {
    Json(document.clone())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_document_is_as_published() {
        let document = crate::native::router().into_openapi();
        let mut document = serde_json::to_value(&document).unwrap();
        document["info"]["version"] = "[VERSION]".into();
        insta::assert_json_snapshot!(document);
    }
}
