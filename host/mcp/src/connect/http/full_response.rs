//! A response whose body has been read.

use reqwest::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::transport::streamable_http_client::{AuthRequiredError, StreamableHttpError};
use serde_json::Value;
use wattle_run::json::lenient;
use wattle_run::service_memory::{ResponseMemory, ServicesFull};

use crate::connect::http::error::{BodyError, Error};

/// Maximum bytes that the client reads of the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// A response whose body has been read.
pub(super) struct FullResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl FullResponse {
    /// Reads a response that may be an error. A body that cannot be read counts as empty, and so
    /// does the stream of events of a success, which may not end.
    pub(super) async fn read_error(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = if status.is_success() && is_event_stream(&headers) {
            Vec::new()
        } else {
            read_body(response, MAX_ERROR_BODY_BYTES, |_| Ok(())).await.unwrap_or_default()
        };
        Self { status, headers, body }
    }

    /// Reads a response with a body of at most `limit` bytes, which count as `memory`.
    pub(super) async fn read(
        response: Response,
        limit: usize,
        memory: &mut ResponseMemory,
    ) -> Result<Self, BodyError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response, limit, |bytes| memory.set(bytes)).await?;
        Ok(Self { status, headers, body })
    }

    /// Returns true if the response can mean that the server does not know the session. Status 401
    /// or 403 with a challenge has another meaning: the server asks for credentials. Any other
    /// status, and an error with a status of success, must mention a session.
    pub(super) fn may_mean_unknown_session(&self) -> bool {
        match self.status {
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::GONE => true,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                !self.headers.contains_key(WWW_AUTHENTICATE)
            }
            status if status.is_success() => self.mentions_session() && self.is_rpc_error(),
            _ => self.mentions_session(),
        }
    }

    /// Returns true if a request that was refused with this response may have had an effect: the
    /// server failed, or the response is a result of the request, an error with its id and a status
    /// of success. A gateway that answers instead of the server does not know the id.
    pub(super) fn may_follow_an_effect(&self) -> bool {
        self.status.is_server_error() || (self.status.is_success() && self.has_id())
    }

    /// Returns true if two requests were refused in the same way, apart from their request ids.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.status == other.status && self.comparable_body() == other.comparable_body()
    }

    /// Returns the error for refused credentials, with the server's explanation.
    pub(super) fn unauthorized(&self) -> Error {
        let challenge = self.headers.get(WWW_AUTHENTICATE);
        let words = match challenge {
            _ if !self.body.is_empty() && !is_page(&self.body) => {
                String::from_utf8_lossy(&self.body)
            }
            Some(challenge) => String::from_utf8_lossy(challenge.as_bytes()),
            None => "".into(),
        };
        StreamableHttpError::AuthRequired(AuthRequiredError::new(words.into_owned()))
    }

    /// Returns true if a body of an error's size contains the word "session".
    fn mentions_session(&self) -> bool {
        let word = b"session";
        self.body.len() <= MAX_ERROR_BODY_BYTES
            && self.body.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
    }

    fn is_rpc_error(&self) -> bool {
        let message = lenient::parse_message(&self.body);
        message.is_ok_and(|(message, _)| message.get("error").is_some_and(|it| !it.is_null()))
    }

    fn has_id(&self) -> bool {
        let message = lenient::parse_message(&self.body);
        message.is_ok_and(|(message, _)| message.get("id").is_some_and(|it| !it.is_null()))
    }

    fn comparable_body(&self) -> Value {
        match lenient::parse_message(&self.body) {
            Ok((Value::Object(mut fields), _)) => {
                fields.remove("id");
                Value::Object(fields)
            }
            Ok((other, _)) => other,
            Err(_) => String::from_utf8_lossy(&self.body).into(),
        }
    }
}

/// Returns true if the body is an HTML page.
pub(super) fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// Returns true if the body is a stream of events.
pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let form = headers.get(CONTENT_TYPE).and_then(|form| form.to_str().ok());
    form.is_some_and(|form| form.starts_with("text/event-stream"))
}

pub(super) fn retry_after(headers: &HeaderMap) -> Option<String> {
    headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Reads a body of at most `limit` bytes. `count` counts the bytes so far.
async fn read_body(
    mut response: Response,
    limit: usize,
    mut count: impl FnMut(u64) -> Result<(), ServicesFull> + Send,
) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Error::from)? {
        let bytes = body.len() + chunk.len();
        if bytes > limit {
            return Err(Error::ResponseBodyTooLarge { max_size: limit }.into());
        }
        count(bytes as u64)?;
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_session_are_recognized() {
        let error = r#"{"error":{"code":-32000,"message":"Session terminated"}}"#;
        let page = r#"{"result":{"tools":[{"name":"session"}]},"error":null}"#;
        for (status, challenge, body, expected) in [
            (400, false, "", true),
            (404, false, "", true),
            (410, false, "", true),
            (401, false, "", true),
            (401, true, "", false),
            (403, false, "", true),
            (403, true, "", false),
            (200, false, error, true),
            (200, false, page, false),
            (200, false, r#"{"error":{"code":-32602,"message":"no"}}"#, false),
            (409, false, "Conflict", false),
            (409, false, "SESSION closed", true),
            (500, false, error, true),
            (502, false, "<html>Bad gateway</html>", false),
        ] {
            let mut headers = HeaderMap::new();
            if challenge {
                headers.insert(WWW_AUTHENTICATE, "Bearer".parse().unwrap());
            }
            let status = StatusCode::from_u16(status).unwrap();
            let response = FullResponse { status, headers, body: body.as_bytes().to_vec() };
            assert_eq!(response.may_mean_unknown_session(), expected, "{status} {body}");
        }
    }
}
