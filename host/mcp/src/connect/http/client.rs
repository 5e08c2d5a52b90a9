//! The HTTP client of the transport, which normalizes the JSON of servers.
//!
//! The client of `rmcp` parses a body as a message of the protocol or fails. This client normalizes
//! the message first ([`Normalizer`]) and accepts more variants:
//!
//! * A success in response to a notification counts as `accepted`, independently of its body.
//! * A server may report an unknown session with 404, 400 or 401, see `unknown_session_error`.
//! * Redirects within the origin are followed, such as from `/mcp` to `/mcp/`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use reqwest::{Response, StatusCode, Url};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ListToolsRequest,
    PaginatedRequestParams, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use tokio::time::{sleep, timeout};
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::json::bounded::JsonError;
use wattle_run::json::lenient;

use crate::calls::Calls;
use crate::connect::MAX_MESSAGE_BYTES;
use crate::connect::http::events;
use crate::failure::exceeding_response;
use crate::normalize::{self, Normalizer};
use crate::permit::SendPermit;

/// Maximum bytes that the client reads of the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Maximum redirects that the client follows for one request.
const MAX_REDIRECTS: usize = 3;

/// Name of the header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";

/// Ids of the requests that probe a session. These ids are numbers, like the ids of `rmcp`, since a
/// server may accept only numbers. They start far above the ids of `rmcp`, so that no id occurs
/// twice in a session.
static NEXT_PROBE_ID: AtomicI64 = AtomicI64::new(1_000_000_000);

/// Timeout of a request that probes a session. A server refuses an unknown session immediately.
const SESSION_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Delays before an elicitation answer is sent again. `rmcp` allows five seconds in total.
const ANSWER_RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

type Error = StreamableHttpError<reqwest::Error>;

/// The HTTP client of a session, see the module documentation.
#[derive(Clone)]
pub(in crate::connect) struct NormalizingClient {
    http: reqwest::Client,
    normalizer: Normalizer,
    /// Calls in progress on the session.
    calls: Calls,
    /// Target of the last redirect, used for the rest of the session.
    redirect_target: Arc<Mutex<Option<Url>>>,
}

/// A message to the server, and its session if there is one.
#[derive(Clone, Copy)]
struct Outgoing<'a> {
    uri: &'a str,
    message: &'a ClientJsonRpcMessage,
    session: Option<&'a str>,
    headers: &'a HashMap<HeaderName, HeaderValue>,
    permit: &'a SendPermit,
}

impl NormalizingClient {
    pub(in crate::connect) fn new(
        http: reqwest::Client,
        normalizer: Normalizer,
        calls: Calls,
    ) -> Self {
        Self { http, normalizer, calls, redirect_target: Arc::default() }
    }

