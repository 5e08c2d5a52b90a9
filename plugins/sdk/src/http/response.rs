//! One response.

use serde::de::DeserializeOwned;

use crate::failure::{Failure, code};
use crate::json::{self, Extra};

/// Most characters of a body that a failure quotes.
const QUOTED_CHARS: usize = 200;

/// One response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// For example 200.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Address after redirects.
    pub url: String,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Response {
    /// A response as tests make it.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as a type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::read(&format!("the answer of `{}`", self.url), &self.text())
    }

    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The response if its status is 200 to 299.
    ///
    /// # Errors
    ///
    /// `rate-limited` for 429 and `unavailable` for 408 and 500 upwards, both worth a retry;
    /// `not-found` for 404; `http-status` for the rest.
    ///
    /// ```
    /// use wattle_plugin::http::Response;
    ///
    /// assert!(Response::new(204, "").ok().is_ok());
    /// assert!(Response::new(503, "").ok().is_err_and(|failure| failure.retryable));
    /// ```
    pub fn ok(self) -> Result<Self, Failure> {
        if self.is_success() {
            return Ok(self);
        }
        let (code, retryable) = match self.status {
            429 => (code::RATE_LIMITED, true),
            408 | 500.. => (code::UNAVAILABLE, true),
            404 => (code::NOT_FOUND, false),
            _ => ("http-status", false),
        };
        let text: String = self.text().chars().take(QUOTED_CHARS).collect();
        let message = format!("`{}` answered with status {}: {text}", self.url, self.status);
        let failure = Failure::new(code, message);
        Err(if retryable { failure.retryable() } else { failure })
    }
}
