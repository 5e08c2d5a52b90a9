//! The HTTP client of the transport, which normalizes the JSON of servers.
//!
//! The client of `rmcp` parses a body as a message of the protocol or fails. This client normalizes
//! the message first ([`Normalizer`]) and accepts more variants:
//!
//! * A success in response to a notification counts as `accepted`, independently of its body.
//! * A server may report an unknown session in many ways, see `unknown_session_error`.
//! * Redirects within the origin are followed, such as from `/mcp` to `/mcp/`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ListToolsRequest,
    PaginatedRequestParams, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::Sse;
use tokio::time::{sleep, timeout};
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::json::bounded::JsonError;
use wattle_run::service_memory::{ResponseMemory, ServiceMemory};

use crate::calls::Calls;
use crate::connect::MAX_MESSAGE_BYTES;
use crate::connect::http::error::{BodyError, Error, replaced_response};
use crate::connect::http::full_response::{FullResponse, is_event_stream, is_page, retry_after};
use crate::connect::http::{events, redirect};
use crate::failure::{exceeding_response, response_without_memory};
use crate::normalize::{self, Normalizer};
use crate::pace::SharedPace;
use crate::permit::SendPermit;

/// Maximum redirects that the client follows for one request.
const MAX_REDIRECTS: usize = 3;

/// Media type of event streams.
const EVENT_STREAM: &str = "text/event-stream";

/// Name of the header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";

/// Name of the header with the id of the last event that was received.
const LAST_EVENT_HEADER: &str = "last-event-id";

/// Ids of the requests that probe a session. These ids are numbers, like the ids of `rmcp`, since a
/// server may accept only numbers. They start far above the ids of `rmcp`, so that no id occurs
/// twice in a session.
static NEXT_PROBE_ID: AtomicI64 = AtomicI64::new(1_000_000_000);

/// Timeout of a request that probes a session. A server refuses an unknown session immediately.
const SESSION_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Delays before an elicitation answer is sent again. `rmcp` allows five seconds in total.
const ANSWER_RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

