//! The streaming protocol over one WebSocket: commands one way, their answers and the events of
//! subscriptions the other way.

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::SinkExt as _;
use serde_json::{Value, json};
use uuid::Uuid;
use wattle_api::guard::open::Slot;
use wattle_graph::id::ThreadId;

use crate::agents::Agents;
use crate::caller::Caller;
use crate::command::{Target, end, perform, refused};
use crate::fault::Fault;
use crate::feed::{Feed, Ready};
use crate::wire::command::{Code, Command, Reconnect, Refusal, Subscribe, Unsubscribe, done};
use crate::wire::id::EventId;

/// Subscriptions of one connection: each event is folded once for each of them. Clients have one
/// for each part of a page that looks at a thread.
const SUBSCRIPTIONS: usize = 64;

/// What is added to a status of HTTP for the code of a close.
const CLOSE: u16 = 4_000;

/// Bytes of the reason of a close: frames that are no messages have at most 125, two of which are
/// its code.
const REASON_BYTES: usize = 123;

/// Answers with a WebSocket. What is wrong with the thread is said by closing it, since pages
/// cannot read the answer to a request for a WebSocket. `slot` is held as long as it is open.
pub(crate) fn open(
    agents: Agents,
    caller: Caller,
    thread: Result<ThreadId, Fault>,
    slot: Option<Slot>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limit_bytes = agents.api().config.body_limit_bytes;
    let upgrade = upgrade.max_message_size(limit_bytes).max_frame_size(limit_bytes);
    upgrade.on_upgrade(move |mut socket| async move {
        let end = match thread {
            Ok(thread) => Session::new(agents, caller, thread).run(&mut socket, slot).await,
            Err(fault) => End::Told(of_fault(&fault)),
        };
        if let End::Told(frame) = end {
            // The client may be gone already.
            let _ = socket.send(Message::Close(Some(frame))).await;
        }
    })
}

fn of_fault(fault: &Fault) -> CloseFrame {
    closing(CLOSE + fault.status().as_u16(), fault.detail())
}

fn closing(code: u16, reason: &str) -> CloseFrame {
    let end = reason.floor_char_boundary(REASON_BYTES);
    CloseFrame { code, reason: reason[..end].into() }
}

struct Session {
    agents: Agents,
    caller: Caller,
    thread: ThreadId,
    feed: Feed,
}

/// What happens next.
enum Said {
    Client(Option<Result<Message, axum::Error>>),
    Thread(Ready),
    Revoked,
}

/// Why nothing goes on.
enum End {
    /// The client is gone.
    Left,
    /// The client is to be told why.
    Told(CloseFrame),
}

impl Session {
    fn new(agents: Agents, caller: Caller, thread: ThreadId) -> Self {
        let feed = Feed::new(&agents, caller.tenant.clone(), &thread);
        Self { agents, caller, thread, feed }
    }

    /// Goes on until one side has enough, or the key of the client opens nothing any more.
    async fn run(&mut self, socket: &mut WebSocket, slot: Option<Slot>) -> End {
        let revoked = async {
            match &slot {
                Some(slot) => slot.revoked().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(revoked);
        loop {
            let said = tokio::select! {
                message = socket.recv() => Said::Client(message),
                ready = self.feed.ready() => Said::Thread(ready),
                () = &mut revoked => Said::Revoked,
            };
            let done = match said {
                Said::Client(message) => self.hear(socket, message).await,
                Said::Thread(ready) => self.tell(socket, ready).await,
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
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Left),
        };
        let answer = self.answer(&text).await;
        say(socket, [answer]).await
    }

    async fn tell(&mut self, socket: &mut WebSocket, ready: Ready) -> Result<(), End> {
        match ready {
            Ready::Event => {
                let sent = self.feed.take().await;
                say(socket, sent.into_iter().map(|sent| sent.data)).await
            }
            Ready::Anew => Ok(()),
            // Proxies cut connections in which nothing happens.
            Ready::Silence => socket.send(Message::Ping(Bytes::new())).await.map_err(|_| End::Left),
            Ready::Gone => {
                let fault = Fault::missing("thread", self.thread.as_str());
                Err(End::Told(of_fault(&fault)))
            }
            Ready::Stopping => {
                Err(End::Told(closing(close_code::AWAY, "the host is shutting down")))
            }
            Ready::Broken => {
                say(socket, [unreadable()]).await?;
                let code = CLOSE + StatusCode::INTERNAL_SERVER_ERROR.as_u16();
                Err(End::Told(closing(code, "the thread cannot be read")))
            }
        }
    }

    async fn answer(&mut self, text: &[u8]) -> Value {
        let command = match Command::parse(text) {
            Ok(command) => command,
            Err(refusal) => return refusal.answer(None),
        };
        let subscribed = match command.method.as_str() {
            "subscription.subscribe" => self.subscribe(&command),
            "subscription.unsubscribe" => self.unsubscribe(&command),
            "subscription.reconnect" => self.reconnect(&command),
            _ => return perform(&self.target(), &command).await,
        };
        let ended = match subscribed {
            Ok(result) => end(&self.target()).await.map(|end| done(command.id, &result, end)),
            Err(refusal) => Err(refusal),
        };
        ended.unwrap_or_else(|refusal| refusal.answer(Some(command.id)))
    }

    fn target(&self) -> Target<'_> {
        Target { agents: &self.agents, caller: &self.caller, thread: &self.thread }
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

    /// Subscriptions end with their connection, so one of another cannot be restored; those of this
    /// one are told again what the client does not know.
    fn reconnect(&mut self, command: &Command) -> Result<Value, Refusal> {
        let params: Reconnect = command.read()?;
        let since = params.last_event_id.as_deref().map(|id| {
            EventId::number_of(id).ok_or_else(|| {
                let why = format!("`{id}` is no id of an event");
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

/// What is said before a stream ends that cannot go on.
pub(crate) fn unreadable() -> Value {
    Refusal::new(Code::UnknownError, "the thread cannot be read; try again").answer(None)
}

/// Sends documents; they leave together.
async fn say(
    socket: &mut WebSocket,
    documents: impl IntoIterator<Item = Value>,
) -> Result<(), End> {
    for document in documents {
        let text = Message::Text(document.to_string().into());
        socket.feed(text).await.map_err(|_| End::Left)?;
    }
    socket.flush().await.map_err(|_| End::Left)
}
