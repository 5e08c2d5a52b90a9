//! HTTP responses of web handlers.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::blob::BlobRef;
use crate::failure::Failure;
use crate::json::{self, Extra};

/// An HTTP response.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Status code, such as 200.
    pub status: u16,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// No body.
    Empty,
    /// A body of bytes.
    Bytes(Vec<u8>),
    /// A blob. Its bytes do not pass through the guest.
    Blob(BlobRef),
    /// A stream that the host sends instead of the guest.
    HandOff(HandOff),
    /// A kind unknown to this SDK version.
    Other(Value),
}

/// A hand-off: the host takes over the response and streams the events of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct HandOff {
    /// Id of the thread.
    pub thread_id: String,
    /// Id of the run; the newest run of the thread if `None`.
    pub run_id: Option<String>,
    /// Format of the stream.
    pub format: StreamFormat,
    /// Sequence number after which the stream begins; `None` begins at the first event.
    pub after: Option<u64>,
    /// Extension fields.
    pub extra: Extra,
}

/// The format of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamFormat {
    /// Server-sent events in the format of the host.
    Sse,
    /// The UI message stream of the AI SDK.
    AiSdk,
    /// AG-UI.
    AgUi,
    /// A format that the app defines in a file with this name.
    Custom(String),
    /// A format unknown to this SDK version.
    Other(String),
}

impl HandOff {
    /// Creates a hand-off of a run's stream.
    pub fn run(
        thread_id: impl Into<String>,
        run_id: impl Into<String>,
        format: StreamFormat,
    ) -> Self {
        Self {
            thread_id: thread_id.into(),
            run_id: Some(run_id.into()),
            format,
            after: None,
            extra: Extra::new(),
        }
    }

    /// Cancels the run if its last client disconnects and none connects again within `grace_ms`
    /// milliseconds, at most 10 minutes.
    pub fn cancel_on_disconnect(mut self, grace_ms: u64) -> Self {
        self.extra.insert("on_disconnect".to_owned(), "cancel".into());
        self.extra.insert("grace_ms".to_owned(), grace_ms.into());
        self
    }

    /// Selects the nodes whose model calls are shown, in formats that show a conversation.
    pub fn nodes(mut self, nodes: &[&str]) -> Self {
        self.extra.insert("nodes".to_owned(), nodes.to_vec().into());
        self
    }
}

impl Response {
    /// Creates a response without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Empty }
    }

    /// Creates a response with a JSON body.
    pub fn json(status: u16, value: &impl Serialize) -> Result<Self, Failure> {
        let text = json::to_text("the response body", value)?;
        Ok(Self::of(status, "application/json", text.into_string().into_bytes()))
    }

    /// Creates a response with a text body.
    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::of(status, "text/plain; charset=utf-8", text.into().into_bytes())
    }

    /// Creates a response with a body of bytes and status 200.
    pub fn bytes(content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(200, content_type, bytes.into())
    }

    /// Creates a response with a blob and status 200. The host sends the blob with its media type.
    pub fn blob(blob: BlobRef) -> Self {
        Self { body: Body::Blob(blob), ..Self::empty(200) }
    }

    /// Creates a hand-off of the newest run of a thread, with status 200.
    ///
    /// ```
    /// use wattle_plugin::web::{Response, StreamFormat};
    ///
    /// let response = Response::hand_off("thread-1", StreamFormat::AiSdk);
    /// assert_eq!(response.status, 200);
    /// ```
    pub fn hand_off(thread_id: impl Into<String>, format: StreamFormat) -> Self {
        Self::hand_off_from(HandOff {
            thread_id: thread_id.into(),
            run_id: None,
            format,
            after: None,
            extra: Extra::new(),
        })
    }

    /// Creates a response with a hand-off and status 200.
    pub fn hand_off_from(hand_off: HandOff) -> Self {
        Self { body: Body::HandOff(hand_off), ..Self::empty(200) }
    }

    /// Creates a response with a failure as an `application/problem+json` body.
    ///
    /// ```
    /// use wattle_plugin::{Failure, web::Response};
    ///
    /// let response = Response::problem(404, &Failure::not_found("no item 7"));
    /// assert_eq!(response.json_body()?["detail"], "no item 7");
    /// # Ok::<_, Failure>(())
    /// ```
    pub fn problem(status: u16, failure: &Failure) -> Self {
        let mut problem = Map::new();
        problem.insert("status".to_owned(), status.into());
        problem.insert("code".to_owned(), failure.code.as_str().into());
        problem.insert("detail".to_owned(), failure.message.as_str().into());
        problem
            .insert("details".to_owned(), failure.details.as_deref().cloned().unwrap_or_default());
        let body = Value::Object(problem).to_string().into_bytes();
        Self::of(status, "application/problem+json", body)
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Parses the body as JSON, for tests.
    pub fn json_body(&self) -> Result<Value, Failure> {
        match &self.body {
            Body::Bytes(bytes) => Ok(serde_json::from_slice(bytes)?),
            _ => Err(Failure::invalid("the response has no body of bytes")),
        }
    }

    fn of(status: u16, content_type: &str, bytes: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: Body::Bytes(bytes) }
    }
}

/// Converts the result of a handler for the host. A failure with a status becomes a response.
#[cfg_attr(not(any(target_arch = "wasm32", test)), expect(dead_code, reason = "for guests"))]
pub(crate) fn settle(answer: Result<Response, Failure>) -> Result<Response, Failure> {
    match answer {
        Err(failure) => match failure.status() {
            Some(status) => Ok(Response::problem(status, &failure)),
            None => Err(failure),
        },
        response => response,
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Response, settle};
    use crate::failure::Failure;

    #[test]
    fn failure_with_a_status_becomes_a_problem() {
        let response = settle(Err(Failure::invalid("no").with_status(422))).unwrap();
        assert_eq!(response.status, 422);
        assert_eq!(response.headers[0].1, "application/problem+json");
        assert!(settle(Err(Failure::invalid("no"))).is_err());
    }

    #[test]
    fn responses_have_bodies_headers_and_status() {
        let response = Response::bytes("image/png", [1, 2]).with_header("etag", "x");
        assert_eq!(response.headers.len(), 2);
        assert_eq!(response.body, Body::Bytes(vec![1, 2]));
        assert_eq!(Response::text(404, "gone").with_status(410).status, 410);
    }
}
