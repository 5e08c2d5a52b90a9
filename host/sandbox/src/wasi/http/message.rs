//! Conversion of requests and responses between `wasi:http` and the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};

/// Header by which a service recognizes a repeated request. The gate has a field for it, since a
/// request with a key may be repeated after a crash.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The reason why a request is not sent.
#[derive(Debug)]
pub(crate) enum NotSent {
    /// The guest receives this error.
    Error(Error),
    /// The bodies of the guest in memory reached their limit.
    HeldBytes,
}

impl From<Error> for NotSent {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The bytes of one body in memory. Until this value is dropped, these bytes count together with
/// the bodies of the other requests of the guest.
pub(crate) struct HeldBytes {
    all: Arc<AtomicU64>,
    own: u64,
    allowed: u64,
}

impl HeldBytes {
    /// Creates the count of one body. `all` is the count of the bodies of all requests, which may
    /// have at most `allowed` bytes.
    pub(crate) fn new(all: Arc<AtomicU64>, allowed: u64) -> Self {
        Self { all, own: 0, allowed }
    }

    fn take(&mut self, bytes: u64) -> Result<(), NotSent> {
        self.own += bytes;
        let before = self.all.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.allowed {
            return Err(NotSent::HeldBytes);
        }
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// Waits for the body of a request, which has at most `allowed` bytes, and returns the request for
/// the gate. The body is sent unchanged: placeholders for secrets belong into headers or the query.
pub(crate) async fn into_call(
    request: Request<WasiBody>,
    options: Option<RequestOptions>,
    allowed: u64,
    held: &mut HeldBytes,
) -> Result<HttpRequest, NotSent> {
    let (head, body) = request.into_parts();
    let mut headers = Vec::with_capacity(head.headers.len());
    let mut idempotency_key = None;
    for (name, value) in &head.headers {
        let text = std::str::from_utf8(value.as_bytes()).map_err(|_| {
            Error::InternalError(Some(format!("the value of the header `{name}` is not UTF-8")))
        })?;
        if name == IDEMPOTENCY_KEY {
            idempotency_key = Some(text.to_owned());
        } else {
            headers.push((name.as_str().to_owned(), text.to_owned()));
        }
    }
    let body = collect(body, allowed, held).await?;
    Ok(HttpRequest {
        method: head.method.as_str().to_owned(),
        url: head.uri.to_string(),
        headers,
        body: if body.is_empty() { HttpBody::Empty } else { HttpBody::Bytes(body) },
        timeout_ms: options.and_then(timeout_ms),
        idempotency_key,
        delay_ms: None,
    })
}

/// Collects a body. Trailers are dropped, because requests of the gate have none.
async fn collect(mut body: WasiBody, allowed: u64, held: &mut HeldBytes) -> Result<Bytes, NotSent> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if (bytes.len() + data.len()) as u64 > allowed {
            return Err(Error::HttpRequestBodySize(Some(allowed)).into());
        }
        held.take(data.len() as u64)?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// Returns the timeout of the whole exchange. The guest sees the first byte of a response when the
/// response is complete, so the timeout for the first byte is the timeout for the whole response.
fn timeout_ms(options: RequestOptions) -> Option<u32> {
    let first_byte = options.first_byte_timeout?;
    let whole = options.connect_timeout.unwrap_or_default().saturating_add(first_byte);
    Some(u32::try_from(whole.as_millis()).unwrap_or(u32::MAX))
}

/// Returns the response for the guest. A person can replace a result in the journal, so the headers
/// are checked.
pub(super) fn into_response(response: HttpResponse) -> Result<Response<WasiBody>, Error> {
    let mut builder = Response::builder().status(response.status);
    for (name, value) in &response.headers {
        builder = builder.header(name, value.as_bytes());
    }
    let body: WasiBody = Full::new(response.body).map_err(|never| match never {}).boxed_unsync();
    builder.body(body).map_err(|error| {
        Error::InternalError(Some(format!("the response is not valid HTTP: {error}")))
    })
}

/// Returns the error code of WASI for a failure of the gate.
pub(super) fn into_error(failure: Failure) -> Error {
    match failure.code.as_str() {
        code::DENIED => Error::HttpRequestDenied,
        code::TIMEOUT => Error::ConnectionReadTimeout,
        _ => Error::InternalError(Some(failure.message)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Converts a request whose body may have at most 5 bytes.
    async fn convert(
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<HttpRequest, NotSent> {
        into_call(request, options, 5, &mut HeldBytes::new(Arc::default(), 5)).await
    }

    fn request(text: &'static str) -> Request<WasiBody> {
        let body = Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {});
        Request::post("https://a.example/x?key={{secret:KEY}}")
            .header("Authorization", "Bearer {{secret:TOKEN}}")
            .header("Idempotency-Key", "7")
            .body(body.boxed_unsync())
            .unwrap()
    }

    #[tokio::test]
    async fn request_keeps_its_parts() {
        let options = RequestOptions {
            connect_timeout: Some(Duration::from_secs(1)),
            first_byte_timeout: Some(Duration::from_secs(2)),
            between_bytes_timeout: None,
        };
        let call = convert(request("hello"), Some(options)).await.unwrap();
        let token = ("authorization".to_owned(), "Bearer {{secret:TOKEN}}".to_owned());
        let expected = HttpRequest {
            method: "POST".to_owned(),
            url: "https://a.example/x?key={{secret:KEY}}".to_owned(),
            headers: vec![token],
            body: HttpBody::Bytes(Bytes::from_static(b"hello")),
            timeout_ms: Some(3_000),
            idempotency_key: Some("7".to_owned()),
            delay_ms: None,
        };
        assert_eq!(call, expected);
    }

    #[tokio::test]
    async fn request_with_an_empty_body_becomes_a_call_without_a_body() {
        let call = convert(request(""), None).await.unwrap();
        assert_eq!((call.body, call.timeout_ms), (HttpBody::Empty, None));
    }

    #[tokio::test]
    async fn body_above_the_limit_is_refused() {
        let refused = convert(request("hello!"), None).await;
        let is_refused =
            matches!(refused, Err(NotSent::Error(Error::HttpRequestBodySize(Some(5)))));
        assert!(is_refused, "{refused:?}");
    }

    #[tokio::test]
    async fn bodies_of_a_guest_share_a_limit_until_they_are_dropped() {
        let all = Arc::new(AtomicU64::new(0));
        let [mut first, mut second, mut third] = [(); 3].map(|()| HeldBytes::new(all.clone(), 8));
        assert!(into_call(request("hello"), None, 5, &mut first).await.is_ok());
        let refused = into_call(request("hello"), None, 5, &mut second).await;
        assert!(matches!(refused, Err(NotSent::HeldBytes)), "{refused:?}");
        drop((first, second));
        assert!(into_call(request("hello"), None, 5, &mut third).await.is_ok());
    }

    #[tokio::test]
    async fn header_that_is_not_utf_8_is_refused() {
        let mut request = request("");
        let value = http::HeaderValue::from_bytes(&[0xff]).unwrap();
        request.headers_mut().insert("x-name", value);
        match convert(request, None).await {
            Err(NotSent::Error(Error::InternalError(Some(message)))) => {
                assert!(message.contains("`x-name`"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn response_keeps_its_parts() {
        let response = HttpResponse {
            status: 404,
            headers: vec![("x-name".to_owned(), "Zoë".to_owned())],
            body: Bytes::from_static(b"nothing"),
            url: "https://a.example".to_owned(),
        };
        let response = into_response(response).unwrap();
        assert_eq!(response.status(), 404);
        assert_eq!(response.headers()["x-name"].as_bytes(), "Zoë".as_bytes());
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), Bytes::from_static(b"nothing"));
    }

    #[test]
    fn invalid_response_is_an_error() {
        let response = HttpResponse {
            status: 200,
            headers: vec![("x".to_owned(), "a\nb".to_owned())],
            body: Bytes::new(),
            url: String::new(),
        };
        assert!(matches!(into_response(response), Err(Error::InternalError(Some(_)))));
    }

    #[test]
    fn failures_become_error_codes_of_wasi() {
        let error = |word| into_error(Failure::new(word, "why"));
        assert!(matches!(error(code::DENIED), Error::HttpRequestDenied));
        assert!(matches!(error(code::TIMEOUT), Error::ConnectionReadTimeout));
        let other = error(code::UNAVAILABLE);
        assert!(matches!(&other, Error::InternalError(Some(message)) if message == "why"));
    }
}
