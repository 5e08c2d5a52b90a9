//! Bodies of requests and responses, within limits.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::http::HttpBody;
use wattle_run::ports::BlobStore;
use wattle_run::service_memory::ResponseMemory;

use crate::secret::{Position, SecretInjector, SizeLimit};

/// Body of a request, with placeholders.
#[derive(Clone, Debug)]
pub(crate) enum RequestBody {
    /// No body.
    Empty,
    /// Text that can contain placeholders. The text is shared, because the host may send a request
    /// twice.
    Text(Arc<str>),
    /// Bytes, which are sent unchanged.
    Bytes(Bytes),
}

impl RequestBody {
    /// Loads the body of a request. Returns a failure with code `limit` if the body has more than
    /// `limit` bytes.
    pub(crate) async fn load(
        body: &HttpBody,
        limit: u64,
        blobs: &dyn BlobStore,
    ) -> Result<Self, Failure> {
        Ok(match body {
            HttpBody::Empty => Self::Empty,
            HttpBody::Text(text) => {
                check_size(text.len() as u64, limit)?;
                Self::Text(text.as_str().into())
            }
            HttpBody::Bytes(bytes) => {
                check_size(bytes.len() as u64, limit)?;
                Self::Bytes(bytes.clone())
            }
            HttpBody::Blob(blob) => {
                check_size(blobs.stat(*blob).await?.size, limit)?;
                Self::Bytes(blobs.get(*blob, 0, None).await?)
            }
        })
    }

    /// Returns the text with its placeholders; `None` if the body is not a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Empty | Self::Bytes(_) => None,
        }
    }

    /// Returns the size of the text; 0 if the body is not a text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text().map_or(0, str::len)
    }

    /// Returns the body with secrets inserted; `None` if there is no body. Returns a failure with
    /// code `limit` if the result has more than `limit` bytes.
    pub(crate) fn inject(
        &self,
        injector: &mut SecretInjector<'_>,
        limit: u64,
        allowed: &dyn Fn(&str) -> Result<(), Failure>,
    ) -> Result<Option<Bytes>, Failure> {
        Ok(match self {
            Self::Empty => None,
            Self::Text(text) => {
                let limit = SizeLimit { name: "request_bytes", bytes: limit };
                Some(injector.inject(text, Position::Raw, limit, allowed)?.into())
            }
            Self::Bytes(bytes) => Some(bytes.clone()),
        })
    }
}

/// Reads the body of a response, which counts as `memory`. Returns a failure with code `limit` as
/// soon as the declared or received length exceeds the limit, or the memory does not suffice.
pub(crate) async fn read_body(
    response: &mut Response,
    limit: u64,
    memory: &mut ResponseMemory,
    broken: &(dyn Fn(reqwest::Error) -> Failure + Sync),
) -> Result<Bytes, Failure> {
    let declared = response.content_length().unwrap_or(0);
    if declared > limit {
        return Err(too_large("response_bytes", "response", limit));
    }
    let mut body = BytesMut::with_capacity(declared as usize);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        let bytes = body.len() as u64 + chunk.len() as u64;
        if bytes > limit {
            return Err(too_large("response_bytes", "response", limit));
        }
        memory.set(bytes).map_err(|full| full.to_failure("the response"))?;
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn check_size(bytes: u64, limit: u64) -> Result<(), Failure> {
    if bytes > limit { Err(too_large("request_bytes", "request", limit)) } else { Ok(()) }
}

fn too_large(name: &str, what: &str, limit: u64) -> Failure {
    let message = format!("the {what} body has more than the allowed {limit} bytes");
    Failure::new(code::LIMIT, message).with_details(json!({ "limit": name, "allowed": limit }))
}
