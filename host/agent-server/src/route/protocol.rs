//! The streaming protocol: commands, the typed events of a thread, and the runs of a thread as one
//! stream.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::body::Body as HttpBody;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{FutureExt as _, stream};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wattle_api::detached;
use wattle_api::response::{Json, join_large, sse_response};
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::v1::HEARTBEAT;
use wattle_project::agent_server::v2::StreamEvent;
use wattle_run::engine::Engine;
use wattle_run::json::bounded::JsonBudget;

use crate::command::execute;
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams, parse_thread_id};
use crate::query::QueryParams;
use crate::state::AgentServer;
use crate::subscriptions::{Subscriptions, ThreadTailItem};
use crate::thread_stream::{self, ThreadStreamModes};
use crate::websocket::{self, ConnectionLimits, ProtocolParts};
use crate::wire::command::{Command, Subscribe};
use crate::wire::schemas::{
    CommandAnswer, CommandDocument, CommandRefused, ErrorDocument, StreamedEvent,
};

/// Event ids that clients send to request all events.
const FROM_START_IDS: &[&str] = &["-", "0", "0-0"];

pub(super) fn routes() -> OpenApiRouter<AgentServer> {
    OpenApiRouter::new()
        .routes(routes!(commands))
        .routes(routes!(thread_stream))
        .routes(routes!(events, open_websocket))
}

/// Executes a command.
#[utoipa::path(post, path = "/threads/{id}/commands",
    operation_id = "agent_command", tag = "agent-protocol",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = CommandDocument,
    responses(
        (status = 200, body = CommandAnswer),
        (status = 400, body = CommandRefused)))]
async fn commands(
    State(parts): State<ProtocolParts>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let thread = thread_id(parts.creator.engine(), &caller, &id).await?;
    let body = wattle_api::body::read(request, parts.config.body_limit_bytes).await?;
    let read = |bytes: &[u8], budget: &JsonBudget| Ok(Command::parse(bytes, budget));
    let command = match body.parse::<_, ApiError>(read).await? {
        Ok(command) => command,
        Err(error) => {
            return Ok((StatusCode::BAD_REQUEST, Json(error.reply(None))).into_response());
        }
    };
    let stopping = parts.creator.stopping().clone();
    let future = async move {
        let context = parts.command_context(&caller, &thread);
        Ok(execute(&context, &command).await)
    };
    let reply = detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], reply).into_response())
}

/// Returns the id of the thread of a stream or a command. The thread need not exist yet.
async fn thread_id(engine: &Engine, caller: &Caller, id: &str) -> Result<ThreadId, ApiError> {
    let thread = parse_thread_id(id)?;
    let own = caller.find_thread(engine, id).await?;
    if own.is_none()
        && let Some(head) = engine.ports().store.thread(&thread).await?
        && !caller.can_access(&head.record)
    {
        return Err(ApiError::missing("thread", id));
    }
    Ok(thread)
}

/// Streams the typed events of a thread from its first event. The stream stays open.
#[utoipa::path(post, path = "/threads/{id}/stream/events",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "lasting" }))),
    operation_id = "agent_stream_events", tag = "agent-protocol",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = Subscribe,
    responses(
        (status = 200, body = StreamedEvent, content_type = "text/event-stream"),
        (status = 400, body = ErrorDocument)))]
async fn events(
    State(parts): State<ProtocolParts>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(wanted): JsonBody<Subscribe>,
) -> Result<Response, ApiError> {
    let subscription = wanted.subscription()?;
    let thread = thread_id(parts.creator.engine(), &caller, &id).await?;
    let mut subscriptions = parts.subscriptions(caller.tenant, &thread);
    subscriptions.subscribe(String::new(), subscription, wanted.since.unwrap_or(0));
    let events = EventStreamBody { subscriptions, pending: VecDeque::new(), is_over: false };
    let body = stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    });
    Ok(sse_response(HttpBody::from_stream(body)))
}

/// The events of subscriptions as server-sent events.
struct EventStreamBody {
    subscriptions: Subscriptions,
    pending: VecDeque<Bytes>,
    is_over: bool,
}

impl EventStreamBody {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.pending.pop_front() {
                return Some(bytes);
            }
            if self.is_over {
                return None;
            }
            match self.subscriptions.next().await {
                ThreadTailItem::Event => {
                    let events = self.subscriptions.next_events().await;
                    self.pending.extend(join_large(events.iter().map(StreamEvent::to_bytes)));
                }
                ThreadTailItem::Replaced => {}
                ThreadTailItem::Heartbeat => return Some(HEARTBEAT.into()),
                ThreadTailItem::Gone | ThreadTailItem::ShuttingDown => return None,
                ThreadTailItem::ReadFailed(_) => {
                    self.is_over = true;
                    let frame =
                        format!("event: error\r\ndata: {}\r\n\r\n", websocket::read_failed());
                    return Some(frame.into());
                }
            }
        }
    }
}

/// Opens a WebSocket for commands and events.
#[utoipa::path(get, path = "/threads/{id}/stream/events",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_open_socket", tag = "agent-protocol",
    params(("id" = String, Path, description = "id of the thread")),
    responses(
        (status = 101),
        (status = 400, body = ErrorDocument)))]
async fn open_websocket(
    State(parts): State<ProtocolParts>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    limits: ConnectionLimits,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let why = rejection.body_text();
        ApiError::bad_request(format!(
            "`GET` opens a WebSocket here; request an event stream with `POST`: {why}"
        ))
    })?;
    let thread = thread_id(parts.creator.engine(), &caller, &id).await;
    Ok(websocket::accept(parts, caller, thread, limits, upgrade))
}

/// Streams all runs of a thread.
#[utoipa::path(get, path = "/threads/{id}/stream",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_stream_runs", tag = "agent-protocol",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("stream_modes" = Option<Vec<String>>, Query, description = "`run_modes` (default), `lifecycle` or `state_update`"),
        ("stream_mode" = Option<Vec<String>>, Query, description = "alias of `stream_modes`, as official clients send it"),
        ("Last-Event-ID" = Option<String>, Header, description = "id of the last event that the client has received")),
    responses((status = 200, body = StreamedEvent, content_type = "text/event-stream")))]
async fn thread_stream(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    // The reference server reads `stream_modes`, but its clients send `stream_mode`.
    let names = [query.list("stream_modes"), query.list("stream_mode")].concat();
    let modes = ThreadStreamModes::parse(&names)?;
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = after.map(|id| {
        let number =
            if FROM_START_IDS.contains(&id.trim()) { Some(0) } else { EventId::number_of(id) };
        number.ok_or_else(|| ApiError::unprocessable(format!("`{id}` is not an event id")))
    });
    thread_stream::response(&engine, &stopping, &record, modes, after.transpose()?).await
}