/// The HTTP client of a session, see the module documentation.
#[derive(Clone)]
pub(in crate::connect) struct NormalizingClient {
    http: reqwest::Client,
    normalizer: Normalizer,
    /// Calls in progress on the session.
    calls: Calls,
    /// The memory of all responses that arrive.
    memory: ServiceMemory,
    /// Target of the last redirect, used for the rest of the session.
    redirect_target: Arc<Mutex<Option<Url>>>,
    /// The rate of all streams that the host has opened with GET requests, with their comments.
    pushed_pace: SharedPace,
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
        memory: ServiceMemory,
    ) -> Self {
        let (redirect_target, pushed_pace) = (Arc::default(), SharedPace::new());
        Self { http, normalizer, calls, memory, redirect_target, pushed_pace }
    }

    /// Returns the memory of one response.
    fn response_memory(&self) -> ResponseMemory {
        self.memory.response(self.normalizer.sanitizer().work_owner())
    }

    /// Sends a message and reads the response. An error after a redirect names its target.
    async fn post(
        &self,
        outgoing: Outgoing<'_>,
        event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let error = match self.exchange(outgoing, event_bytes).await {
            Err(StreamableHttpError::UnexpectedServerResponse(text)) => text,
            other => return other,
        };
        Err(match self.redirect_target().as_ref() {
            Some(target) => {
                unexpected(format!("it redirects to `{}`; {error}", redirect::masked_path(target)))
            }
            None => StreamableHttpError::UnexpectedServerResponse(error),
        })
    }

    async fn exchange(
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
            let refusal = FullResponse::read_error(response).await;
            if let Some(error) = self.unknown_session_error(outgoing, &refusal).await {
                return Err(error);
            }
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return Err(refusal.unauthorized());
            }
            return self.error_response(outgoing, given, refusal);
        }
        let ClientJsonRpcMessage::Request(request) = outgoing.message else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if is_event_stream(response.headers()) {
            let (memory, pace) = (self.response_memory(), SharedPace::new());
            let events = events::read(response, event_bytes, memory, pace);
            let events = self.normalized(events, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Sse(events, given));
        }
        let mut memory = self.response_memory();
        let response = match FullResponse::read(response, MAX_MESSAGE_BYTES, &mut memory).await {
            Ok(response) => response,
            Err(BodyError::Memory(full)) => {
                let message = replaced_response(response_without_memory(full), &request.id);
                return Ok(StreamableHttpPostResponse::Json(message, given));
            }
            Err(BodyError::Transport(error)) => return Err(error),
        };
        if let Some(error) = self.unknown_session_error(outgoing, &response).await {
            return Err(error);
        }
        let body = response.body;
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
                let message = replaced_response(exceeding_response(exceeded), id);
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
            let next = redirect::next_hop(&url, response.status(), response.headers());
            let Some(next) = next.map_err(unexpected)? else { return Ok(response) };
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
    /// the server knows the session, or if the response is no such refusal. The refusal itself is
    /// ambiguous, since a tool may fail with the same text. The client therefore sends a
    /// `tools/list` request in the session, which has no effect.
    ///
    /// If the server refuses that request in the same way, it has processed neither of the two
    /// requests, and the first request can be sent again in another session. A call that was
    /// refused differently, by a failure of the server, or by an error with the id of the call and
    /// a status of success, may have been executed: a tool may have ended the session, or another
    /// server behind the same URL may know the session.
    async fn unknown_session_error(
        &self,
        outgoing: Outgoing<'_>,
        refusal: &FullResponse,
    ) -> Option<Error> {
        let ClientJsonRpcMessage::Request(request) = outgoing.message else { return None };
        if outgoing.session.is_none() || !refusal.may_mean_unknown_session() {
            return None;
        }
        let list = ListToolsRequest::with_param(PaginatedRequestParams::default());
        let list = ClientRequest::ListToolsRequest(list);
        let id = RequestId::Number(NEXT_PROBE_ID.fetch_add(1, Ordering::Relaxed));
        let (list, free) = (ClientJsonRpcMessage::request(list, id), SendPermit::default());
        let question = Outgoing { message: &list, permit: &free, ..outgoing };
        let probe = async {
            let response = FullResponse::read_error(self.send(question).await.ok()?).await;
            response.may_mean_unknown_session().then_some(response)
        };
        let probe_response = timeout(SESSION_PROBE_TIMEOUT, probe).await.ok()??;
        let is_unprocessed = probe_response.is_same_as(refusal) && !refusal.may_follow_an_effect();
        if !matches!(request.request, ClientRequest::CallToolRequest(_)) || is_unprocessed {
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
        refusal: FullResponse,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let FullResponse { status, headers, body } = refusal;
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
                let message = replaced_response(error, &request.id);
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
                    Err(error) => vec![events::replace_error(error, id.as_ref())],
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
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        event_bytes: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let mut request = self.http.get(&*self.effective_uri(&uri)).header(ACCEPT, EVENT_STREAM);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(SESSION_HEADER, &*session);
        }
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT_HEADER, last_event);
        }
        let response = event_stream(request.send().await?).await?;
        let (memory, pace) = (self.response_memory(), self.pushed_pace.clone());
        let events = events::read(response, event_bytes, memory, pace);
        Ok(self.normalized(events, None))
    }
}

/// Returns the response to a GET request if it is an event stream, or else its error.
async fn event_stream(response: Response) -> Result<Response, Error> {
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => return Err(StreamableHttpError::ServerDoesNotSupportSse),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            if response.headers().contains_key(WWW_AUTHENTICATE) =>
        {
            return Err(FullResponse::read_error(response).await.unauthorized());
        }
        _ => {}
    }
    let response = response.error_for_status()?;
    if is_event_stream(response.headers()) {
        return Ok(response);
    }
    let media_type = response.headers().get(CONTENT_TYPE);
    let media_type = media_type.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    Err(StreamableHttpError::UnexpectedContentType(media_type))
}

fn unexpected(text: String) -> Error {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}
