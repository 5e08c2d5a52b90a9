//! One request as the stand-ins see it: read to its end before anything else happens.

use axum::{
    body,
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use serde_json::Value;
use url::form_urlencoded;

/// Largest request body: a picture of 8 MiB in base64 with room for several.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request with its whole body.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The body as JSON, if it is.
    pub(super) json: Option<Value>,
    /// The model that is asked, from the body or the path.
    pub(super) model: Option<String>,
}

impl Call {
    /// Reads the request; fails if the client breaks off or the body is too long.
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

    /// The value of a header that is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The first value of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The token of `authorization: Bearer <token>`.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.header(header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ")
    }

    /// The address the caller knows this server by.
    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.header("host").unwrap_or("localhost"))
    }
}

#[cfg(test)]
impl Call {
    /// A call as a client would make it, for unit tests.
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

/// Whether a key opens the door: any but none, an empty one and the one that tests a refusal.
pub(super) fn is_key_accepted(key: Option<&str>) -> bool {
    key.is_some_and(|key| !key.trim().is_empty() && key != "bad-key")
}

/// Gemini names the model in the path, the others in the body.
fn model_of(path: &str, json: Option<&Value>) -> Option<String> {
    let in_path = path.split_once("/models/").map(|(_, rest)| rest.split(':').next());
    let in_body = json.and_then(|json| json.get("model")?.as_str());
    in_path.flatten().or(in_body).map(str::to_owned)
}
