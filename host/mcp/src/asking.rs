//! Tool calls in progress, during which a server may send elicitations.
//!
//! In the stateless protocol, a call that needs answers returns its elicitations. The host repeats the call with the
//! answers, so neither side keeps state. In the earlier protocols, the server sends an elicitation through the session
//! while the call stays open. The host holds such a call together with its session until the answer arrives, see
//! [`held`](crate::held).

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

/// A slot for one call on a session.
pub(crate) struct Seat {
    session: Arc<Session>,
    place: Place,
    asks: mpsc::Receiver<Asked>,
    /// Semaphore permit for a session that only this call uses; `None` on the shared session.
    room: Option<OwnedSemaphorePermit>,
}

impl Seat {
    /// Registers a new call on a session.
    pub(crate) fn on(session: Arc<Session>, room: Option<OwnedSemaphorePermit>) -> Self {
        let (place, asks) = session.service().calls().enter();
        Self { session, place, asks, room }
    }
}

/// Returns true if the connection to the server is lost. `rmcp` closes the session some seconds later.
pub(crate) fn is_gone(session: &Session) -> bool {
    session.is_transport_closed() || session.service().calls().lost().is_cancelled()
}

/// The next event of a call.
pub(crate) enum Happened {
    /// The call returned or failed.
    Ended(Box<Result<CallToolResponse, ServiceError>>),
    /// The server sent an elicitation and waits for the answer.
    Asked(Asked),
}

/// A call in progress. Dropping it cancels the call.
pub(crate) struct Running {
    /// Task of the call. It is declared before `asks`, so that it is aborted before the receiver is dropped.
    work: AbortOnDropHandle<Result<CallToolResponse, ServiceError>>,
    /// Keeps the session open: a held call may be its only user.
    session: Arc<Session>,
    asks: mpsc::Receiver<Asked>,
    /// Condition under which the call may be sent.
    permit: Permit,
    /// The result, if the call ended before the caller polled it again.
    ended: Option<Box<Result<CallToolResponse, ServiceError>>>,
    room: Option<OwnedSemaphorePermit>,
}

impl Running {
    /// Starts a call. The call is sent only while `permit` allows it.
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

    /// Waits for the next elicitation or for the end of the call. Must not be called after the end.
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

    /// Returns true if the result was lost together with the connection or the session of the call.
    async fn is_cut(&mut self) -> bool {
        if !self.work.is_finished() {
            return is_gone(&self.session);
        }
        let ended = (&mut self.work).await.unwrap_or(Err(ServiceError::TransportClosed));
        let is_cut = ended.as_ref().is_err_and(fault::is_cut);
        self.ended = Some(Box::new(ended));
        is_cut
    }

    /// Cancels the call, waits until its task has ended, and returns its session.
    async fn end(self) -> Arc<Session> {
        self.work.abort();
        // The error of an aborted task is expected.
        self.work.await.ok();
        self.session
    }
}

/// A held call.
pub(crate) struct Waiting {
    running: Running,
    reply: Reply,
}

impl Waiting {
    /// Holds a call. If the server does not identify the call in its elicitations, reserves the session for this call.
    pub(crate) fn new(mut running: Running, reply: Reply, asks_anywhere: bool) -> Self {
        // The server has received the call. While the call is held, its run is interrupted and the host releases the
        // lease of the thread.
        running.permit.lift();
        if asks_anywhere {
            running.session.service().calls().reserve();
        }
        // Held calls have a separate limit, see `held`.
        drop(running.room.take());
        Self { running, reply }
    }

    /// Passes the answer, with its permit, to the server and returns the call. Returns `None` if the connection is
    /// lost.
    pub(crate) async fn answered(mut self, round: &Round, permit: Permit) -> Option<Running> {
        if self.running.is_cut().await {
            return None;
        }
        // A server that no longer waits for the answer has ended the call.
        if self.running.ended.is_none() {
            let answer = round.answers.values().next().cloned().unwrap_or_default();
            self.reply.send(Answered { answer: Ok(result(&answer)), permit }).ok();
        }
        Some(self.running)
    }

    /// Cancels the call and returns its session.
    pub(crate) async fn end(self) -> Arc<Session> {
        self.running.end().await
    }
}
