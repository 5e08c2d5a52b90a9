//! Calls on their way, in which a server may ask.
//!
//! In the newer protocol a call ends with its questions and is made again with the answers, so nobody holds
//! anything. In the earlier ones the server asks through the session and holds its call open. Such a call is set aside
//! until there is an answer, with its session, see [`held`](crate::held).

use std::sync::Arc;

use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::task::AbortOnDropHandle;
use wattle_run::ports::tool_server::Round;

use crate::calls::{Answered, Asked, Place, Reply};
use crate::connect::Session;
use crate::fault;
use crate::permit::Permit;
use crate::question::result;

/// A place for a call on a session.
pub(crate) struct Seat {
    session: Arc<Session>,
    place: Place,
    asks: mpsc::Receiver<Asked>,
    /// Held while the session is one of the call's own.
    room: Option<OwnedSemaphorePermit>,
}

impl Seat {
    /// The next place on a session.
    pub(crate) fn on(session: Arc<Session>, room: Option<OwnedSemaphorePermit>) -> Self {
        let (place, asks) = session.service().calls().enter();
        Self { session, place, asks, room }
    }
}

/// Whether the way to the server is gone. The library needs seconds more to close a session.
pub(crate) fn is_gone(session: &Session) -> bool {
    session.is_transport_closed() || session.service().calls().lost().is_cancelled()
}

/// What happens in a call.
pub(crate) enum Happened {
    /// It is done, or failed.
    Ended(Box<Result<CallToolResponse, ServiceError>>),
    /// The server asks, and waits.
    Asked(Asked),
}

/// A call on its way. Dropped, it is called off.
pub(crate) struct Running {
    /// Its task. It is aborted before the receiver of its questions is gone.
    work: AbortOnDropHandle<Result<CallToolResponse, ServiceError>>,
    /// Its session. A call that waits may be the only one to use it.
    session: Arc<Session>,
    asks: mpsc::Receiver<Asked>,
    /// What the call may leave under.
    permit: Permit,
    /// Its result, if it ended before its caller waits for it again.
    ended: Option<Box<Result<CallToolResponse, ServiceError>>>,
    room: Option<OwnedSemaphorePermit>,
}

impl Running {
    /// Makes a call under a permit.
    pub(crate) fn start(seat: Seat, parameters: CallToolRequestParams, permit: Permit) -> Self {
        let Seat { session, place, asks, room } = seat;
        let (calling, own) = (session.clone(), permit.clone());
        let work = async move { place.call(calling.peer(), parameters, own).await };
        let work = AbortOnDropHandle::new(tokio::spawn(work));
        Self { work, session, asks, permit, ended: None, room }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What happens next. Nothing does after the end.
    pub(crate) async fn next(&mut self) -> Happened {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => tokio::select! {
                biased;
                Some(asked) = self.asks.recv() => return Happened::Asked(asked),
                ended = &mut self.work => {
                    Box::new(ended.unwrap_or(Err(ServiceError::TransportClosed)))
                }
            },
        };
        self.session.service().calls().share();
        Happened::Ended(ended)
    }

    /// Whether nobody will know how it ends, since the way to the server is gone, or its session.
    async fn is_cut(&mut self) -> bool {
        if !self.work.is_finished() {
            return is_gone(&self.session);
        }
        let ended = (&mut self.work).await.unwrap_or(Err(ServiceError::TransportClosed));
        let is_cut = ended.as_ref().is_err_and(fault::is_cut);
        self.ended = Some(Box::new(ended));
        is_cut
    }

    /// Ends the call, and waits for that; its session.
    async fn end(self) -> Arc<Session> {
        self.work.abort();
        // It was called off.
        self.work.await.ok();
        self.session
    }
}

/// A call that waits for a person.
pub(crate) struct Waiting {
    running: Running,
    reply: Reply,
}

impl Waiting {
    /// Sets a call aside. If the server asks without saying in which call, the session is reserved for this one.
    pub(crate) fn new(mut running: Running, reply: Reply, asks_anywhere: bool) -> Self {
        // The thread rests meanwhile, and its lease is given back.
        running.permit.lift();
        if asks_anywhere {
            running.session.service().calls().reserve();
        }
        // Those that are held are counted by themselves.
        drop(running.room.take());
        Self { running, reply }
    }

    /// Goes on with what a person has answered, under a permit. `None` if the server is gone.
    pub(crate) async fn answered(mut self, round: &Round, permit: Permit) -> Option<Running> {
        if self.running.is_cut().await {
            return None;
        }
        // A server that waits no longer has ended its call, with an answer of its own.
        if self.running.ended.is_none() {
            let answer = round.answers.values().next().cloned().unwrap_or_default();
            self.reply.send(Answered { answer: Ok(result(&answer)), permit }).ok();
        }
        Some(self.running)
    }

    /// Ends the call; its session.
    pub(crate) async fn end(self) -> Arc<Session> {
        self.running.end().await
    }
}
