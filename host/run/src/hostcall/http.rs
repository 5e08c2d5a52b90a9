//! Outbound HTTP.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;

use crate::grant::Grants;
use crate::hostcall::{HostCall, Idempotency};
use crate::limit;
use crate::ports::Caller;
use crate::ports::blob::BlobRef;

/// The body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// No body.
    #[default]
    Empty,
    /// Text. Placeholders for secrets are replaced.
    Text(String),
    /// Bytes, sent unchanged.
    Bytes(#[serde(with = "crate::hostcall::bytes_serde")] Bytes),
    /// A blob, sent unchanged.
    Blob(BlobRef),
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// Method, in upper case.
    pub method: String,
    /// Absolute URL.
    pub url: String,
    /// Header fields, in order. Placeholders for secrets in values are replaced.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: HttpBody,
    /// Timeout of the whole exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Value of the `Idempotency-Key` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Delay before the host sends the request, up to [`limit::HTTP_DELAY_MS`]. Guests cannot
    /// sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u32>,
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Header fields; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    #[serde(with = "crate::hostcall::bytes_serde")]
    pub body: Bytes,
    /// URL after redirects, without secrets.
    pub url: String,
}

impl HttpRequest {
    /// Returns the URL without its query, which may be long or private.
    fn url_without_query(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns the delay before the request is sent.
    pub(crate) fn delay(&self) -> Option<Duration> {
        let delay_ms = self.delay_ms?.min(limit::HTTP_DELAY_MS);
        (delay_ms > 0).then(|| Duration::from_millis(delay_ms.into()))
    }
}

impl HostCall for HttpRequest {
    type Output = HttpResponse;
    const FUNCTION: &'static str = CallKind::SendHttp.name();
    const LOGS_START: bool = true;

    fn idempotency(&self) -> Idempotency {
        if is_idempotent(&self.method) || self.idempotency_key.is_some() {
            Idempotency::Idempotent
        } else {
            Idempotency::NotIdempotent
        }
    }

    fn summary(&self) -> String {
        format!("{} {}", self.method, self.url_without_query())
    }

    /// The adapter checks the rules, for every redirect.
    fn check_allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }
}

/// Returns true if a request of this method may be repeated.
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(extra: &str) -> HttpRequest {
        let text = format!(r#"{{"method":"GET","url":"https://a.example","headers":[]{extra}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn http_delay_is_capped_and_a_delay_of_zero_is_none() {
        let delay = |extra| request(extra).delay();
        assert_eq!(delay(""), None);
        assert_eq!(delay(r#","delay_ms":0"#), None);
        assert_eq!(delay(r#","delay_ms":200"#), Some(Duration::from_millis(200)));
        assert_eq!(delay(r#","delay_ms":4000000000"#), Some(Duration::from_secs(10)));
    }

    #[test]
    fn journaled_request_has_a_delay_only_if_one_is_set() {
        let shown = |extra| serde_json::to_value(request(extra)).unwrap();
        assert!(shown("").get("delay_ms").is_none());
        assert_eq!(shown(r#","delay_ms":200"#)["delay_ms"], 200);
    }
}
