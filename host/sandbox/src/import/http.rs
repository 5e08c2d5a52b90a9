//! `wattle:plugin/http`: outbound HTTP.

use bytes::Bytes;
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};

use crate::bindings::wattle::plugin::{http, types};
use crate::host_state::HostState;
use crate::import::batch::failures_if_too_large;
use crate::import::types::{parse_blob_ref, unsupported_case};
use crate::import_error::ImportError;
use crate::json;

const SEND: &str = CallKind::SendHttp.name();

/// Key of `extra` for the delay before the host sends the request, in milliseconds.
const DELAY_MS: &str = "delay_ms";

impl http::Host for HostState {
    async fn send(&mut self, request: http::Request) -> Result<http::Response, ImportError> {
        let gate = self.gate(SEND)?;
        let request = into_request(request).map_err(|failure| gate.refuse(failure))?;
        let response = self.call(request).await?;
        Ok(from_response(response))
    }

    async fn send_all(
        &mut self,
        requests: Vec<http::Request>,
    ) -> wasmtime::Result<Vec<Result<http::Response, types::Failure>>> {
        self.call_all(into_requests(requests), from_response).await
    }
}

/// Converts the requests of a batch, unless it is too large.
fn into_requests(requests: Vec<http::Request>) -> Vec<Result<HttpRequest, Failure>> {
    let failures = failures_if_too_large(&requests);
    failures.unwrap_or_else(|| requests.into_iter().map(into_request).collect())
}

fn into_request(request: http::Request) -> Result<HttpRequest, Failure> {
    let body = match request.body {
        http::Body::Empty => HttpBody::Empty,
        http::Body::Text(text) => HttpBody::Text(text),
        http::Body::Bytes(bytes) => HttpBody::Bytes(Bytes::from(bytes)),
        http::Body::Blob(text) => HttpBody::Blob(parse_blob_ref(&text, SEND)?),
        http::Body::Other(_) => return Err(unsupported_case(SEND, "body", "other")),
    };
    let delay_ms = json::extra_field(&request.extra, DELAY_MS).map(delay_ms).transpose()?;
    Ok(HttpRequest {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body,
        timeout_ms: request.timeout_ms,
        idempotency_key: request.idempotency_key,
        delay_ms,
    })
}

fn delay_ms(text: &str) -> Result<u32, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::new(
            code::INVALID,
            format!("`{SEND}`: `extra.{DELAY_MS}` is not a whole number of milliseconds: {error}"),
        )
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

#[cfg(test)]
mod tests {
    use wattle_run::limit;

    use super::*;

    fn request(extra: &[(&str, &str)]) -> http::Request {
        let extra = extra.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        http::Request {
            method: "GET".to_owned(),
            url: "https://a.example".to_owned(),
            headers: Vec::new(),
            body: http::Body::Empty,
            timeout_ms: None,
            idempotency_key: None,
            extra: extra.collect(),
        }
    }

    fn read(extra: &[(&str, &str)]) -> Result<Option<u32>, Failure> {
        into_request(request(extra)).map(|request| request.delay_ms)
    }

    #[test]
    fn a_delay_is_read_from_extra() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("other", "{}"), ("delay_ms", "200")]), Ok(Some(200)));
        for wrong in ["-1", "\"200\"", "0.5", "{"] {
            let failure = read(&[("delay_ms", wrong)]).unwrap_err();
            assert_eq!(failure.code, code::INVALID);
            assert!(failure.message.contains("`extra.delay_ms`"), "{}", failure.message);
        }
    }

    #[test]
    fn requests_of_a_batch_that_is_too_large_are_not_converted() {
        for (requests, expected) in [(2, code::INVALID), (limit::BATCH_CALLS + 1, code::LIMIT)] {
            let wrong = (0..requests).map(|_| request(&[(DELAY_MS, "-1")])).collect();
            let converted = into_requests(wrong);
            assert_eq!(converted.len(), requests);
            assert!(converted.into_iter().all(|it| it.unwrap_err().code == expected));
        }
    }
}
