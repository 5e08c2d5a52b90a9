//! The streaming protocol over one WebSocket: the client sends commands, and the server sends
//! replies and the events of subscriptions.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::SinkExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use uuid::Uuid;
use wattle_api::guard::BodyLimit;
use wattle_api::guard::caller_rate::CallerRateLimit;
use wattle_api::guard::open_requests::RequestPermit;
use wattle_api::traffic::CutReason;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;

use crate::command::{Target, end, perform, refused};
use crate::error::ApiError;
use crate::extractors::Caller;
use crate::feed::{Feed, Ready};
use crate::state::AgentServer;
use crate::wire::command::{Code, Command, Reconnect, Refusal, Subscribe, Unsubscribe, done};

/// Maximum number of subscriptions of one connection. Each event is encoded once for each
/// subscription. A client has one subscription for each part of a page that shows a thread.
const SUBSCRIPTIONS: usize = 64;

/// Offset of the code of a close frame from the HTTP status.
const CLOSE: u16 = 4_000;

/// Maximum size in bytes of the reason of a close frame. A control frame has at most 125 bytes, and
/// the code takes two of them.
const REASON_BYTES: usize = 123;

/// Maximum number of pings of one connection in [`PING_PERIOD`]. The server responds to each ping
/// with a pong frame, which stays in memory until the client reads it. Browsers send no pings, and
/// libraries send one every few seconds.
const PINGS: u32 = 20;

/// The period in which pings are counted.
const PING_PERIOD: Duration = Duration::from_secs(10);

/// Maximum number of queued commands of one connection, in addition to the one that is being
/// executed. While the queue is full, the server does not read from the connection. Most clients
/// wait for each reply before the next command.
const WAITING: usize = 16;

/// Handles of the guards for an admitted connection. Empty for a router without guards.
#[derive(Default)]
pub(crate) struct Pass {
    /// Counts the connection as an open request until it is closed.
    pub(crate) permit: Option<RequestPermit>,
    /// The rate limit against which each command counts.
    pub(crate) rate_limit: Option<CallerRateLimit>,
    /// Maximum size of a message, if the key has a lower limit than the server.
    pub(crate) limit: Option<BodyLimit>,
}

/// Upgrades the connection. Errors about the thread are sent as a close frame, because browsers
/// cannot read the response to a failed upgrade.
pub(crate) fn open(
    server: AgentServer,
    caller: Caller,
    thread: Result<ThreadId, ApiError>,
    pass: Pass,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limit_bytes = server.api().config.body_limit_bytes;
    let stall = server.api().config.stall_timeout;
    let upgrade = upgrade.max_message_size(limit_bytes).max_frame_size(limit_bytes);
    upgrade.on_upgrade(move |mut socket| async move {
        let end = match thread {
            Ok(thread) => Session::new(server, caller, thread, pass).run(&mut socket).await,
            Err(error) => End::Told(of_fault(&error)),
        };
        if let End::Told(frame) = end {
            // The client may have disconnected already.
            let _ = timeout(stall, socket.send(Message::Close(Some(frame)))).await;
        }
    })
}

fn of_fault(error: &ApiError) -> CloseFrame {
    closing(CLOSE + error.status().as_u16(), error.detail())
}

fn closing(code: u16, reason: &str) -> CloseFrame {
    let end = reason.floor_char_boundary(REASON_BYTES);
    CloseFrame { code, reason: reason[..end].into() }
}

struct Session {
    server: AgentServer,
    caller: Caller,
    thread: ThreadId,
    feed: Feed,
    pass: Pass,
    /// Whom parsing a command counts for.
    owner: CallerId,
    /// Queue of commands for the worker.
    commands: mpsc::Sender<Command>,
    /// Replies of the worker.
    answers: mpsc::Receiver<Value>,
    pings: Pings,
}

/// The number of pings in a period.
struct Pings {
    begun: Instant,
    count: u32,
}

impl Pings {
    /// Counts a ping. Returns `false` if the maximum is exceeded.
    fn take(&mut self) -> bool {
        if self.begun.elapsed() >= PING_PERIOD {
            *self = Self::default();
        }
        self.count += 1;
        self.count <= PINGS
    }
}

impl Default for Pings {
    fn default() -> Self {
        Self { begun: Instant::now(), count: 0 }
    }
}

/// The next input of a session.
enum Said {
    Client(Option<Result<Message, axum::Error>>),
    Thread(Ready),
    /// The reply to a command; `None` if the worker has stopped.
    Done(Option<Value>),
    Revoked,
}

/// The reason why a session ends.
enum End {
    /// The client has disconnected.
    Left,
    /// The server closes the connection, with the reason in a close frame.
    Told(CloseFrame),
}

