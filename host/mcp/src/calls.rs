//! The calls in progress on a session, and the assignment of elicitations to them.
//!
//! Over HTTP an elicitation arrives in the response to its call, and `rmcp` reports the id of that
//! call. A stdio server sends all messages in one stream. An elicitation of a stdio server can
//! therefore be assigned to a call only if no other call can have sent the elicitation. A call with
//! an unanswered elicitation sends no further elicitation. A cancelled call may still send an
//! elicitation, since the server may still execute the call. An elicitation that several calls may
//! have sent waits until only one of these calls is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientJsonRpcMessage, ClientRequest,
    ElicitResult, ListToolsResult, PaginatedRequestParams, RequestId, ServerResult,
};
use rmcp::service::{InboundStreamOrigin, PeerRequestOptions, RequestHandle};
use rmcp::{ErrorData, Peer, RoleClient, ServiceError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wattle_graph::elicitation::ElicitedQuestion;
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::meter::WorkOwner;

use crate::permit::SendPermit;
use crate::tool_result;
use crate::unreadable::{MessageLimit, ResponseTo, UnreadableMessage};

/// The reason in the `notifications/cancelled` message.
const CANCEL_REASON: &str = "the caller no longer waits for the result";

/// Bytes of listed tools after which a session of the stateless protocol is replaced. `rmcp` keeps
/// the schema of each name that such a session has listed, and a server may change the names with
/// every list. One list may have as many bytes: further pages are not read.
pub(crate) const MAX_LISTED_BYTES: u64 = 16 << 20;

/// The answer to an elicitation, and the condition under which the answer may be sent.
#[derive(Debug)]
pub(crate) struct ElicitationAnswer {
    pub(crate) answer: Result<ElicitResult, ErrorData>,
    pub(crate) permit: SendPermit,
}

/// Sender for the answer to an elicitation.
pub(crate) type AnswerSender = oneshot::Sender<ElicitationAnswer>;

/// An elicitation during a call.
#[derive(Debug)]
pub(crate) struct CallElicitation {
    pub(crate) question: ElicitedQuestion,
    pub(crate) reply: AnswerSender,
}

/// The calls in progress on a session. Clones share the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<CallsShared>);

#[derive(Debug, Default)]
struct CallsShared {
    state: Mutex<CallsState>,
    /// Locked while a call is sent. `rmcp` returns the id of the call only after sending, and an
    /// elicitation of the call may arrive before that.
    sending: tokio::sync::Mutex<()>,
    /// Notified when a call ends or sends an elicitation, and when an unassigned elicitation is no
    /// longer pending.
    changed: Notify,
    /// Cancelled when the connection to the server is lost.
    connection_lost: CancellationToken,
    /// The message that the host could not read and that ended the session.
    unreadable_message: OnceLock<UnreadableMessage>,
    /// Bytes of memory of the tools that the session has listed over HTTP.
    listed_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct CallsState {
    calls: BTreeMap<u64, TrackedCall>,
    /// Numbers of the elicitations that are not yet assigned to a call, in the order of their
    /// arrival.
    unassigned: BTreeSet<u64>,
    /// Permits of answers that are being sent, by the id of the elicitation.
    answer_permits: HashMap<RequestId, SendPermit>,
    /// Number of the latest call or elicitation.
    last_number: u64,
    /// Whether a call was cancelled before its end.
    has_cancelled: bool,
    /// Requests for a page of the tool list without a response, also those that were given up.
    open_lists: usize,
    /// Whether the session is reserved for a held call.
    is_reserved: bool,
}

impl CallsState {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the request to which a message of the server responds. The server may still respond
    /// to cancelled calls and to lists that were given up.
    fn response_to(&self) -> ResponseTo {
        match (self.calls.len(), self.has_cancelled, self.open_lists) {
            (0, false, _) => ResponseTo::OtherRequest,
            (1, false, 0) => ResponseTo::OnlyCall,
            _ => ResponseTo::Unknown,
        }
    }
}

#[derive(Debug)]
struct TrackedCall {
    /// Request id; `None` until the call is sent.
    id: Option<RequestId>,
    elicitations: mpsc::Sender<CallElicitation>,
    /// Semaphore with one permit, which the unanswered elicitation of the call holds.
    elicitation_slot: Arc<Semaphore>,
}

impl Calls {
    /// Locks the state. Ignores poisoning, because no code that holds this lock can panic.
    fn lock(&self) -> MutexGuard<'_, CallsState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the condition under which the answer to an elicitation may be sent.
    pub(crate) fn set_answer_permit(&self, question: RequestId, permit: SendPermit) {
        self.lock().answer_permits.insert(question, permit);
    }

    /// Returns the permit of an outgoing message: the condition under which it may be sent. Only
    /// calls and elicitation answers have a permit; other messages are always permitted. Removes
    /// the permit of an answer.
    pub(crate) fn take_permit(&self, message: &ClientJsonRpcMessage) -> SendPermit {
        let permit = match message {
            ClientJsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::CallToolRequest(call) => {
                    call.extensions.get::<SendPermit>().cloned()
                }
                _ => None,
            },
            ClientJsonRpcMessage::Response(answer) => self.lock().answer_permits.remove(&answer.id),
            ClientJsonRpcMessage::Error(refusal) => {
                refusal.id.as_ref().and_then(|id| self.lock().answer_permits.remove(id))
            }
            ClientJsonRpcMessage::Notification(_) => None,
        };
        permit.unwrap_or_default()
    }

    /// Returns true if no call is in progress and no call was cancelled, so that no call can send
    /// an elicitation.
    pub(crate) fn are_idle(&self) -> bool {
        let state = self.lock();
        state.calls.is_empty() && !state.has_cancelled
    }

    /// Returns true if a call was cancelled before its end. The server may still send an
    /// elicitation of that call.
    pub(crate) fn have_cancelled(&self) -> bool {
        self.lock().has_cancelled
    }

    /// Reserves the session for one held call. Other calls then get another session.
    pub(crate) fn reserve_session(&self) {
        self.lock().is_reserved = true;
    }

    /// Ends the reservation of the session. The caller must call this method when the held call has
    /// ended.
    pub(crate) fn end_reservation(&self) {
        self.lock().is_reserved = false;
    }

    /// Returns true if the session is reserved for a held call.
    pub(crate) fn is_session_reserved(&self) -> bool {
        self.lock().is_reserved
    }

    /// Returns the token that is cancelled when the connection to the server is lost.
    pub(crate) fn connection_lost(&self) -> &CancellationToken {
        &self.0.connection_lost
    }

    /// Ends the session because of a message that exceeds a limit.
    pub(crate) fn end_session(&self, limit: MessageLimit) {
        let response_to = self.lock().response_to();
        self.0.unreadable_message.set(UnreadableMessage { limit, response_to }).ok();
        self.0.connection_lost.cancel();
    }

    /// Returns the message that the host could not read, if it ended the session.
    pub(crate) fn unreadable_message(&self) -> Option<UnreadableMessage> {
        self.0.unreadable_message.get().copied()
    }

    /// Requests a page of the tool list. If the future is dropped, the list stays open.
    pub(crate) async fn list_tools(
        &self,
        peer: &Peer<RoleClient>,
        page: PaginatedRequestParams,
    ) -> Result<ListToolsResult, ServiceError> {
        self.lock().open_lists += 1;
        let listed = peer.list_tools(Some(page)).await;
        self.lock().open_lists -= 1;
        listed
    }

    /// Counts the bytes of listed tools.
    pub(crate) fn count_listed(&self, bytes: u64) {
        self.0.listed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of the tools that the session has listed over HTTP.
    pub(crate) fn listed_bytes(&self) -> u64 {
        self.0.listed_bytes.load(Ordering::Relaxed)
    }

    /// Returns true if the session has listed more than [`MAX_LISTED_BYTES`].
    pub(crate) fn has_listed_too_much(&self) -> bool {
        self.listed_bytes() > MAX_LISTED_BYTES
    }

    /// Registers a call. Returns its entry and the receiver of its elicitations.
    pub(crate) fn register(&self) -> (CallRegistration, mpsc::Receiver<CallElicitation>) {
        let (elicitations, receiver) = mpsc::channel(1);
        let mut state = self.lock();
        let number = state.next_number();
        let elicitation_slot = Arc::new(Semaphore::new(1));
        state.calls.insert(number, TrackedCall { id: None, elicitations, elicitation_slot });
        (CallRegistration { calls: self.clone(), number, has_ended: false }, receiver)
    }

    /// Returns the elicitation permit of the call that sent an elicitation. `origin` identifies the
    /// stream on which the elicitation arrived. Waits while several calls may have sent the
    /// elicitation.
    ///
    /// # Errors
    ///
    /// Returns the reason if the elicitation cannot be assigned to a call.
    pub(crate) async fn find_call(
        &self,
        origin: Option<&InboundStreamOrigin>,
    ) -> Result<ElicitationPermit, &'static str> {
        drop(self.0.sending.lock().await);
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let state = self.lock();
            return self
                .acquire_slot(state.calls.values().find(|call| call.id.as_ref() == Some(id)));
        }
        let unclear = self.register_unassigned();
        loop {
            // Registered before the check, so that no notification is missed.
            let changed = self.0.changed.notified();
            if let Some(found) = unclear.try_assign() {
                return found;
            }
            changed.await;
        }
    }

    /// Acquires the elicitation permit of a call.
    fn acquire_slot(&self, call: Option<&TrackedCall>) -> Result<ElicitationPermit, &'static str> {
        let call = call.ok_or("the elicitation belongs to no call in progress")?;
        let turn = call.elicitation_slot.clone().try_acquire_owned();
        let turn = turn.map_err(|_| "an earlier elicitation of its call is unanswered")?;
        // From now on no other unassigned elicitation can belong to this call, so other
        // elicitations may become assignable.
        self.0.changed.notify_waiters();
        Ok(ElicitationPermit { elicitations: call.elicitations.clone(), _slot: turn })
    }

    /// Registers an elicitation that does not identify its call.
    fn register_unassigned(&self) -> UnassignedElicitation {
        let mut state = self.lock();
        let number = state.next_number();
        state.unassigned.insert(number);
        UnassignedElicitation { calls: self.clone(), number }
    }
}

