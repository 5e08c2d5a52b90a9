//! The server: reads and logs a request, applies gates and faults, and routes it to a service.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::stream;
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    anthropic, apify,
    call::Call,
    control,
    fault_rule::FaultRule,
    faults::{Fault, Pattern},
    feishu,
    gate::{Gate, StreamGate, WAIT_LIMIT},
    gemini, google_error,
    journal::{Delivery, Entry},
    massive, mcp, nominatim, openai, otlp, probe,
    reply::Reply,
    shared::Shared,
    shown, unsplash,
};
use crate::error::Error;

/// Timeout for open connections when the server stops.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Maximum size of a response that the fault `cut` can halve. Responses of models are far smaller.
const MAX_CUT_BYTES: usize = 64 * 1024 * 1024;

/// Delay before the connection closes, in which the first half of a cut response is sent.
const CUT_PAUSE: Duration = Duration::from_millis(20);

/// Configuration of a server.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Port on 127.0.0.1; 0, the default, selects a free one.
    pub port: u16,
    /// Texts of images that contain none, by the BLAKE3 digest of the image in hexadecimal.
    pub pictures: BTreeMap<String, String>,
    /// Fault rules that apply from the start.
    pub faults: Vec<FaultRule>,
}

/// Starts stand-in servers.
#[derive(Debug)]
pub struct Server;

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct Handle {
    /// The address on which the server listens.
    pub addr: SocketAddr,
    /// `http://127.0.0.1:<port>`, without a trailing slash.
    pub base_url: String,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens on 127.0.0.1 and serves until the handle is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if the port is taken.
    pub async fn start(config: Config) -> Result<Handle, Error> {
        let wanted = SocketAddr::from(([127, 0, 0, 1], config.port));
        let listen_error = |source| Error::Listen { address: wanted.to_string(), source };
        let listener = TcpListener::bind(wanted).await.map_err(listen_error)?;
        let addr = listener.local_addr().map_err(listen_error)?;
        let shared = Arc::new(Shared::new(config.pictures));
        for rule in config.faults {
            shared.orders.add(rule);
        }
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async {
            // Dropping the sender stops the server, too.
            let _ = stopped.await;
        });
        let task = tokio::spawn(async move {
            // `axum::serve` handles errors of its accept loop itself.
            let _ = serving.await;
        });
        let base_url = format!("http://{addr}");
        Ok(Handle { addr, base_url, shared, stop: Some(stop), task })
    }
}

impl Handle {
    /// Returns all requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Entry> {
        self.shared.journal.list()
    }

    /// Clears the request log.
    pub fn clear_requests(&self) {
        self.shared.journal.clear();
    }

    /// Waits for a request that matches, including earlier ones.
    ///
    /// The entry may still be pending. Check its `outcome` to wait for the response.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after half a minute, so that a broken test ends.
    pub async fn wait_for_request(&self, wanted: impl Fn(&Entry) -> bool) -> Result<Entry, Error> {
        let found = timeout(WAIT_LIMIT, self.shared.journal.wait_for(wanted)).await;
        found.ok().flatten().ok_or_else(|| Error::Timeout {
            what: "a request".to_owned(),
            limit: WAIT_LIMIT,
            hint: format!("{} other requests arrived", self.requests().len()),
        })
    }

    /// Adds a fault rule. Rules apply in the order in which they were added.
    pub fn fault(&self, rule: FaultRule) {
        self.shared.orders.add(rule);
    }

    /// Removes all fault rules. Requests that already hang are not released.
    pub fn clear_faults(&self) {
        self.shared.orders.clear();
    }

    /// Releases all hanging requests, which then get their regular responses.
    pub fn release(&self) {
        self.shared.release();
    }

    /// Holds matching requests from now on, until the returned value is opened or dropped.
    pub fn gate(&self, on: Pattern) -> Gate {
        self.shared.gates.build(on)
    }

    /// Holds matching streamed responses after their head and sends their events as they are
    /// released, until the returned value is opened or dropped.
    pub fn stream_gate(&self, on: Pattern) -> StreamGate {
        self.shared.gates.build_for_streams(on)
    }

    /// Ends all sessions of the MCP servers, as a restart would.
    pub fn forget_mcp_sessions(&self) {
        self.shared.mcp_sessions.forget();
    }

    /// Returns the records in Feishu's table, oldest first.
    pub fn feishu_records(&self) -> Vec<serde_json::Value> {
        self.shared.feishu.records()
    }

    /// Revokes all tokens that Feishu issued so far.
    pub fn revoke_feishu_tokens(&self) {
        self.shared.feishu.revoke_tokens();
    }

    /// Stops the server and waits for the end of its connections.
    pub async fn shutdown(mut self) {
        self.shared.release();
        self.stop.take();
        if timeout(STOP_LIMIT, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.release();
        self.stop.take();
        self.task.abort();
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let call = match Call::read(request).await {
        Ok(call) => otlp::readable(call),
        Err(failure) => {
            return (StatusCode::PAYLOAD_TOO_LARGE, failure.to_string()).into_response();
        }
    };
    if call.path.starts_with("/__") {
        return control::answer(&shared, &call);
    }
    let open = shared.journal.open(&call);
    shared.gates.pass(&call).await;
    // The receiver exists before the fault is logged, so that a test can release the request as
    // soon as it sees the log entry.
    let release = shared.releases();
    let fault = shared.orders.take(&call);
    open.note_fault(fault.as_ref().and_then(kind_of));
    let reply = perform(&shared, &call, fault, release).await;
    let delivery = open.answered(reply.response.status().as_u16(), reply.rule);
    delivered(reply.response, delivery)
}

/// Tracks whether the client receives a streamed response completely. Other responses are sent at
/// once.
fn delivered(response: Response, mut delivery: Delivery) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "text/event-stream") {
        delivery.end();
        return response;
    }
    response.map(|body| {
        let frames = stream::unfold((body.into_data_stream(), delivery), |state| async move {
            let (mut frames, mut delivery) = state;
            let frame = stream::StreamExt::next(&mut frames).await;
            // The client did not abort a stream that a fault broke.
            if !matches!(frame, Some(Ok(_))) {
                delivery.end();
            }
            Some((frame?, (frames, delivery)))
        });
        Body::from_stream(frames)
    })
}

