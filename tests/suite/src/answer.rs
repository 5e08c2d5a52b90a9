//! HTTP responses as status, headers and JSON.

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::described::Exchange;

/// A response that was read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON, or as a string if it is not valid JSON.
    pub body: Value,
}

impl Answer {
    /// Sends a request and reads the whole response.
    ///
    /// # Panics
    ///
    /// If the request fails, or an application responds otherwise than it describes; see
    /// [`described`](crate::described).
    pub async fn of(request: RequestBuilder) -> Self {
        let (exchange, response) = Exchange::begin(request).await;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await.expect("the body is complete");
        exchange.check(&text);
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }

    /// Returns status and body, so that one assertion compares both.
    pub fn parts(&self) -> (u16, &Value) {
        (self.status, &self.body)
    }

    /// Returns a header as text, or an empty text if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the body of a response that must have this status.
    ///
    /// # Panics
    ///
    /// If the status differs.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}
