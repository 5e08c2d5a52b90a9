//! Responses.

use serde::de::DeserializeOwned;

use crate::failure::{Failure, code};
use crate::json::{self, Extra};

/// Maximum length in characters of the body's excerpt in a failure message.
const QUOTED_CHARS: usize = 200;

/// An HTTP response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// Status code, such as 200.
    pub status: u16,
    /// Headers with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// URL after redirects.
    pub url: String,
    /// Extension fields.
    pub extra: Extra,
}

impl Response {
    /// Builds a response, for tests.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    /// Returns the first header with a name, in upper or lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as text. Invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the JSON body as a type.
    ///
    /// # Errors
    ///
    /// `invalid` if the body is not JSON or does not fit the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::read(format_args!("the response of `{}`", self.url), &self.text())
    }

    /// Returns true if the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the response if its status is 200 to 299.
    ///
    /// # Errors
    ///
    /// `rate-limited` for 429, and `unavailable` for 408 and from 500 on, which are both retryable;
    /// `not-found` for 404; `http-status` for any other status.
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
        let message = format!("`{}` responded with status {}: {text}", self.url, self.status);
        let failure = Failure::new(code, message);
        Err(if retryable { failure.retryable() } else { failure })
    }
}
