//! HTTP requests to the stand-ins. A request is read completely before it is processed.

use axum::{
    body,
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use serde_json::Value;
use url::form_urlencoded;

/// Maximum size of a request body, in bytes. Several images of 8 MiB in Base64 fit.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request with its complete body.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The body as JSON, if it is valid JSON.
    pub(super) json: Option<Value>,
    /// The requested model, from the body or the path.
    pub(super) model: Option<String>,
}

impl Call {
    /// Reads a request. Fails if the client disconnects or the body is too long.
    pub(super) async fn read(request: Request) -> Result<Self, axum::Error> {
        let (parts, body) = request.into_parts();
        let body = body::to_bytes(body, MAX_BODY_BYTES).await?;
        let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let path = parts.uri.path().to_owned();
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        Ok(Self {
            method: parts.method.to_string(),
            model: model_of(&path, json.as_ref()),
            query: query.into_owned().collect(),
            headers: parts.headers,
            path,
            body,
            json,
        })
    }

    /// Returns the value of a header, or `None` if it is missing or contains bytes other than
    /// visible ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the first value of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the token of `authorization: Bearer <token>`.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.header(header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ")
    }

    /// Returns the URL under which the client reaches this server.
    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.header("host").unwrap_or("localhost"))
    }
}

#[cfg(test)]
impl Call {
    /// Creates a request for unit tests.
    pub(super) fn sample(method: &str, path: &str, json: &Value) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: Bytes::from(json.to_string()),
            json: Some(json.clone()),
            model: model_of(path, Some(json)),
        }
    }
}

/// Returns true if a key is accepted: any nonempty key except `bad-key`.
pub(super) fn is_key_accepted(key: Option<&str>) -> bool {
    key.is_some_and(|key| !key.trim().is_empty() && key != "bad-key")
}

/// Returns the requested model. Gemini has it in the path, the other APIs have it in the body.
fn model_of(path: &str, json: Option<&Value>) -> Option<String> {
    let in_path = path.split_once("/models/").map(|(_, rest)| rest.split(':').next());
    let in_body = json.and_then(|json| json.get("model")?.as_str());
    in_path.flatten().or(in_body).map(str::to_owned)
}