    async fn post(
        &self,
        outgoing: Outgoing<'_>,
        event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let sent = if matches!(outgoing.message, ClientJsonRpcMessage::Response(_)) {
            self.send_answer(outgoing).await
        } else {
            self.send(outgoing).await
        };
        let response = sent?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && outgoing.session.is_some() {
            return Err(self.session_expired(outgoing.permit));
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(
                HttpStatusError::new(status.as_u16(), retry_after(response.headers())).into()
            );
        }
        let given = response.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok());
        let given = given.map(str::to_owned);
        if !status.is_success() {
            let refusal = ErrorResponse::read(response).await;
            if outgoing.session.is_some()
                && let ClientJsonRpcMessage::Request(request) = outgoing.message
                && may_mean_unknown_session(refusal.status, &refusal.headers)
            {
                let error = self.unknown_session_error(outgoing, &request.request, &refusal);
                if let Some(error) = error.await {
                    return Err(error);
                }
            }
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return Err(unauthorized(&refusal));
            }
            return self.error_response(outgoing, given, refusal);
        }
        let ClientJsonRpcMessage::Request(request) = outgoing.message else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let form = response.headers().get(CONTENT_TYPE).and_then(|form| form.to_str().ok());
        if form.is_some_and(|form| form.starts_with("text/event-stream")) {
            let events =
                SseStream::from_bytes_stream(events::limit_size(response, event_bytes)).boxed();
            let events = self.normalized(events, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Sse(events, given));
        }
        let body = read_body(response, MAX_MESSAGE_BYTES).await?;
        let (owner, is_long) =
            (self.normalizer.sanitizer().work_owner(), is_long_parse(body.len()));
        let read = || self.read_response(&request.id, status, &body, given);
        block_in_place_in_turn(owner, is_long, read).await
    }

    /// Reads the body of a response to a request.
    fn read_response(
        &self,
        id: &RequestId,
        status: StatusCode,
        body: &[u8],
        given: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let messages = match self.normalizer.parse(body) {
            Err(JsonError::Limit(exceeded)) => {
                let error = exceeding_response(exceeded);
                let message = ServerJsonRpcMessage::error(error, Some(id.clone()));
                return Ok(StreamableHttpPostResponse::Json(message, given));
            }
            parsed => parsed.map(normalize::split_messages),
        };
        // With these statuses a server announces a later response, but some servers already send
        // the response.
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            let last = messages.as_ref().ok().and_then(|it| it.as_ref()?.last());
            if !last.is_some_and(normalize::is_response) {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
        }
        let messages = messages.map_err(|error| {
            unexpected(if is_page(body) {
                "it responds with a web page; check `url`".to_owned()
            } else {
                format!("its response cannot be read: {error}")
            })
        })?;
        let messages =
            messages.ok_or_else(|| unexpected("its response is not a message".to_owned()))?;
        self.parse_response(id, messages, given)
    }

    /// Normalizes the messages of a response. Several messages become an event stream.
    fn parse_response(
        &self,
        id: &RequestId,
        mut messages: Vec<Value>,
        given: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        for message in &mut messages {
            self.normalizer.normalize(message);
        }
        // A response with another id also belongs to this request, since it is the only request of
        // the exchange.
        if let Some(answer) = messages.last_mut().filter(|message| normalize::is_response(message))
        {
            answer["id"] = serde_json::to_value(id)?;
        }
        if messages.len() > 1 {
            let events = messages.iter();
            let events = events.map(|message| Ok(events::with_message(Sse::default(), message)));
            let events: Vec<Result<Sse, SseError>> = events.collect();
            return Ok(StreamableHttpPostResponse::Sse(stream::iter(events).boxed(), given));
        }
        let message = messages.pop().unwrap_or_default();
        let message: ServerJsonRpcMessage = serde_json::from_value(message)
            .map_err(|error| unexpected(format!("its response is not a message: {error}")))?;
        Ok(StreamableHttpPostResponse::Json(message, given))
    }

    /// Sends a message while its permit allows it, and follows redirects within the origin.
    async fn send(&self, outgoing: Outgoing<'_>) -> Result<Response, Error> {
        let Outgoing { uri, message, session, headers, permit } = outgoing;
        let mut url =
            Url::parse(&self.effective_uri(uri)).map_err(|error| unexpected(error.to_string()))?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request =
                self.http.post(url.clone()).header(ACCEPT, "application/json, text/event-stream");
            for (name, value) in headers {
                request = request.header(name, value);
            }
            if let Some(session) = session {
                request = request.header(SESSION_HEADER, session);
            }
            let sent = pin!(request.json(message).send());
            let response = permit.send(sent).await??;
            let Some(next) = next_hop(&url, &response)? else { return Ok(response) };
            *self.redirect_target() = Some(next.clone());
            url = next;
        }
        Err(unexpected(format!("it redirects more than {MAX_REDIRECTS} times")))
    }

    /// Sends an elicitation answer. Retries if no connection was made, since the answer was then
    /// not sent. Without a retry, `rmcp` would only log the error, and the server would wait for
    /// the answer. Each attempt checks the permit again.
    async fn send_answer(&self, outgoing: Outgoing<'_>) -> Result<Response, Error> {
        for pause in ANSWER_RETRY_DELAYS {
            match self.send(outgoing).await {
                Err(StreamableHttpError::Client(error)) if error.is_connect() => {
                    let server = self.normalizer.sanitizer().server_name();
                    tracing::debug!(server, "sending an elicitation answer again");
                    sleep(pause).await;
                }
                sent => return sent,
            }
        }
        self.send(outgoing).await
    }

    /// Returns the error of a refused request if the server does not know the session; `None` if
    /// the server knows the session. The refusal itself is ambiguous, since a tool may fail with
    /// the same text. The client therefore sends a `tools/list` request in the session, which has
    /// no effect.
    ///
    /// If the server refuses that request in the same way, it has processed neither of the two
    /// requests, and the first request can be sent again in another session. A call that was
    /// refused differently may have been executed: a tool may have ended the session, or another
    /// server behind the same URL may know the session.
    async fn unknown_session_error(
        &self,
        outgoing: Outgoing<'_>,
        request: &ClientRequest,
        refusal: &ErrorResponse,
    ) -> Option<Error> {
        let list = ListToolsRequest::with_param(PaginatedRequestParams::default());
        let list = ClientRequest::ListToolsRequest(list);
        let id = RequestId::Number(NEXT_PROBE_ID.fetch_add(1, Ordering::Relaxed));
        let (list, free) = (ClientJsonRpcMessage::request(list, id), SendPermit::default());
        let question = Outgoing { message: &list, permit: &free, ..outgoing };
        let probe = async {
            let response = self.send(question).await.ok()?;
            if !may_mean_unknown_session(response.status(), response.headers()) {
                return None;
            }
            Some(ErrorResponse::read(response).await)
        };
        let probe_response = timeout(SESSION_PROBE_TIMEOUT, probe).await.ok()??;
        if !matches!(request, ClientRequest::CallToolRequest(_))
            || probe_response.is_same_as(refusal)
        {
            return Some(self.session_expired(outgoing.permit));
        }
        let sanitizer = self.normalizer.sanitizer();
        let words = sanitizer.quote(&String::from_utf8_lossy(&refusal.body));
        tracing::warn!(
            server = sanitizer.server_name(),
            "a call was refused, and its session is lost: {words}"
        );
        // `rmcp` uses this error for a request that may have been executed.
        Some(StreamableHttpError::SessionRecoveryTimeout)
    }

    fn redirect_target(&self) -> MutexGuard<'_, Option<Url>> {
        self.redirect_target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards the state of a lost session. After the returned error, `rmcp` opens another session
    /// and sends the message again. The permit is revoked to prevent that, because only the caller
    /// may repeat a call.
    fn session_expired(&self, permit: &SendPermit) -> Error {
        *self.redirect_target() = None;
        permit.revoke();
        StreamableHttpError::SessionExpired
    }

    /// Returns the URL for requests to `uri` in this session: the target of its last redirect, or
    /// `uri` itself.
    fn effective_uri(&self, uri: &str) -> Arc<str> {
        self.redirect_target().as_ref().map_or(uri, Url::as_str).into()
    }

    /// Converts an error response.
    fn error_response(
        &self,
        outgoing: Outgoing<'_>,
        given: Option<String>,
        refusal: ErrorResponse,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let ErrorResponse { status, headers, body } = refusal;
        let mut document = self.normalizer.parse(&body).unwrap_or_default();
        self.normalizer.normalize(&mut document);
        let error = document.get("error").cloned();
        let error = error.and_then(|error| serde_json::from_value::<ErrorData>(error).ok());
        if let ClientJsonRpcMessage::Request(request) = outgoing.message {
            // A server of an earlier protocol version refuses unknown methods by HTTP status.
            // `rmcp` falls back to a handshake if the refusal is an error response to its probe.
            let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_))
                && outgoing.session.is_none();
            let refusal =
                || ErrorData::new(ErrorCode::INVALID_REQUEST, format!("HTTP {status}"), None);
            let error = error.or_else(|| (is_probe && status.is_client_error()).then(refusal));
            if let Some(error) = error {
                let id = Some(request.id.clone());
                let message = ServerJsonRpcMessage::error(error, id);
                return Ok(StreamableHttpPostResponse::Json(message, given));
            }
        }
        if status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), retry_after(&headers)).into());
        }
        let words = if is_page(&body) { "".into() } else { String::from_utf8_lossy(&body) };
        let words = self.normalizer.sanitizer().quote(&words);
        let hint = match status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                "; check `url`, which must be an endpoint for streamable HTTP (servers of the \
                 older transport, with SSE alone, cannot be used)"
            }
            _ => "",
        };
        let colon = if words.is_empty() { "" } else { ": " };
        Err(unexpected(format!("it responds with status {}{hint}{colon}{words}", status.as_u16())))
    }

    /// Normalizes the messages of an event stream and puts each message into a separate event. `id`
    /// is the request to which the stream responds.
    fn normalized(
        &self,
        events: BoxStream<'static, Result<Sse, SseError>>,
        id: Option<RequestId>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let normalizer = self.normalizer.clone();
        let mend = move |read: Result<Sse, SseError>| {
            let (normalizer, id) = (normalizer.clone(), id.clone());
            async move {
                let events = match read {
                    Ok(event) => {
                        let bytes = event.data.as_ref().map_or(0, String::len);
                        let owner = normalizer.sanitizer().work_owner();
                        let normalize = || events::normalize_event(&normalizer, event, id.as_ref());
                        block_in_place_in_turn(owner, is_long_parse(bytes), normalize).await
                    }
                    Err(error) => vec![Err(error)],
                };
                stream::iter(events)
            }
        };
        events.then(mend).flatten().boxed()
    }
}