/// An elicitation that does not identify its call.
struct UnassignedElicitation {
    calls: Calls,
    number: u64,
}

impl UnassignedElicitation {
    /// Returns the elicitation permit of the call that sent this elicitation, or the reason why no
    /// call can be assigned. Returns `None` while several calls may have sent the elicitation.
    fn try_assign(&self) -> Option<Result<ElicitationPermit, &'static str>> {
        let state = self.calls.lock();
        if state.has_cancelled {
            return Some(Err("the elicitation may belong to a cancelled call"));
        }
        let mut free =
            state.calls.values().filter(|call| call.elicitation_slot.available_permits() > 0);
        let (first, second) = (free.next(), free.next());
        if second.is_none() {
            // Either every call has an unanswered elicitation, or there is no call.
            return Some(self.calls.acquire_slot(first.or_else(|| state.calls.values().next())));
        }
        // If there are as many unassigned elicitations as calls that may have sent them, all these
        // calls may wait for an answer. In that case no call ends before one of the elicitations is
        // refused.
        let is_stuck = state.unassigned.len() >= 2 + free.count();
        let is_newest = state.unassigned.last() == Some(&self.number);
        (is_stuck && is_newest).then_some(Err("the elicitation may belong to any of several calls"))
    }
}

impl Drop for UnassignedElicitation {
    fn drop(&mut self) {
        self.calls.lock().unassigned.remove(&self.number);
        self.calls.0.changed.notify_waiters();
    }
}

