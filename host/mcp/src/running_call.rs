//! Tool calls in progress, during which a server may send elicitations.
//!
//! In the stateless protocol, a call that needs answers returns its elicitations. The host repeats
//! the call with the answers, so neither side keeps state. In the earlier protocols, the server
//! sends an elicitation through the session while the call stays open. The host holds such a call
//! together with its session until the answer arrives; see [`held_calls`](crate::held_calls).

use std::sync::Arc;

use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ProtocolVersion};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use wattle_run::places::Place;
use wattle_run::ports::tool_server::ElicitationRound;

use crate::calls::{AnswerSender, CallElicitation, CallRegistration, ElicitationAnswer};
use crate::connect::Session;
use crate::elicitation::elicitation_result;
use crate::failure;
use crate::permit::SendPermit;

/// A slot for one call on a session.
pub(crate) struct CallSlot {
    session: Arc<Session>,
    registration: CallRegistration,
    elicitations: mpsc::Receiver<CallElicitation>,
    /// The place of the call among those of its server, and the place of a session that only this
    /// call uses.
    places: Vec<Place>,
}

impl CallSlot {
    /// Registers a new call on a session.
    pub(crate) fn new(session: Arc<Session>) -> Self {
        let (registration, elicitations) = session.service().calls().register();
        Self { session, registration, elicitations, places: Vec::new() }
    }

    /// Holds a place until the call ends or is held.
    pub(crate) fn hold(&mut self, place: Place) {
        self.places.push(place);
    }
}

/// Returns true if the connection to the server is lost. `rmcp` closes the session only some
/// seconds later.
fn is_disconnected(session: &Session) -> bool {
    session.is_transport_closed() || session.service().calls().connection_lost().is_cancelled()
}

/// Returns true if a session uses the stateless protocol.
pub(crate) fn is_stateless(session: &Session) -> bool {
    let info = session.peer().peer_info();
    info.is_some_and(|info| info.protocol_version >= ProtocolVersion::NO_INITIALIZE)
}

/// Returns true if a session may be used for further requests. A session of the stateless protocol
/// that has listed too much is replaced, which the server does not notice. `rmcp` keeps no tools of
/// other sessions.
pub(crate) fn is_usable(session: &Session) -> bool {
    let is_full = session.service().calls().has_listed_too_much() && is_stateless(session);
    !is_disconnected(session) && !is_full
}

/// The next event of a call.
pub(crate) enum CallEvent {
    /// The call returned or failed.
    Ended(Box<Result<CallToolResponse, ServiceError>>),
    /// The server sent an elicitation and waits for the answer.
    Elicited(CallElicitation),
}

/// A call in progress. Dropping the value cancels the call.
pub(crate) struct RunningCall {
    /// Task of the call. The field is declared before `elicitations`, so that the task is aborted
    /// before the receiver is dropped.
    work: AbortOnDropHandle<Result<CallToolResponse, ServiceError>>,
    /// The session of the call. This reference keeps the session open, because a held call may be
    /// its only user.
    session: Arc<Session>,
    elicitations: mpsc::Receiver<CallElicitation>,
    /// Condition under which the call may be sent.
    permit: SendPermit,
    /// The result, if the call ended before the caller polled it again.
    early_result: Option<Box<Result<CallToolResponse, ServiceError>>>,
    places: Vec<Place>,
}

impl RunningCall {
    /// Starts a call. The call is sent only while `permit` allows it.
    pub(crate) fn start(
        slot: CallSlot,
        parameters: CallToolRequestParams,
        permit: SendPermit,
    ) -> Self {
        let CallSlot { session, registration, elicitations, places } = slot;
        let (calling, own) = (session.clone(), permit.clone());
        let work = async move {
            let owner = calling.service().work_owner();
            registration.call(calling.peer(), parameters, own, owner).await
        };
        let work = AbortOnDropHandle::new(tokio::spawn(work));
        Self { work, session, elicitations, permit, early_result: None, places }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Waits for the next elicitation or for the end of the call. Must not be called after the end.
    pub(crate) async fn next(&mut self) -> CallEvent {
        let ended = match self.early_result.take() {
            Some(ended) => ended,
            None => tokio::select! {
                biased;
                Some(asked) = self.elicitations.recv() => return CallEvent::Elicited(asked),
                ended = &mut self.work => {
                    Box::new(ended.unwrap_or(Err(ServiceError::TransportClosed)))
                }
            },
        };
        self.session.service().calls().end_reservation();
        CallEvent::Ended(ended)
    }

    /// Returns true if the result was lost together with the connection or the session of the call.
    async fn is_connection_lost(&mut self) -> bool {
        if !self.work.is_finished() {
            return is_disconnected(&self.session);
        }
        let ended = (&mut self.work).await.unwrap_or(Err(ServiceError::TransportClosed));
        let is_cut = ended.as_ref().is_err_and(failure::is_session_gone);
        self.early_result = Some(Box::new(ended));
        is_cut
    }

    /// Cancels the call, waits until its task has ended, and returns its session.
    async fn cancel(self) -> Arc<Session> {
        self.work.abort();
        // The task was aborted, so an error is expected here.
        self.work.await.ok();
        self.session
    }
}

/// A tool call whose server waits for the answer of a person, see
/// [`held_calls`](crate::held_calls).
pub(crate) struct HeldCall {
    running: RunningCall,
    reply: AnswerSender,
}

impl HeldCall {
    /// Holds a call. If elicitations of the server do not identify their call, reserves the session
    /// for this call.
    pub(crate) fn new(
        mut running: RunningCall,
        reply: AnswerSender,
        unscoped_elicitations: bool,
    ) -> Self {
        // The server has received the call. While the call is held, its run is interrupted and the
        // host releases the lease of the thread.
        running.permit.remove_lease();
        if unscoped_elicitations {
            running.session.service().calls().reserve_session();
        }
        // Held calls have a separate limit, see `held_calls`.
        running.places.clear();
        Self { running, reply }
    }

    /// Passes the answer, with its permit, to the server and returns the call. Returns `None` if
    /// the connection is lost.
    pub(crate) async fn resume(
        mut self,
        round: &ElicitationRound,
        permit: SendPermit,
    ) -> Option<RunningCall> {
        if self.running.is_connection_lost().await {
            return None;
        }
        // If the call has a result, the server has ended the call and no longer waits for the
        // answer.
        if self.running.early_result.is_none() {
            let answer = round.answers.values().next().cloned().unwrap_or_default();
            self.reply
                .send(ElicitationAnswer { answer: Ok(elicitation_result(&answer)), permit })
                .ok();
        }
        Some(self.running)
    }

    /// Cancels the call and returns its session.
    pub(crate) async fn cancel(self) -> Arc<Session> {
        self.running.cancel().await
    }
}
