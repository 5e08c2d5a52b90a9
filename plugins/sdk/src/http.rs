//! Outbound HTTP to the hosts that the operator granted.
//!
//! `{{secret:NAME}}` in a header value, the query or a text body is replaced by the host at the
//! socket, for granted hosts only: a plugin never holds a secret.
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

/// Key of `extra` for the time that the host waits before it sends.
const DELAY_MS: &str = "delay_ms";

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// Text, in which secrets are replaced.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Bytes of the blob store, which never pass through the guest.
    Blob(BlobRef),
    /// A kind this version has no case for.
    Other(Value),
}

/// One request. See the [module](self) for an example.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Upper case.
    pub method: String,
    /// Absolute, `https` or `http`.
    pub url: String,
    /// In their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// For the whole exchange; capped by the operator's limit.
    pub timeout_ms: Option<u32>,
    /// Sent as `Idempotency-Key`; makes a repeated request safe after a crash.
    pub idempotency_key: Option<String>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Request {
    /// A request with some method.
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        Self { method: method.to_ascii_uppercase(), url: url.into(), ..Self::default() }
    }

    /// A `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A `POST` request.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a query parameter, encoded. A value that is exactly one `{{secret:NAME}}` stays as it
    /// is, for the host to replace.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        query::append(&mut self.url, name, value);
        self
    }

    /// Sends text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.body = Body::Text(text.into());
        self
    }

    /// Sends bytes.
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Bytes(bytes.into());
        self
    }

    /// Sends a blob.
    pub fn blob(mut self, blob: BlobRef) -> Self {
        self.body = Body::Blob(blob);
        self
    }

    /// Sends JSON.
    pub fn json(self, value: &impl Serialize) -> Result<Self, Failure> {
        let text = json::to_value("the body of an HTTP request", value)?.to_string();
        Ok(self.header("content-type", "application/json").text(text))
    }

    /// Limits the whole exchange.
    pub fn timeout_ms(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Makes a repeated request safe after a crash, if the service knows `Idempotency-Key`.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Has the host wait before it sends, to back off from a busy service: a plugin cannot wait by
    /// itself. The host waits ten seconds at most; the time counts for the timeout of the node.
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

    /// What [`Request::delay_ms`] set, 0 without it; of use in tests, where no host waits.
    pub fn delay(&self) -> u32 {
        let delay_ms = self.extra.get(DELAY_MS).and_then(Value::as_u64);
        delay_ms.and_then(|delay_ms| u32::try_from(delay_ms).ok()).unwrap_or(0)
    }

    /// Sends the request. Any status is a response; a failure means that there was none.
    pub fn send(self) -> Result<Response, Failure> {
        host::http::send(self)
    }
}

/// Sends several requests at once; answers come in the order of the requests.
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