/// The elicitation permit of a call, which may have one unanswered elicitation. Dropping the permit
/// allows the next elicitation.
#[derive(Debug)]
pub(crate) struct ElicitationPermit {
    elicitations: mpsc::Sender<CallElicitation>,
    _slot: OwnedSemaphorePermit,
}

impl ElicitationPermit {
    /// Passes an elicitation to its call and waits for the answer. Returns `None` if the call has
    /// ended or was cancelled.
    pub(crate) async fn pass(&self, question: ElicitedQuestion) -> Option<ElicitationAnswer> {
        let (reply, answer) = oneshot::channel();
        self.elicitations.try_send(CallElicitation { question, reply }).ok()?;
        answer.await.ok()
    }
}

/// The registration of a call in progress. Dropping the registration removes the call.
#[derive(Debug)]
pub(crate) struct CallRegistration {
    calls: Calls,
    number: u64,
    has_ended: bool,
}

impl CallRegistration {
    /// Sends the call and waits for its result. The permit reaches the transport as an extension of
    /// the request, which `rmcp` passes on. Long work on the result counts for `owner`.
    /// Dropping the future cancels the call.
    pub(crate) async fn call(
        mut self,
        peer: &Peer<RoleClient>,
        parameters: CallToolRequestParams,
        permit: SendPermit,
        owner: WorkOwner,
    ) -> Result<CallToolResponse, ServiceError> {
        let mut request = CallToolRequest::new(parameters);
        request.extensions.insert(permit);
        let request = ClientRequest::CallToolRequest(request);
        let mut sent = {
            let _sending = self.calls.0.sending.lock().await;
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_request_with_option(request, options).await?;
            self.set_id(handle.id.clone());
            SentRequest(Some(handle))
        };
        let response = sent.response().await;
        self.has_ended = true;
        match response? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(asked) => Ok(CallToolResponse::InputRequired(asked)),
            ServerResult::CreateTaskResult(task) => Ok(CallToolResponse::Task(task)),
            other => {
                let is_long = tool_result::is_long_undefined(&other);
                let convert = move || tool_result::from_undefined_result(&other);
                let converted = block_in_place_in_turn(owner, is_long, convert).await;
                converted.map(CallToolResponse::Complete).ok_or(ServiceError::UnexpectedResponse)
            }
        }
    }

    fn set_id(&self, id: RequestId) {
        if let Some(call) = self.calls.lock().calls.get_mut(&self.number) {
            call.id = Some(id);
        }
    }
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        let call = state.calls.remove(&self.number);
        let was_sent = call.is_some_and(|call| call.id.is_some());
        state.has_cancelled |= was_sent && !self.has_ended;
        drop(state);
        self.calls.0.changed.notify_waiters();
    }
}

