//! The streaming protocol over one WebSocket: commands one way, their answers and the events of
//! subscriptions the other way.

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
use wattle_api::guard::budget::Budget;
use wattle_api::guard::open::Slot;
use wattle_api::traffic::Cut;
use wattle_graph::id::ThreadId;
use wattle_project::agent_server::id::EventId;

use crate::agents::Agents;
use crate::caller::Caller;
use crate::command::{Target, end, perform, refused};
use crate::fault::Fault;
use crate::feed::{Feed, Ready};
use crate::wire::command::{Code, Command, Reconnect, Refusal, Subscribe, Unsubscribe, done};

/// Subscriptions of one connection: each event is folded once for each of them. Clients have one
/// for each part of a page that looks at a thread.
const SUBSCRIPTIONS: usize = 64;

/// What is added to a status of HTTP for the code of a close.
const CLOSE: u16 = 4_000;

/// Bytes of the reason of a close: frames that are no messages have at most 125, two of which are
/// its code.
const REASON_BYTES: usize = 123;

/// Pings of one connection in [`PING_PERIOD`]. Each is answered with a frame, which waits in memory
/// while the client does not read; browsers send none, and libraries one in some seconds.
const PINGS: u32 = 20;

/// The period in which pings are counted.
const PING_PERIOD: Duration = Duration::from_secs(10);

/// Commands of one connection that wait for the one at work. Who sends more is not listened to until
/// there is room again; clients mostly wait for each answer.
const WAITING: usize = 16;

/// What the guards gave a connection; nothing where no guard stands.
#[derive(Default)]
pub(crate) struct Pass {
    /// Held as long as the connection is open.
    pub(crate) slot: Option<Slot>,
    /// What each command is taken from.
    pub(crate) budget: Option<Budget>,
    /// How large each message may be, if less than the server allows.
    pub(crate) limit: Option<BodyLimit>,
}

/// Answers with a WebSocket. What is wrong with the thread is said by closing it, since pages
/// cannot read the answer to a request for a WebSocket.
pub(crate) fn open(
    agents: Agents,
    caller: Caller,
    thread: Result<ThreadId, Fault>,
    pass: Pass,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limit_bytes = agents.api().config.body_limit_bytes;
    let stall = agents.api().config.stall;
    let upgrade = upgrade.max_message_size(limit_bytes).max_frame_size(limit_bytes);
    upgrade.on_upgrade(move |mut socket| async move {
        let end = match thread {
            Ok(thread) => Session::new(agents, caller, thread, pass).run(&mut socket).await,
            Err(fault) => End::Told(of_fault(&fault)),
        };
        if let End::Told(frame) = end {
            // The client may be gone already.
            let _ = timeout(stall, socket.send(Message::Close(Some(frame)))).await;
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
    pass: Pass,
    /// Commands that are to be done.
    commands: mpsc::Sender<Command>,
    /// What came of them.
    answers: mpsc::Receiver<Value>,
    pings: Pings,
}

/// Pings since the period began.
struct Pings {
    begun: Instant,
    count: u32,
}

impl Pings {
    /// Counts one, and says whether there may be so many.
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

/// What happens next.
enum Said {
    Client(Option<Result<Message, axum::Error>>),
    Thread(Ready),
    /// A command was done, or not; `None` if none will be done any more.
    Done(Option<Value>),
    Revoked,
}

/// Why nothing goes on.
enum End {
    /// The client is gone.
    Left,
    /// The client gets the reason in a close frame.
    Told(CloseFrame),
}

impl Session {
    fn new(agents: Agents, caller: Caller, thread: ThreadId, pass: Pass) -> Self {
        let feed = Feed::new(&agents, caller.tenant.clone(), &thread);
        let (commands, waiting) = mpsc::channel(WAITING);
        // Only one answer may wait, so the worker does not run ahead of what the client gets.
        let (done, answers) = mpsc::channel(1);
        let worker = Worker {
            agents: agents.clone(),
            caller: caller.clone(),
            thread: thread.clone(),
            slot: pass.slot.clone(),
        };
        tokio::spawn(worker.work(waiting, done));
        let pings = Pings::default();
        Self { agents, caller, thread, feed, pass, commands, answers, pings }
    }

    /// Goes on until one side has enough, or the key of the client opens nothing any more.
    async fn run(&mut self, socket: &mut WebSocket) -> End {
        let slot = self.pass.slot.take();
        let revoked = async {
            match &slot {
                Some(slot) => slot.revoked().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(revoked);
        loop {
            // As long as there is no room, a command is at work, whose answer ends the wait.
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
        // It was read whole, as the server allows: a connection that ends in the middle of a message
        // would not tell why.
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
            // Proxies cut connections in which nothing happens.
            Ready::Silence => self.in_time(socket.send(Message::Ping(Bytes::new()))).await,
            Ready::Gone => {
                let fault = Fault::missing("thread", self.thread.as_str());
                Err(End::Told(of_fault(&fault)))
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

    /// The answer to what can be said at once; `None` for a command that takes its time.
    async fn answer(&mut self, text: &[u8]) -> Option<Value> {
        // What is no command counts too: it was read.
        let taken = self.pass.budget.as_ref().map_or(Ok(()), Budget::take);
        let command = match Command::parse(text) {
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
                // There was room when it was heard.
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

    /// Sends documents; they leave together.
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

    /// Ends the session of a client that is gone or too slow. Until then the documents stay in memory,
    /// and neither commands nor a revoked key are noticed.
    async fn in_time(
        &self,
        sending: impl Future<Output = Result<(), axum::Error>>,
    ) -> Result<(), End> {
        let api = self.agents.api();
        match timeout(api.config.stall, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Left),
            Err(_elapsed) => {
                api.traffic.cut(Cut::Stalled);
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
    /// one get again what the client does not know.
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

/// Does the commands of a connection.
struct Worker {
    agents: Agents,
    caller: Caller,
    thread: ThreadId,
    /// Held until the last command is done: a connection that is closed meanwhile still counts.
    slot: Option<Slot>,
}

impl Worker {
    /// Does them one after another. Those that it has are done even if the client leaves meanwhile,
    /// but none is begun with a key that was revoked.
    async fn work(self, mut commands: mpsc::Receiver<Command>, done: mpsc::Sender<Value>) {
        while let Some(command) = commands.recv().await {
            if let Some(slot) = &self.slot
                && slot.is_revoked().await
            {
                return;
            }
            let target =
                Target { agents: &self.agents, caller: &self.caller, thread: &self.thread };
            let answer = perform(&target, &command).await;
            // Nobody hears it if the client has left.
            let _ = done.send(answer).await;
        }
    }
}

fn too_often(wait: Duration) -> Refusal {
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let why = format!("this caller may not ask so often; try again in {seconds} s");
    Refusal::new(Code::UnknownError, why)
}

fn too_many() -> Refusal {
    let why = format!("{WAITING} commands of this connection wait already; wait for their answers");
    Refusal::new(Code::UnknownError, why)
}

/// What is said before a stream ends that cannot go on.
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
