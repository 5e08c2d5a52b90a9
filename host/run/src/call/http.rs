//! Outbound HTTP.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wattle_graph::failure::Failure;

use crate::call::{HostCall, Repeat};
use crate::gate::Site;
use crate::gate::unwind::Stop;
use crate::grant::Grants;
use crate::ports::Caller;
use crate::ports::blob::BlobRef;

/// The body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// None.
    #[default]
    Empty,
    /// Text, in which secrets may be named.
    Text(String),
    /// Bytes, sent as they are.
    Bytes(#[serde(with = "crate::call::bytes")] Bytes),
    /// A blob, sent as it is.
    Blob(BlobRef),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// Upper case.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// In order; secrets may be named in values.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: HttpBody,
    /// Whole exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Sent as `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    #[serde(with = "crate::call::bytes")]
    pub body: Bytes,
    /// Address after redirects, without secrets.
    pub url: String,
}

impl HttpRequest {
    /// The address without its query, which may be long or private.
    fn address(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }
}

impl HostCall for HttpRequest {
    type Answer = HttpResponse;
    const FUNCTION: &'static str = "http.send";
    const SLOW: bool = true;

    fn repeat(&self) -> Repeat {
        let safe = matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE");
        if safe || self.idempotency_key.is_some() { Repeat::Safe } else { Repeat::InDoubt }
    }

    fn summary(&self) -> String {
        format!("{} {}", self.method, self.address())
    }

    /// The rules are checked by the adapter, for every redirect hop anew.
    fn allowed(&self, _grants: &Grants, _caller: &Caller) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, site: &Site<'_>) -> Result<HttpResponse, Stop> {
        let Site { ports, caller, grants, .. } = site;
        let (rules, limits) = (&grants.http, &grants.limits.net);
        Ok(ports.net.send(caller, rules, limits, self, ports.blobs.as_ref()).await?)
    }
}
