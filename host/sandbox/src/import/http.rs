//! `wattle:plugin/http`: outbound HTTP.

use bytes::Bytes;
use wattle_graph::failure::Failure;
use wattle_run::call::http::{HttpBody, HttpRequest, HttpResponse};

use crate::bindings::wattle::plugin::{http, types};
use crate::guest::Guest;
use crate::halt::Halt;
use crate::import::types::{blob_ref, unknown};

const SEND: &str = "http.send";

impl http::Host for Guest {
    async fn send(&mut self, request: http::Request) -> Result<http::Response, Halt> {
        let answer = self.call(into_request(request)?).await?;
        Ok(from_response(answer))
    }

    async fn send_all(
        &mut self,
        requests: Vec<http::Request>,
    ) -> wasmtime::Result<Vec<Result<http::Response, types::Failure>>> {
        let requests = requests.into_iter().map(into_request).collect();
        self.call_all(requests, from_response).await
    }
}

fn into_request(request: http::Request) -> Result<HttpRequest, Failure> {
    let body = match request.body {
        http::Body::Empty => HttpBody::Empty,
        http::Body::Text(text) => HttpBody::Text(text),
        http::Body::Bytes(bytes) => HttpBody::Bytes(Bytes::from(bytes)),
        http::Body::Blob(text) => HttpBody::Blob(blob_ref(&text, SEND)?),
        http::Body::Other(_) => return Err(unknown(SEND, "body", "other")),
    };
    Ok(HttpRequest {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body,
        timeout_ms: request.timeout_ms,
        idempotency_key: request.idempotency_key,
    })
}

fn from_response(response: HttpResponse) -> http::Response {
    http::Response {
        status: response.status,
        headers: response.headers,
        body: response.body.into(),
        url: response.url,
        extra: Vec::new(),
    }
}
