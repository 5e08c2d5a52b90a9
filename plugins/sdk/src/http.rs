//! Outbound HTTP requests to hosts that the operator granted.
//!
//! The host replaces `{{secret:NAME}}` in a header value, the query or a text body when it sends
//! the request, and only for granted hosts. The plugin itself never has the value of a secret.
//!
//! ```
//! use wattle_plugin::http::{Request, Response};
//! use wattle_plugin::{Failure, testing::FakeHost};
//!
//! let host = FakeHost::new().http(|request| {
//!     assert_eq!(request.url, "https://api.example.com/rates?base=EUR");
//!     Ok(Response::new(200, r#"{"USD": 1.1}"#))
//! });
//! host.run(|| {
//!     let response = Request::get("https://api.example.com/rates")
//!         .query("base", "EUR")
//!         .header("authorization", "Bearer {{secret:RATES_KEY}}")
//!         .timeout_ms(5_000)
//!         .send()?
//!         .ok()?;
//!     let rates: serde_json::Value = response.json()?;
//!     assert_eq!(rates["USD"], 1.1);
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

mod query;
mod response;

use serde::Serialize;
use serde_json::Value;

pub use self::response::Response;
use crate::blob::BlobRef;
use crate::failure::Failure;
use crate::host;
use crate::json::{self, Extra};

/// Extension field that contains the delay before the request, in milliseconds.
const DELAY_MS: &str = "delay_ms";

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// Text. Placeholders of secrets in the text are replaced.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A blob. Its bytes do not pass through the guest.
    Blob(BlobRef),
    /// A kind unknown to this SDK version.
    Other(Value),
}

/// A request. See the [module](self) for an example.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Method in upper case.
    pub method: String,
    /// Absolute URL with the scheme `https` or `http`.
    pub url: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// Timeout of the whole exchange in milliseconds. The operator's limit is the maximum.
    pub timeout_ms: Option<u32>,
    /// Value of the header `Idempotency-Key`. With the header, the request is an idempotent call:
    /// the host may repeat it after a crash.
    pub idempotency_key: Option<String>,
    /// Extension fields.
    pub extra: Extra,
}

impl Request {
    /// Creates a request.
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        Self { method: method.to_ascii_uppercase(), url: url.into(), ..Self::default() }
    }

    /// Creates a `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Creates a `POST` request.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a query parameter and percent-encodes it. A value that consists of exactly one
    /// `{{secret:NAME}}` is not encoded, so that the host can replace it.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        query::append(&mut self.url, name, value);
        self
    }

    /// Sets a text body.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.body = Body::Text(text.into());
        self
    }

    /// Sets a body of bytes.
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Bytes(bytes.into());
        self
    }

    /// Sets a blob as the body.
    pub fn blob(mut self, blob: BlobRef) -> Self {
        self.body = Body::Blob(blob);
        self
    }

    /// Sets a JSON body with its content type.
    pub fn json(self, value: &impl Serialize) -> Result<Self, Failure> {
        let text = json::to_text("the body of an HTTP request", value)?;
        Ok(self.header("content-type", "application/json").text(text.into_string()))
    }

    /// Sets the timeout of the whole exchange, in milliseconds.
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Sets the header `Idempotency-Key`, which permits the host to repeat the request after a
    /// crash. The service must support the header.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Sets a delay in milliseconds before the host sends the request, to back off from a busy
    /// service. A plugin itself cannot wait. The host waits at most ten seconds. The delay counts
    /// toward the timeout of the node.
    ///
    /// ```
    /// use wattle_plugin::http::{Request, Response};
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// let host = FakeHost::new().http(|_| Ok(Response::new(503, "busy")));
    /// host.run(|| {
    ///     for delay_ms in [0, 200, 400] {
    ///         let _ = Request::get("https://api.example.com").delay_ms(delay_ms).send();
    ///     }
    /// });
    /// let delays: Vec<u32> = host.http_requests().iter().map(|it| it.delay()).collect();
    /// assert_eq!(delays, [0, 200, 400]);
    /// ```
    pub fn delay_ms(mut self, delay_ms: u32) -> Self {
        if delay_ms > 0 {
            self.extra.insert(DELAY_MS.to_owned(), delay_ms.into());
        } else {
            self.extra.remove(DELAY_MS);
        }
        self
    }

    /// Returns the delay that was set with [`Request::delay_ms`], or 0. For tests, because the fake
    /// host does not wait.
    pub fn delay(&self) -> u32 {
        let delay_ms = self.extra.get(DELAY_MS).and_then(Value::as_u64);
        delay_ms.and_then(|delay_ms| u32::try_from(delay_ms).ok()).unwrap_or(0)
    }

    /// Sends the request. A response with any status is a success; the call fails only without a
    /// response.
    pub fn send(self) -> Result<Response, Failure> {
        host::http::send(self)
    }
}

/// Sends several requests concurrently. Returns the results in the order of the requests.
///
/// ```
/// use wattle_plugin::http::{self, Request, Response};
/// use wattle_plugin::testing::FakeHost;
///
/// let host = FakeHost::new().http(|request| Ok(Response::new(200, request.url.clone())));
/// host.run(|| {
///     let answers = http::send_all(vec![
///         Request::get("https://a.example"),
///         Request::get("https://b.example"),
///     ]);
///     assert!(answers.iter().all(Result::is_ok));
/// });
/// ```
pub fn send_all(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
    host::http::send_all(requests)
}
