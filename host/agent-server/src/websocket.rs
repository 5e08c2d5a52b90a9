//! The streaming protocol over one WebSocket: the client sends commands, and the server sends
//! replies and the events of subscriptions.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use futures::SinkExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use uuid::Uuid;
use wattle_api::ApiConfig;
use wattle_api::guard::caller_rate::CallerRateLimit;
use wattle_api::guard::open_requests::RequestPermit;
use wattle_api::guard::{BodyBytes, BodyLimit, BodyReservation, UnreadBytes};
use wattle_api::traffic::{CutReason, Traffic};
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;
use wattle_run::json::bounded::JsonBudget;
use wattle_run::reads::CurrentReader;

use crate::command::{CommandContext, execute, last_event_number, to_command_error, to_text};
use crate::create_run::RunCreator;
use crate::error::ApiError;
use crate::extractors::Caller;
use crate::subscriptions::{EventDelays, Subscriptions, ThreadTailItem};
use crate::wire::command::{
    Command, CommandError, ErrorCode, Reconnect, Subscribe, Unsubscribe, success_reply,
};

/// Maximum number of subscriptions of one connection. Each event is encoded once for each
/// subscription. A client has one subscription for each part of a page that shows a thread.
const MAX_SUBSCRIPTIONS: usize = 64;

/// Offset of the code of a close frame from the HTTP status.
const CLOSE_CODE_BASE: u16 = 4_000;

/// Maximum size in bytes of the reason of a close frame. A control frame has at most 125 bytes, and
/// the code takes two bytes.
const MAX_REASON_BYTES: usize = 123;

/// Maximum number of pings of one connection in [`PING_PERIOD`]. The server responds to each ping
/// with a pong frame, which stays in memory until the client reads it. Browsers send no pings, and
/// libraries send a ping every few seconds.
const MAX_PINGS: u32 = 20;

/// The period in which pings are counted.
const PING_PERIOD: Duration = Duration::from_secs(10);

/// Maximum number of queued commands of one connection, in addition to the command that is being
/// executed. While the queue is full, the server does not read from the connection. Most clients
/// wait for each reply before the next command.
const COMMAND_QUEUE_LEN: usize = 16;

/// Why a message is not sent to a caller whose unread responses take its share of the memory.
const TOO_MANY_UNREAD_BYTES: &str =
    "the unread responses of this caller exceed `server.limits.response_bytes`";

/// Handles of the guards for an admitted connection. All fields are `None` for a router without
/// guards.
pub(crate) struct ConnectionLimits {
    /// Counts the connection as an open request until it is closed.
    pub(crate) permit: Option<RequestPermit>,
    /// The rate limit against which each command counts.
    pub(crate) rate_limit: Option<CallerRateLimit>,
    /// Maximum size of a message, if the key has a lower limit than the server.
    pub(crate) body_limit: Option<BodyLimit>,
    /// Counts the memory of commands until they have been executed.
    pub(crate) bodies: Option<BodyReservation>,
}

/// The parts of the server's state that the streaming protocol needs.
#[derive(Clone)]
pub(crate) struct ProtocolParts {
    pub(crate) creator: RunCreator,
    pub(crate) event_delays: EventDelays,
    pub(crate) config: Arc<ApiConfig>,
    pub(crate) traffic: Arc<Traffic>,
}

impl<S: Send + Sync> FromRequestParts<S> for ConnectionLimits {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let extensions = &parts.extensions;
        Ok(Self {
            permit: extensions.get().cloned(),
            rate_limit: extensions.get().cloned(),
            body_limit: extensions.get().copied(),
            bodies: extensions.get().cloned(),
        })
    }
}

impl ProtocolParts {
    /// Creates an empty set of subscriptions to a thread. The thread need not exist yet.
    pub(crate) fn subscriptions(&self, tenant: Option<String>, thread: &ThreadId) -> Subscriptions {
        let (engine, stopping) = (self.creator.engine(), self.creator.stopping());
        Subscriptions::new(engine, stopping, &self.event_delays, tenant, thread)
    }

    /// Returns the context of the commands to a thread.
    pub(crate) fn command_context<'a>(
        &'a self,
        caller: &'a Caller,
        thread: &'a ThreadId,
    ) -> CommandContext<'a> {
        let Self { creator, event_delays, .. } = self;
        CommandContext { creator, event_delays, caller, thread }
    }
}

