//! Calls of `http`.

use crate::bindings::imports::wattle::plugin::http as raw;
use crate::failure::Failure;
use crate::http::{Body, Request, Response};
use crate::wire::convert::{extra, raw_extra, result};

pub(crate) fn send(request: Request) -> Result<Response, Failure> {
    result(raw::send(&request.into()))
}

pub(crate) fn send_all(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
    let requests: Vec<raw::Request> = requests.into_iter().map(Into::into).collect();
    raw::send_all(&requests).into_iter().map(result).collect()
}

impl From<Request> for raw::Request {
    fn from(request: Request) -> Self {
        let body = match request.body {
            Body::Empty => raw::Body::Empty,
            Body::Text(text) => raw::Body::Text(text),
            Body::Bytes(bytes) => raw::Body::Bytes(bytes),
            Body::Blob(blob) => raw::Body::Blob(blob.0),
            Body::Other(value) => raw::Body::Other(value.to_string()),
        };
        Self {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body,
            timeout_ms: request.timeout_ms,
            idempotency_key: request.idempotency_key,
            extra: raw_extra(request.extra),
        }
    }
}

impl From<raw::Response> for Response {
    fn from(response: raw::Response) -> Self {
        Self {
            status: response.status,
            headers: response.headers,
            body: response.body,
            url: response.url,
            extra: extra(response.extra),
        }
    }
}