/// A request that was sent. If the value is dropped before the response arrives, the server
/// receives a cancel notification.
struct SentRequest(Option<RequestHandle<RoleClient>>);

impl SentRequest {
    async fn response(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let response = (&mut handle.rx).await;
        self.0 = None;
        response.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        // If there is no runtime, the host is stopping, and the session ends without a
        // notification.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { handle.cancel(Some(CANCEL_REASON.to_owned())).await.ok() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    const FROM_ONE_STREAM: Option<&InboundStreamOrigin> = None;

    fn question() -> ElicitedQuestion {
        ElicitedQuestion { message: "Sure?".into(), schema: serde_json::json!({}) }
    }

    fn in_answer_to(id: i64) -> InboundStreamOrigin {
        InboundStreamOrigin::OutboundRequest(RequestId::Number(id))
    }

    /// Returns a call that was sent.
    fn sent(calls: &Calls, id: i64) -> (CallRegistration, mpsc::Receiver<CallElicitation>) {
        let (place, asks) = calls.register();
        place.set_id(RequestId::Number(id));
        (place, asks)
    }

    fn end(mut place: CallRegistration) {
        place.has_ended = true;
    }

    #[tokio::test]
    async fn elicitation_in_a_response_belongs_to_its_call() {
        let calls = Calls::default();
        let (_first, mut asks_first) = sent(&calls, 1);
        let (second, mut asks_second) = sent(&calls, 2);
        let origin = in_answer_to(2);
        let asking = calls.find_call(Some(&origin)).await.unwrap();
        let (reply, _answer) = oneshot::channel();
        asking.elicitations.try_send(CallElicitation { question: question(), reply }).unwrap();
        assert!(asks_second.try_recv().is_ok() && asks_first.try_recv().is_err());
        drop(asking);
        drop(second);
        let gone = calls.find_call(Some(&origin)).await.unwrap_err();
        assert_eq!(gone, "the elicitation belongs to no call in progress");
        // The end of call 2 does not affect call 1.
        assert!(calls.find_call(Some(&in_answer_to(1))).await.is_ok());
    }

    #[tokio::test]
    async fn elicitation_on_one_stream_belongs_to_the_only_call() {
        let calls = Calls::default();
        assert!(calls.find_call(FROM_ONE_STREAM).await.is_err());
        let (first, _asks) = sent(&calls, 1);
        assert!(calls.find_call(FROM_ONE_STREAM).await.is_ok());
        assert!(calls.find_call(Some(&InboundStreamOrigin::Unassociated)).await.is_ok());
        let (second, _asks) = sent(&calls, 2);
        let mut whose = pin!(calls.find_call(FROM_ONE_STREAM));
        assert!(
            whose.as_mut().now_or_never().is_none(),
            "the elicitation may belong to either call"
        );
        end(first);
        assert!(whose.await.is_ok());
        end(second);
        assert!(calls.are_idle());
    }

    #[tokio::test]
    async fn elicitation_is_not_assigned_to_a_call_with_an_unanswered_elicitation() {
        let calls = Calls::default();
        let (_first, _asks) = sent(&calls, 1);
        let (_second, mut asks) = sent(&calls, 2);
        let mut whose = pin!(calls.find_call(FROM_ONE_STREAM));
        assert!(
            whose.as_mut().now_or_never().is_none(),
            "the elicitation may belong to either call"
        );
        let _asked = calls.find_call(Some(&in_answer_to(1))).await.unwrap();
        let asking = whose.await.unwrap();
        let (reply, _answer) = oneshot::channel();
        asking.elicitations.try_send(CallElicitation { question: question(), reply }).unwrap();
        assert!(asks.try_recv().is_ok());
    }

    #[tokio::test]
    async fn newest_elicitation_is_refused_if_all_calls_may_wait() {
        let calls = Calls::default();
        let (first, _asks) = sent(&calls, 1);
        let (second, _asks) = sent(&calls, 2);
        let mut whose = pin!(calls.find_call(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none());
        let several = calls.find_call(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(several, "the elicitation may belong to any of several calls");
        assert!(whose.as_mut().now_or_never().is_none(), "the older elicitation still waits");
        drop(second);
        assert_eq!(whose.await.unwrap_err(), "the elicitation may belong to a cancelled call");
        end(first);
    }

    #[tokio::test]
    async fn cancelled_call_blocks_unassigned_elicitations() {
        let calls = Calls::default();
        let (first, _asks) = sent(&calls, 1);
        drop(first);
        let (_second, _asks) = sent(&calls, 2);
        let unclear = calls.find_call(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(unclear, "the elicitation may belong to a cancelled call");
        assert!(calls.have_cancelled());
        assert!(calls.find_call(Some(&in_answer_to(2))).await.is_ok());
        // A call that was not sent cannot have sent an elicitation.
        let calls = Calls::default();
        drop(calls.register());
        assert!(calls.are_idle());
    }

    #[test]
    fn unreadable_message_belongs_to_the_only_request_that_may_have_it() {
        let calls = Calls::default();
        let response_to = || calls.lock().response_to();
        assert_eq!(response_to(), ResponseTo::OtherRequest);
        let (first, _asks) = sent(&calls, 1);
        assert_eq!(response_to(), ResponseTo::OnlyCall);
        calls.lock().open_lists += 1;
        assert_eq!(response_to(), ResponseTo::Unknown, "it may be the list");
        calls.lock().open_lists -= 1;
        let (second, _asks) = sent(&calls, 2);
        assert_eq!(response_to(), ResponseTo::Unknown, "it may be the result of either call");
        end(first);
        assert_eq!(response_to(), ResponseTo::OnlyCall);
        end(second);
        let (cancelled, _asks) = sent(&calls, 3);
        drop(cancelled);
        assert_eq!(response_to(), ResponseTo::Unknown, "it may be the result of a cancelled call");
        let (_third, _asks) = sent(&calls, 4);
        assert_eq!(response_to(), ResponseTo::Unknown, "it may be the result of a cancelled call");
    }

    #[tokio::test]
    async fn second_unanswered_elicitation_of_a_call_is_refused() {
        let calls = Calls::default();
        let (_place, mut asks) = sent(&calls, 1);
        let first = calls.find_call(FROM_ONE_STREAM).await.unwrap();
        let second = calls.find_call(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(second, "an earlier elicitation of its call is unanswered");
        let asked = first.pass(question());
        let answered = async {
            let CallElicitation { reply, .. } = asks.recv().await.unwrap();
            let (answer, permit) =
                (Err(ErrorData::internal_error("no", None)), SendPermit::default());
            reply.send(ElicitationAnswer { answer, permit }).unwrap();
        };
        let (answered, ()) = tokio::join!(asked, answered);
        assert_eq!(answered.unwrap().answer.unwrap_err().message, "no");
        drop(first);
        let third = calls.find_call(FROM_ONE_STREAM).await.unwrap();
        drop(asks);
        assert!(third.pass(question()).await.is_none(), "the call has ended");
    }
}