/// Upgrades the connection. Errors about the thread are sent as a close frame, because browsers
/// cannot read the response to a failed upgrade.
pub(crate) fn accept(
    parts: ProtocolParts,
    caller: Caller,
    thread: Result<ThreadId, ApiError>,
    limits: ConnectionLimits,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limit_bytes = parts.config.body_limit_bytes;
    let stall = parts.config.stall_timeout;
    let upgrade = upgrade.max_message_size(limit_bytes).max_frame_size(limit_bytes);
    // The connection is served on another task than its request.
    let reader = CurrentReader::get();
    upgrade.on_upgrade(move |mut socket| async move {
        let end = match thread {
            Ok(thread) => {
                let session =
                    async { Session::new(parts, caller, thread, limits).run(&mut socket).await };
                reader.scope(session).await
            }
            Err(error) => SessionEnd::Close(error_close_frame(&error)),
        };
        if let SessionEnd::Close(frame) = end {
            // The client may have disconnected already.
            let _ = timeout(stall, socket.send(Message::Close(Some(frame)))).await;
        }
    })
}

fn error_close_frame(error: &ApiError) -> CloseFrame {
    close_frame(CLOSE_CODE_BASE + error.status().as_u16(), error.detail())
}

fn close_frame(code: u16, reason: &str) -> CloseFrame {
    let end = reason.floor_char_boundary(MAX_REASON_BYTES);
    CloseFrame { code, reason: reason[..end].into() }
}

struct Session {
    parts: ProtocolParts,
    caller: Caller,
    thread: ThreadId,
    subscriptions: Subscriptions,
    limits: ConnectionLimits,
    /// The caller in whose turn (`block_in_place_in_turn`) a long command is parsed.
    owner: CallerId,
    /// Queue of commands for the worker.
    commands: mpsc::Sender<QueuedCommand>,
    /// Replies of the worker.
    replies: mpsc::Receiver<Reply>,
    pings: Pings,
}

/// A command that waits until the worker has executed those before it.
struct QueuedCommand {
    command: Command,
    /// The memory of the command; `None` for a router without guards.
    bytes: Option<BodyBytes>,
}

/// A reply that waits to be sent.
struct Reply {
    text: String,
    /// The bytes of the text; `None` for a router without guards, and for an error.
    unread: Option<UnreadBytes>,
}

/// The number of pings in a period.
struct Pings {
    period_start: Instant,
    count: u32,
}

impl Pings {
    /// Counts a ping. Returns `false` if the maximum is exceeded.
    fn allow(&mut self) -> bool {
        if self.period_start.elapsed() >= PING_PERIOD {
            *self = Self::default();
        }
        self.count += 1;
        self.count <= MAX_PINGS
    }
}

impl Default for Pings {
    fn default() -> Self {
        Self { period_start: Instant::now(), count: 0 }
    }
}

/// The next input of a session.
enum SessionEvent {
    Client(Option<Result<Message, axum::Error>>),
    Thread(ThreadTailItem),
    /// The reply to a command; `None` if the worker has stopped.
    Reply(Option<Reply>),
    Revoked,
}

/// The reason why a session ends.
enum SessionEnd {
    /// The client has disconnected.
    Disconnected,
    /// The server closes the connection, with the reason in a close frame.
    Close(CloseFrame),
}

impl Session {
    fn new(
        parts: ProtocolParts,
        caller: Caller,
        thread: ThreadId,
        limits: ConnectionLimits,
    ) -> Self {
        let subscriptions = parts.subscriptions(caller.tenant.clone(), &thread);
        let (commands, queue) = mpsc::channel(COMMAND_QUEUE_LEN);
        // At most one reply is queued, so that the worker does not execute commands faster than the
        // client reads replies.
        let (reply_sender, replies) = mpsc::channel(1);
        let worker = CommandWorker {
            parts: parts.clone(),
            caller: caller.clone(),
            thread: thread.clone(),
            permit: limits.permit.clone(),
        };
        tokio::spawn(CurrentReader::get().scope(worker.run(queue, reply_sender)));
        let owner = RequestPermit::caller_of(limits.permit.as_ref());
        let pings = Pings::default();
        Self { parts, caller, thread, subscriptions, limits, owner, commands, replies, pings }
    }