impl StreamableHttpClient for NormalizingClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let limit = MAX_MESSAGE_BYTES;
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, limit).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let permit = self.calls.take_permit(&message);
        let outgoing = Outgoing {
            uri: &uri,
            message: &message,
            session: session.as_deref(),
            headers: &headers,
            permit: &permit,
        };
        self.post(outgoing, event_bytes).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let uri = self.effective_uri(&uri);
        StreamableHttpClient::delete_session(&self.http, uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let limit = MAX_MESSAGE_BYTES;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, limit)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        event_bytes: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let http = &self.http;
        let events = http.get_stream_with_max_sse_event_size(
            self.effective_uri(&uri),
            session,
            last_event,
            auth,
            headers,
            event_bytes,
        );
        Ok(self.normalized(events.await?, None))
    }
}

fn unexpected(text: String) -> Error {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}

/// An HTTP error response.
struct ErrorResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl ErrorResponse {
    async fn read(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response, MAX_ERROR_BODY_BYTES).await.unwrap_or_default();
        Self { status, headers, body }
    }

    /// Returns true if two requests were refused in the same way, apart from their request ids.
    fn is_same_as(&self, other: &Self) -> bool {
        self.status == other.status && self.comparable_body() == other.comparable_body()
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

fn retry_after(headers: &HeaderMap) -> Option<String> {
    headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Returns the error for refused credentials, with the server's explanation.
fn unauthorized(refusal: &ErrorResponse) -> Error {
    let challenge = refusal.headers.get(WWW_AUTHENTICATE);
    let words = match challenge {
        _ if !refusal.body.is_empty() && !is_page(&refusal.body) => {
            String::from_utf8_lossy(&refusal.body)
        }
        Some(challenge) => String::from_utf8_lossy(challenge.as_bytes()),
        None => "".into(),
    };
    StreamableHttpError::AuthRequired(AuthRequiredError::new(words.into_owned()))
}

/// Returns true if the body is an HTML page.
fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// Returns the target of a redirect; `None` if the response is not a redirect. A redirect to
/// another origin is an error, since that origin would receive headers with secrets.
fn next_hop(url: &Url, response: &Response) -> Result<Option<Url>, Error> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    if !is_redirect {
        return Ok(None);
    }
    let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
    let target = target.and_then(|target| url.join(target).ok());
    match target {
        Some(target) if target.origin() == url.origin() => Ok(Some(target)),
        Some(target) => {
            let origin = target.origin().ascii_serialization();
            Err(unexpected(format!("it redirects to another origin, {origin}; check `url`")))
        }
        None => Err(unexpected("it redirects without a valid `location`".to_owned())),
    }
}

/// Returns true if a response can mean that the server does not know the session. Status 401 with a
/// challenge has another meaning: the server asks for credentials.
fn may_mean_unknown_session(status: StatusCode, headers: &HeaderMap) -> bool {
    match status {
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => true,
        StatusCode::UNAUTHORIZED => !headers.contains_key(WWW_AUTHENTICATE),
        _ => false,
    }
}

async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
