//! Pictures of photographs and videos, as the services show them from hosts of their own.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::picture::landscape;

/// Answers with a drawn picture, which looks different for each photograph and video.
pub(super) fn answer(id: &str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "image/png"), (header::CACHE_CONTROL, "public, max-age=31536000")];
    (headers, landscape(id)).into_response()
}