    /// Runs until the client disconnects, the server closes the connection, or the key is revoked.
    async fn run(&mut self, socket: &mut WebSocket) -> SessionEnd {
        let permit = self.limits.permit.take();
        let revoked = async {
            match &permit {
                Some(permit) => permit.revoked().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(revoked);
        loop {
            // If the queue is full, the worker is executing a command. The reply to this command
            // ends the wait.
            let has_room = self.commands.capacity() > 0;
            let event = tokio::select! {
                message = socket.recv(), if has_room => SessionEvent::Client(message),
                item = self.subscriptions.next() => SessionEvent::Thread(item),
                reply = self.replies.recv() => SessionEvent::Reply(reply),
                () = &mut revoked => SessionEvent::Revoked,
            };
            let result = match event {
                SessionEvent::Client(message) => self.handle_message(socket, message).await,
                SessionEvent::Thread(item) => self.handle_thread_item(socket, item).await,
                SessionEvent::Reply(Some(Reply { text, unread })) => {
                    // The connection counts the bytes from now on. If they were released first,
                    // another connection could take their place, and the reply would be lost.
                    if let (Some(response), Some(unread)) = (&self.caller.response, unread) {
                        response.keep(unread);
                    }
                    self.send_all(socket, vec![text]).await
                }
                SessionEvent::Reply(None) => {
                    Err(SessionEnd::Close(close_frame(close_code::ERROR, "a command failed")))
                }
                SessionEvent::Revoked => {
                    let code = CLOSE_CODE_BASE + StatusCode::UNAUTHORIZED.as_u16();
                    Err(SessionEnd::Close(close_frame(code, "the key was revoked")))
                }
            };
            if let Err(end) = result {
                return end;
            }
        }
    }

    async fn handle_message(
        &mut self,
        socket: &mut WebSocket,
        message: Option<Result<Message, axum::Error>>,
    ) -> Result<(), SessionEnd> {
        let text = match message {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) if self.pings.allow() => return Ok(()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                return Err(SessionEnd::Close(close_frame(close_code::POLICY, "too many pings")));
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(SessionEnd::Disconnected),
        };
        // The configured limit of the server applies while a message is read. A lower limit of the
        // key is checked afterwards, because a connection that is aborted within a message could
        // not send the reason.
        if let Some(BodyLimit(bytes)) = self.limits.body_limit
            && text.len() > bytes
        {
            let why = format!("the message is larger than {bytes} bytes, the limit of the API key");
            return Err(SessionEnd::Close(close_frame(close_code::SIZE, &why)));
        }
        match self.handle_command(&text).await {
            Some(reply) => self.send_all(socket, vec![to_text(reply)]).await,
            None => Ok(()),
        }
    }

    async fn handle_thread_item(
        &mut self,
        socket: &mut WebSocket,
        item: ThreadTailItem,
    ) -> Result<(), SessionEnd> {
        match item {
            ThreadTailItem::Event => {
                let events = self.subscriptions.next_events().await;
                let texts = events.into_iter().map(|event| to_text(event.data)).collect();
                self.send_all(socket, texts).await
            }
            ThreadTailItem::Replaced => Ok(()),
            // A ping keeps proxies from closing the idle connection.
            ThreadTailItem::Heartbeat => {
                self.send_with_timeout(socket.send(Message::Ping(Bytes::new()))).await
            }
            ThreadTailItem::Gone => {
                let error = ApiError::missing("thread", self.thread.as_str());
                Err(SessionEnd::Close(error_close_frame(&error)))
            }
            ThreadTailItem::ShuttingDown => {
                Err(SessionEnd::Close(close_frame(close_code::AWAY, "the host is shutting down")))
            }
            ThreadTailItem::ReadFailed(_) => {
                self.send_all(socket, vec![read_failed().to_string()]).await?;
                let code = CLOSE_CODE_BASE + StatusCode::INTERNAL_SERVER_ERROR.as_u16();
                Err(SessionEnd::Close(close_frame(code, "the thread cannot be read")))
            }
        }
    }

    /// Executes a command that the session handles itself, and returns its reply. Returns `None`
    /// for a command that the worker executes.
    async fn handle_command(&mut self, text: &[u8]) -> Option<Value> {
        // An invalid command also counts against the rate limit, because the server has read it.
        let permitted = self.limits.rate_limit.as_ref().map_or(Ok(()), CallerRateLimit::check);
        let is_long = is_long_parse(text.len());
        let read = block_in_place_in_turn(self.owner, is_long, || {
            let budget = JsonBudget::default();
            Command::parse(text, &budget).map(|command| (command, budget.weight()))
        });
        let (command, weight) = match read.await {
            Ok(read) => read,
            Err(error) => return Some(error.reply(None)),
        };
        if let Err(wait) = permitted {
            return Some(rate_limited(wait).reply(Some(command.id)));
        }
        let subscribed = match command.method.as_str() {
            "subscription.subscribe" => self.subscribe(&command),
            "subscription.unsubscribe" => self.unsubscribe(&command),
            "subscription.reconnect" => self.reconnect(&command),
            _ => {
                let id = command.id;
                let bodies = self.limits.bodies.as_ref();
                let bytes = bodies.map(|bodies| bodies.hold(weight as usize).ok_or(()));
                let Ok(bytes) = bytes.transpose() else {
                    return Some(too_many_command_bytes().reply(Some(id)));
                };
                // The send fails only if the worker has stopped, because the queue had room when
                // the message was received.
                let sent = self.commands.try_send(QueuedCommand { command, bytes });
                return sent.err().map(|_| queue_full().reply(Some(id)));
            }
        };
        let reply = match subscribed {
            Ok(result) => last_event_number(&self.command_context())
                .await
                .map(|number| success_reply(command.id, &result, number)),
            Err(error) => Err(error),
        };
        Some(reply.unwrap_or_else(|error| error.reply(Some(command.id))))
    }

    /// Sends messages and flushes once. The write buffer of a connection keeps the size of its
    /// largest messages, so their bytes count as unread until the connection is closed.
    async fn send_all(
        &self,
        socket: &mut WebSocket,
        messages: Vec<String>,
    ) -> Result<(), SessionEnd> {
        let bytes: usize = messages.iter().map(String::len).sum();
        if self.caller.response.as_ref().is_some_and(|response| !response.try_grow_to(bytes)) {
            tracing::warn!(
                thread = %self.thread,
                bytes,
                "a WebSocket is closed, because its caller has as many bytes of unread responses \
                 as `server.limits.response_bytes` allows"
            );
            let code = CLOSE_CODE_BASE + StatusCode::SERVICE_UNAVAILABLE.as_u16();
            return Err(SessionEnd::Close(close_frame(code, TOO_MANY_UNREAD_BYTES)));
        }
        self.send_with_timeout(async {
            for message in messages {
                socket.feed(Message::Text(message.into())).await?;
            }
            socket.flush().await
        })
        .await
    }

    /// Sends with a timeout. Ends the session of a client that has disconnected or does not read.
    /// Until the send completes, the messages stay in memory, and the session handles neither
    /// commands nor the revocation of the key.
    async fn send_with_timeout(
        &self,
        sending: impl Future<Output = Result<(), axum::Error>>,
    ) -> Result<(), SessionEnd> {
        match timeout(self.parts.config.stall_timeout, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SessionEnd::Disconnected),
            Err(_elapsed) => {
                self.parts.traffic.count_cut(CutReason::WriteTimeout);
                tracing::warn!(
                    thread = %self.thread,
                    "a client of a WebSocket did not read within `server.connections.stall_timeout` \
                     and is disconnected"
                );
                Err(SessionEnd::Disconnected)
            }
        }
    }

    fn command_context(&self) -> CommandContext<'_> {
        self.parts.command_context(&self.caller, &self.thread)
    }