fn kind_of(fault: &Fault) -> Option<String> {
    let document = serde_json::to_value(fault).ok()?;
    document.get("kind")?.as_str().map(str::to_owned)
}

/// Responds to a request under a fault. Services apply the faults that change only the content.
async fn perform(
    shared: &Shared,
    call: &Call,
    fault: Option<Fault>,
    mut release: watch::Receiver<u64>,
) -> Reply {
    match &fault {
        Some(Fault::Status { status, retry_after, body }) => {
            let response = refusal(call, *status, retry_after.as_deref(), body.as_ref());
            return Reply { rule: "fault", response };
        }
        Some(Fault::Garbage) => {
            let headers = [(header::CONTENT_TYPE, "application/json")];
            let response = (headers, "<html>\u{0}{\"choices\": [").into_response();
            return Reply { rule: "fault", response };
        }
        Some(Fault::Slow { ms }) => tokio::time::sleep(Duration::from_millis(*ms)).await,
        Some(Fault::Hang) => {
            // An error means that the server has stopped.
            let _ = release.changed().await;
        }
        _ => {}
    }
    let reply = dispatch(shared, call, fault.as_ref()).await;
    if fault == Some(Fault::HangAfter) {
        // An error means that the server has stopped.
        let _ = release.changed().await;
    }
    if fault == Some(Fault::Cut) {
        return Reply { rule: reply.rule, response: cut(reply.response).await };
    }
    reply
}

/// Routes a request to the service of its path.
async fn dispatch(shared: &Shared, call: &Call, fault: Option<&Fault>) -> Reply {
    let segments: Vec<&str> = call.path.trim_matches('/').split('/').collect();
    match (call.method.as_str(), segments.as_slice()) {
        (
            "POST",
            ["v1", "chat", "completions"]
            | ["openai", "v1", "chat", "completions"]
            | ["chat", "completions"],
        ) => openai::answer(shared, call, fault),
        ("POST", ["v1beta", "models", action]) => gemini::answer(shared, call, action, fault),
        ("POST", ["v1", "messages"] | ["anthropic", "v1", "messages"]) => {
            anthropic::answer(shared, call, fault)
        }
        ("GET", ["v3", "reference", "tickers"]) => massive::answer(call),
        ("POST", ["v2", "acts" | "actors", actor, action]) => apify::answer(call, actor, action),
        ("GET", ["search"]) => nominatim::answer(call),
        ("GET", ["search", "photos"] | ["photos", _, "download"]) => {
            unsplash::answer(call, segments.as_slice())
        }
        ("GET", ["vi", id, _size]) => Reply { rule: "picture", response: shown::answer(id) },
        ("GET", [id]) if id.starts_with("photo-") => {
            Reply { rule: "picture", response: shown::answer(id) }
        }
        ("POST", ["api", "public", "otel", "v1", "traces"]) => otlp::answer(call),
        (_, ["open-apis", rest @ ..]) => feishu::answer(&shared.feishu, call, rest),
        (_, ["mcp", rest @ ..]) => mcp::answer(shared, call, rest),
        (_, segments) => probe::answer(shared, call, segments).await,
    }
}

/// Returns an error response: with the body of the fault or, if it has none, in the format of the
/// service at the path.
fn refusal(
    call: &Call,
    status: u16,
    retry_after: Option<&str>,
    body: Option<&serde_json::Value>,
) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = "ordered by the test";
    let is_unsplash = call.path.starts_with("/search/") || call.path.starts_with("/photos/");
    if is_unsplash && body.is_none() {
        return with_retry_after(unsplash::error_response(status, message), retry_after);
    }
    let body = match body {
        Some(body) => body.clone(),
        None if call.path.starts_with("/v2/") => apify::error_body(status, message),
        None if call.path == "/search" => nominatim::error_body(status, message),
        None if call.path.starts_with("/v1beta/") => google_error::error_body(status, message),
        None if call.path.ends_with("/messages") => anthropic::error_body(status, message),
        None if call.path.starts_with("/open-apis/") => feishu::error_body(message),
        None if call.path.starts_with("/v3/") => massive::error_body(message),
        None => openai::error_body(status, message),
    };
    with_retry_after((status, axum::Json(body)).into_response(), retry_after)
}

fn with_retry_after(mut response: Response, retry_after: Option<&str>) -> Response {
    if let Some(Ok(value)) = retry_after.map(HeaderValue::from_str) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

/// Sends the head and the first half of a response, then closes the connection.
async fn cut(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, MAX_CUT_BYTES).await.unwrap_or_default();
    // The full `content-length` shows the client that the response is incomplete.
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len().max(1)));
    let half = body.slice(..body.len() / 2);
    let broken = async {
        tokio::time::sleep(CUT_PAUSE).await;
        Err(std::io::Error::other("cut by the test"))
    };
    let halves = stream::StreamExt::chain(
        stream::iter([Ok::<Bytes, std::io::Error>(half)]),
        stream::once(broken),
    );
    Response::from_parts(parts, Body::from_stream(halves))
}
