//! Endpoints that exercise HTTP itself: echo, delay, status, redirect, size, counter.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Json,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};

use super::{call::Call, reply::Reply, shared::Shared};

/// Size of the chunks of a large body, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

static CHUNK: [u8; CHUNK_BYTES] = [b'x'; CHUNK_BYTES];

/// Responds to a request that belongs to no service.
pub(super) async fn answer(shared: &Shared, call: &Call, segments: &[&str]) -> Reply {
    let (rule, response) = match segments {
        ["echo", ..] => ("echo", echo(call)),
        ["slow", ms] => ("slow", slow(ms).await),
        ["status", code] => ("status", status(code)),
        ["redirect"] => ("redirect", redirect(call)),
        ["big", bytes] => ("big", big(bytes)),
        ["count", name] => {
            let count = shared.count(name);
            ("count", Json(json!({"name": name, "count": count})).into_response())
        }
        _ => ("none", refuse(StatusCode::NOT_FOUND, &format!("nothing at `{}`", call.path))),
    };
    Reply { rule, response }
}

/// Returns the complete request, including the unredacted values of headers.
fn echo(call: &Call) -> Response {
    let headers: BTreeMap<String, String> = call
        .headers
        .iter()
        .map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let query: BTreeMap<&String, &String> =
        call.query.iter().map(|(key, value)| (key, value)).collect();
    let text = std::str::from_utf8(&call.body).ok();
    let base64 = text.is_none().then(|| STANDARD.encode(&call.body));
    Json(json!({
        "method": call.method, "path": call.path, "query": query, "headers": headers,
        "json": call.json, "text": text, "base64": base64, "bytes": call.body.len(),
    }))
    .into_response()
}

async fn slow(ms: &str) -> Response {
    let Ok(ms) = ms.parse() else {
        return bad_number(ms);
    };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Json(json!({ "waited_ms": ms })).into_response()
}

fn status(code: &str) -> Response {
    let status = code.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
    let Some(status) = status else {
        return bad_number(code);
    };
    (status, Json(json!({"status": status.as_u16()}))).into_response()
}

/// Redirects to the URL in `to`, with the status `code` or 302.
fn redirect(call: &Call) -> Response {
    let code = call.parameter("code").and_then(|code| code.parse().ok()).unwrap_or(302);
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::FOUND);
    match call.parameter("to") {
        Some(to) => (status, [(header::LOCATION, to.to_owned())]).into_response(),
        None => refuse(StatusCode::BAD_REQUEST, "the parameter `to` is missing"),
    }
}

/// Returns a body of this size, sent in chunks without a `content-length`.
fn big(bytes: &str) -> Response {
    let Ok(total) = bytes.parse::<usize>() else {
        return bad_number(bytes);
    };
    let pieces = (0..total).step_by(CHUNK_BYTES).map(move |sent| {
        let length = CHUNK_BYTES.min(total - sent);
        Ok::<Bytes, std::io::Error>(Bytes::from_static(&CHUNK[..length]))
    });
    let headers = [(header::CONTENT_TYPE, "application/octet-stream")];
    (headers, Body::from_stream(stream::iter(pieces))).into_response()
}

fn bad_number(text: &str) -> Response {
    refuse(StatusCode::BAD_REQUEST, &format!("`{text}` is not a valid number"))
}

fn refuse(status: StatusCode, error: &str) -> Response {
    let body: Value = json!({ "error": error });
    (status, Json(body)).into_response()
}