    fn subscribe(&mut self, command: &Command) -> Result<Value, CommandError> {
        let params: Subscribe = command.params()?;
        let subscription =
            params.subscription().map_err(|error| to_command_error(&error.into()))?;
        if self.subscriptions.ids().len() >= MAX_SUBSCRIPTIONS {
            let why =
                format!("a connection has at most {MAX_SUBSCRIPTIONS} subscriptions; end some");
            return Err(CommandError::new(ErrorCode::InvalidArgument, why));
        }
        let id = Uuid::now_v7().to_string();
        self.subscriptions.subscribe(id.clone(), subscription, params.since.unwrap_or(0));
        Ok(json!({ "subscription_id": id }))
    }

    fn unsubscribe(&mut self, command: &Command) -> Result<Value, CommandError> {
        let Unsubscribe { subscription_id: id } = command.params()?;
        if !self.subscriptions.unsubscribe(&id) {
            let why = format!("there is no subscription `{id}` on this connection");
            return Err(CommandError::new(ErrorCode::NoSuchSubscription, why));
        }
        Ok(json!({}))
    }

    /// Restores subscriptions of this connection: the server again sends their events after the
    /// event that the client names. The subscriptions of another connection have ended with that
    /// connection and cannot be restored.
    fn reconnect(&mut self, command: &Command) -> Result<Value, CommandError> {
        let params: Reconnect = command.params()?;
        let since = params.last_event_id.as_deref().map(|id| {
            EventId::number_of(id).ok_or_else(|| {
                let why = format!("`{id}` is not an event id");
                CommandError::new(ErrorCode::InvalidArgument, why)
            })
        });
        let since = since.transpose()?.unwrap_or(0);
        let wanted = params.subscriptions.unwrap_or_else(|| self.subscriptions.ids());
        let mut is_restored = !wanted.is_empty();
        for id in &wanted {
            is_restored &= self.subscriptions.replay(id, since);
        }
        Ok(json!({ "restored": is_restored }))
    }
}