impl Session {
    fn new(server: AgentServer, caller: Caller, thread: ThreadId, pass: Pass) -> Self {
        let feed = Feed::new(&server, caller.tenant.clone(), &thread);
        let (commands, waiting) = mpsc::channel(WAITING);
        // At most one reply is queued, so that the worker does not execute commands faster than the
        // client reads replies.
        let (done, answers) = mpsc::channel(1);
        let worker = Worker {
            server: server.clone(),
            caller: caller.clone(),
            thread: thread.clone(),
            permit: pass.permit.clone(),
        };
        tokio::spawn(worker.work(waiting, done));
        let owner = pass.permit.as_ref().map(RequestPermit::caller).unwrap_or_default();
        let pings = Pings::default();
        Self { server, caller, thread, feed, pass, owner, commands, answers, pings }
    }

    /// Runs until the client disconnects, the server closes the connection, or the key is revoked.
    async fn run(&mut self, socket: &mut WebSocket) -> End {
        let permit = self.pass.permit.take();
        let revoked = async {
            match &permit {
                Some(permit) => permit.revoked().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(revoked);
        loop {
            // If the queue is full, the worker is executing a command. Its reply ends the wait.
            let has_room = self.commands.capacity() > 0;
            let said = tokio::select! {
                message = socket.recv(), if has_room => Said::Client(message),
                ready = self.feed.ready() => Said::Thread(ready),
                answer = self.answers.recv() => Said::Done(answer),
                () = &mut revoked => Said::Revoked,
            };
            let done = match said {
                Said::Client(message) => self.hear(socket, message).await,
                Said::Thread(ready) => self.tell(socket, ready).await,
                Said::Done(Some(answer)) => self.say(socket, [answer]).await,
                Said::Done(None) => Err(End::Told(closing(close_code::ERROR, "a command failed"))),
                Said::Revoked => {
                    let code = CLOSE + StatusCode::UNAUTHORIZED.as_u16();
                    Err(End::Told(closing(code, "the key was revoked")))
                }
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    async fn hear(
        &mut self,
        socket: &mut WebSocket,
        message: Option<Result<Message, axum::Error>>,
    ) -> Result<(), End> {
        let text = match message {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) if self.pings.take() => return Ok(()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                return Err(End::Told(closing(close_code::POLICY, "too many pings")));
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Left),
        };
        // The configured limit of the server applies while a message is read. A lower limit of the
        // key is checked afterwards, because a connection that is aborted within a message could
        // not send the reason.
        if let Some(BodyLimit(bytes)) = self.pass.limit
            && text.len() > bytes
        {
            let why = format!("the message is larger than {bytes} bytes, the limit of its key");
            return Err(End::Told(closing(close_code::SIZE, &why)));
        }
        match self.answer(&text).await {
            Some(answer) => self.say(socket, [answer]).await,
            None => Ok(()),
        }
    }

    async fn tell(&mut self, socket: &mut WebSocket, ready: Ready) -> Result<(), End> {
        match ready {
            Ready::Event => {
                let sent = self.feed.take().await;
                self.say(socket, sent.into_iter().map(|sent| sent.data)).await
            }
            Ready::Anew => Ok(()),
            // A ping keeps proxies from closing the idle connection.
            Ready::Silence => self.in_time(socket.send(Message::Ping(Bytes::new()))).await,
            Ready::Gone => {
                let error = ApiError::missing("thread", self.thread.as_str());
                Err(End::Told(of_fault(&error)))
            }
            Ready::Stopping => {
                Err(End::Told(closing(close_code::AWAY, "the host is shutting down")))
            }
            Ready::Unreadable(_) => {
                self.say(socket, [unreadable()]).await?;
                let code = CLOSE + StatusCode::INTERNAL_SERVER_ERROR.as_u16();
                Err(End::Told(closing(code, "the thread cannot be read")))
            }
        }
    }

    /// Executes a command that the session handles itself, and returns its reply. Returns `None`
    /// for a command that the worker executes.
    async fn answer(&mut self, text: &[u8]) -> Option<Value> {
        // An invalid command counts against the rate limit as well, because it was read.
        let taken = self.pass.rate_limit.as_ref().map_or(Ok(()), CallerRateLimit::check);
        let is_long = is_long_parse(text.len());
        let read = block_in_place_in_turn(self.owner, is_long, || Command::parse(text));
        let command = match read.await {
            Ok(command) => command,
            Err(refusal) => return Some(refusal.answer(None)),
        };
        if let Err(wait) = taken {
            return Some(too_often(wait).answer(Some(command.id)));
        }
        let subscribed = match command.method.as_str() {
            "subscription.subscribe" => self.subscribe(&command),
            "subscription.unsubscribe" => self.unsubscribe(&command),
            "subscription.reconnect" => self.reconnect(&command),
            _ => {
                let id = command.id;
                // The queue had room when the message was received.
                let sent = self.commands.try_send(command);
                return sent.err().map(|_| too_many().answer(Some(id)));
            }
        };
        let ended = match subscribed {
            Ok(result) => end(&self.target()).await.map(|end| done(command.id, &result, end)),
            Err(refusal) => Err(refusal),
        };
        Some(ended.unwrap_or_else(|refusal| refusal.answer(Some(command.id))))
    }

    /// Sends JSON messages and flushes once.
    async fn say(
        &self,
        socket: &mut WebSocket,
        documents: impl IntoIterator<Item = Value>,
    ) -> Result<(), End> {
        self.in_time(async {
            for document in documents {
                socket.feed(Message::Text(document.to_string().into())).await?;
            }
            socket.flush().await
        })
        .await
    }

    /// Sends with a timeout. Ends the session of a client that has disconnected or does not read.
    /// Until the send completes, the messages stay in memory, and neither commands nor the
    /// revocation of the key are noticed.
    async fn in_time(
        &self,
        sending: impl Future<Output = Result<(), axum::Error>>,
    ) -> Result<(), End> {
        let api = self.server.api();
        match timeout(api.config.stall_timeout, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Left),
            Err(_elapsed) => {
                api.traffic.count_cut(CutReason::WriteTimeout);
                tracing::warn!(
                    thread = %self.thread,
                    "a client of a WebSocket did not read within `server.connections.stall_timeout` \
                     and is disconnected"
                );
                Err(End::Left)
            }
        }
    }

    fn target(&self) -> Target<'_> {
        Target { server: &self.server, caller: &self.caller, thread: &self.thread }
    }

    fn subscribe(&mut self, command: &Command) -> Result<Value, Refusal> {
        let params: Subscribe = command.read()?;
        let subscription = params.subscription().map_err(|invalid| refused(&invalid.into()))?;
        if self.feed.subscribers().len() >= SUBSCRIPTIONS {
            let why = format!("a connection has at most {SUBSCRIPTIONS} subscriptions; end some");
            return Err(Refusal::new(Code::InvalidArgument, why));
        }
        let id = Uuid::now_v7().to_string();
        self.feed.subscribe(id.clone(), subscription, params.since.unwrap_or(0));
        Ok(json!({ "subscription_id": id }))
    }

    fn unsubscribe(&mut self, command: &Command) -> Result<Value, Refusal> {
        let Unsubscribe { subscription_id: id } = command.read()?;
        if !self.feed.unsubscribe(&id) {
            let why = format!("there is no subscription `{id}` on this connection");
            return Err(Refusal::new(Code::NoSuchSubscription, why));
        }
        Ok(json!({}))
    }

    /// Restores subscriptions of this connection: their events after the one that the client names
    /// are sent again. Subscriptions of another connection ended with it and cannot be restored.
    fn reconnect(&mut self, command: &Command) -> Result<Value, Refusal> {
        let params: Reconnect = command.read()?;
        let since = params.last_event_id.as_deref().map(|id| {
            EventId::number_of(id).ok_or_else(|| {
                let why = format!("`{id}` is not an event id");
                Refusal::new(Code::InvalidArgument, why)
            })
        });
        let since = since.transpose()?.unwrap_or(0);
        let wanted = params.subscriptions.unwrap_or_else(|| self.feed.subscribers());
        let mut is_restored = !wanted.is_empty();
        for id in &wanted {
            is_restored &= self.feed.repeat(id, since);
        }
        Ok(json!({ "restored": is_restored }))
    }
}

/// Executes the commands of a connection.
struct Worker {
    server: AgentServer,
    caller: Caller,
    thread: ThreadId,
    /// Counts the connection as an open request until the last command has completed, even if the
    /// connection is closed earlier.
    permit: Option<RequestPermit>,
}

impl Worker {
    /// Executes commands one after another. Executes queued commands even if the client has
    /// disconnected, but none after the revocation of the key.
    async fn work(self, mut commands: mpsc::Receiver<Command>, done: mpsc::Sender<Value>) {
        while let Some(command) = commands.recv().await {
            if let Some(permit) = &self.permit
                && permit.is_revoked().await
            {
                return;
            }
            let target =
                Target { server: &self.server, caller: &self.caller, thread: &self.thread };
            let answer = perform(&target, &command).await;
            // The receiver is gone if the client has disconnected.
            let _ = done.send(answer).await;
        }
    }
}

fn too_often(wait: Duration) -> Refusal {
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let why = format!("rate limit exceeded; retry after {seconds} s");
    Refusal::new(Code::UnknownError, why)
}

fn too_many() -> Refusal {
    let why =
        format!("this connection already has {WAITING} pending commands; wait for their replies");
    Refusal::new(Code::UnknownError, why)
}

/// Returns the error that a stream sends before it ends, if the thread cannot be read.
pub(crate) fn unreadable() -> Value {
    Refusal::new(Code::UnknownError, "the thread cannot be read; try again").answer(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pings_are_counted_in_periods() {
        let mut pings = Pings::default();
        assert!((0..PINGS).all(|_| pings.take()) && !pings.take());
        tokio::time::sleep(PING_PERIOD).await;
        assert!(pings.take());
    }
}
