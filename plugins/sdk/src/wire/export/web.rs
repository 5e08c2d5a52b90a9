//! The export `web`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::types;
use crate::bindings::web::exports::wattle::plugin::web as raw;
use crate::export::{HandlerEntry, describe_routes};
use crate::failure::Failure;
use crate::web::{Body, HandOff, Request, Response, StreamFormat, settle};
use crate::wire::convert::{extra, raw_extra};
use crate::wire::panic::report_panics;

/// Returns all endpoints with their descriptions.
pub fn list_routes(entries: &[HandlerEntry]) -> Vec<raw::Route> {
    report_panics();
    let route = |(entry, openapi): (&HandlerEntry, Value)| raw::Route {
        method: entry.method.to_owned(),
        path: entry.path.to_owned(),
        extra: vec![("openapi".to_owned(), openapi.to_string())],
    };
    entries.iter().zip(describe_routes(entries)).map(route).collect()
}

/// Handles a request with the endpoint for its method and route.
pub fn handle(
    entries: &[HandlerEntry],
    request: raw::Request,
) -> Result<raw::Response, types::Failure> {
    report_panics();
    let request = Request::from(request);
    let serves =
        |entry: &&HandlerEntry| entry.path == request.route && entry.method == request.method;
    let entry = entries.iter().find(serves).ok_or_else(|| {
        let (method, route) = (&request.method, &request.route);
        Failure::not_found(format!("the plugin has no endpoint `{method} {route}`"))
    })?;
    Ok(settle((entry.handle)(&request))?.into())
}

impl From<raw::Request> for Request {
    fn from(request: raw::Request) -> Self {
        Self {
            method: request.method,
            path: request.path,
            route: request.route,
            params: request.params,
            query: request.query,
            headers: request.headers,
            body: request.body,
            tenant: request.tenant,
            extra: extra(request.extra),
        }
    }
}

impl From<Response> for raw::Response {
    fn from(response: Response) -> Self {
        let body = match response.body {
            Body::Empty => raw::Body::Empty,
            Body::Bytes(bytes) => raw::Body::Bytes(bytes),
            Body::Blob(blob) => raw::Body::Blob(blob.0),
            Body::HandOff(hand_off) => raw::Body::HandOff(hand_off.into()),
            Body::Other(value) => raw::Body::Other(value.to_string()),
        };
        Self { status: response.status, headers: response.headers, body }
    }
}

impl From<HandOff> for raw::HandOff {
    fn from(hand_off: HandOff) -> Self {
        let format = match hand_off.format {
            StreamFormat::Sse => raw::StreamFormat::Sse,
            StreamFormat::AiSdk => raw::StreamFormat::AiSdk,
            StreamFormat::AgUi => raw::StreamFormat::AgUi,
            StreamFormat::Custom(name) => raw::StreamFormat::Custom(name),
            StreamFormat::Other(name) => raw::StreamFormat::Other(name),
        };
        Self {
            thread_id: hand_off.thread_id,
            run_id: hand_off.run_id,
            format,
            after: hand_off.after,
            extra: raw_extra(hand_off.extra),
        }
    }
}
