//! Images of photographs and videos, which the services serve from separate hosts.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::picture::landscape;

/// Responds with a generated image, which differs for each photograph and video.
pub(super) fn answer(id: &str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "image/png"), (header::CACHE_CONTROL, "public, max-age=31536000")];
    (headers, landscape(id)).into_response()
}