/// Executes the commands of a connection.
struct CommandWorker {
    parts: ProtocolParts,
    caller: Caller,
    thread: ThreadId,
    /// Counts the connection as an open request until the last command has completed, even if the
    /// connection is closed earlier.
    permit: Option<RequestPermit>,
}

impl CommandWorker {
    /// Executes commands one after another. Executes queued commands even if the client has
    /// disconnected, but none after the revocation of the key.
    async fn run(self, mut commands: mpsc::Receiver<QueuedCommand>, replies: mpsc::Sender<Reply>) {
        while let Some(QueuedCommand { command, bytes }) = commands.recv().await {
            if let Some(permit) = &self.permit
                && permit.is_revoked().await
            {
                return;
            }
            let context = self.parts.command_context(&self.caller, &self.thread);
            let reply = execute(&context, &command).await;
            let id = command.id;
            drop((command, bytes));
            // The receiver is dropped if the client has disconnected.
            let _ = replies.send(self.count_reply(id, reply)).await;
        }
    }

    /// Counts the bytes of a reply until the session sends it. Replaces a reply that does not fit
    /// by an error.
    fn count_reply(&self, id: u64, text: String) -> Reply {
        let Some(response) = &self.caller.response else { return Reply { text, unread: None } };
        let unread = response.hold(text.len());
        if unread.is_some() {
            return Reply { text, unread };
        }
        let why = format!(
            "the command was carried out, but its reply has {} bytes: {TOO_MANY_UNREAD_BYTES}; \
             request less at once, or close other connections",
            text.len()
        );
        let error = CommandError::new(ErrorCode::UnknownError, why);
        Reply { text: error.reply(Some(id)).to_string(), unread: None }
    }
}

fn rate_limited(wait: Duration) -> CommandError {
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let why = format!("rate limit exceeded; retry after {seconds} s");
    CommandError::new(ErrorCode::UnknownError, why)
}

fn too_many_command_bytes() -> CommandError {
    let why = "the request bodies and commands of this caller take its share of the memory; wait \
               for replies, or send less at once";
    CommandError::new(ErrorCode::UnknownError, why)
}

fn queue_full() -> CommandError {
    let why = format!(
        "this connection already has {COMMAND_QUEUE_LEN} pending commands; wait for their replies"
    );
    CommandError::new(ErrorCode::UnknownError, why)
}

/// Returns the error that a stream sends before it ends, if the thread cannot be read.
pub(crate) fn read_failed() -> Value {
    CommandError::new(ErrorCode::UnknownError, "the thread cannot be read; try again").reply(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pings_are_counted_in_periods() {
        let mut pings = Pings::default();
        assert!((0..MAX_PINGS).all(|_| pings.allow()) && !pings.allow());
        tokio::time::sleep(PING_PERIOD).await;
        assert!(pings.allow());
    }
}
