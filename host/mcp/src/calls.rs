//! The calls in progress on a session, and the assignment of elicitations to them.
//!
//! Over HTTP an elicitation arrives in the response to its call, and `rmcp` reports the id of that call. A stdio server
//! sends all messages in one stream. There an elicitation can be assigned to a call only if no other call can have sent
//! it. A call with an unanswered elicitation sends no other. A cancelled call may still send one, since the server may
//! still execute it. An elicitation that several calls may have sent waits until only one of them is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientJsonRpcMessage, ClientRequest,
    ElicitResult, RequestId, ServerResult,
};
use rmcp::service::{InboundStreamOrigin, PeerRequestOptions, RequestHandle};
use rmcp::{ErrorData, Peer, RoleClient, ServiceError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wattle_graph::elicitation::ElicitedQuestion;

use crate::outcome;
use crate::permit::Permit;

/// The reason in the `notifications/cancelled` message.
const GIVEN_UP: &str = "the caller no longer waits for the result";

/// The answer to an elicitation, and the condition under which the answer may be sent.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answer: Result<ElicitResult, ErrorData>,
    pub(crate) permit: Permit,
}

/// Sender for the answer to an elicitation.
pub(crate) type Reply = oneshot::Sender<Answered>;

/// An elicitation during a call.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: ElicitedQuestion,
    pub(crate) reply: Reply,
}

/// The calls in progress on a session. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    /// Locked while a call is sent. The id of the call is known only afterwards, and an elicitation of the call may
    /// arrive earlier.
    sending: tokio::sync::Mutex<()>,
    /// Notified when a call ends or sends an elicitation, and when an unassigned elicitation is no longer pending.
    changed: Notify,
    /// Cancelled when the connection to the server is lost.
    lost: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<u64, Call>,
    /// Numbers of the elicitations that are not yet assigned to a call, in the order of their arrival.
    unclear: BTreeSet<u64>,
    /// Permits of answers that are being sent, by the id of the elicitation.
    answers: HashMap<RequestId, Permit>,
    /// Number of the latest call or elicitation.
    next: u64,
    /// Whether a call was cancelled before its end.
    has_given_up: bool,
    /// Whether the session is reserved for a held call.
    is_reserved: bool,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[derive(Debug)]
struct Call {
    /// Request id; `None` until the call is sent.
    id: Option<RequestId>,
    tell: mpsc::Sender<Asked>,
    /// Semaphore with one permit, which the unanswered elicitation of the call holds.
    asking: Arc<Semaphore>,
}

impl Calls {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the condition under which the answer to an elicitation may be sent.
    pub(crate) fn answer_under(&self, question: RequestId, permit: Permit) {
        self.lock().answers.insert(question, permit);
    }

    /// Returns the permit of an outgoing message: the condition under which it may be sent. Only calls and elicitation
    /// answers have one; other messages are always permitted. Removes the permit of an answer.
    pub(crate) fn permit_of(&self, message: &ClientJsonRpcMessage) -> Permit {
        let permit = match message {
            ClientJsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::CallToolRequest(call) => call.extensions.get::<Permit>().cloned(),
                _ => None,
            },
            ClientJsonRpcMessage::Response(answer) => self.lock().answers.remove(&answer.id),
            ClientJsonRpcMessage::Error(refusal) => {
                refusal.id.as_ref().and_then(|id| self.lock().answers.remove(id))
            }
            ClientJsonRpcMessage::Notification(_) => None,
        };
        permit.unwrap_or_default()
    }

    /// Returns true if no call is in progress and none was cancelled, so that no call can send an elicitation.
    pub(crate) fn are_clear(&self) -> bool {
        let state = self.lock();
        state.calls.is_empty() && !state.has_given_up
    }

    /// Returns true if a call was cancelled before its end. The server may still send an elicitation of that call.
    pub(crate) fn have_given_up(&self) -> bool {
        self.lock().has_given_up
    }

    /// Reserves the session for one held call. Other calls then get another session.
    pub(crate) fn reserve(&self) {
        self.lock().is_reserved = true;
    }

    /// Ends the reservation. Called when the held call has ended.
    pub(crate) fn share(&self) {
        self.lock().is_reserved = false;
    }

    pub(crate) fn are_reserved(&self) -> bool {
        self.lock().is_reserved
    }

    /// Returns the token that is cancelled when the connection to the server is lost.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.0.lost
    }

    /// Registers a call. Returns its entry and the receiver of its elicitations.
    pub(crate) fn enter(&self) -> (Place, mpsc::Receiver<Asked>) {
        let (tell, asks) = mpsc::channel(1);
        let mut state = self.lock();
        let number = state.number();
        let asking = Arc::new(Semaphore::new(1));
        state.calls.insert(number, Call { id: None, tell, asking });
        (Place { calls: self.clone(), number, has_ended: false }, asks)
    }

    /// Returns the elicitation permit of the call that sent an elicitation. `origin` identifies the stream on which the
    /// elicitation arrived. Waits while several calls may have sent it.
    ///
    /// # Errors
    ///
    /// Returns the reason if the elicitation cannot be assigned to a call.
    pub(crate) async fn whose(
        &self,
        origin: Option<&InboundStreamOrigin>,
    ) -> Result<Asking, &'static str> {
        drop(self.0.sending.lock().await);
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let state = self.lock();
            return self.asking(state.calls.values().find(|call| call.id.as_ref() == Some(id)));
        }
        let unclear = self.unclear();
        loop {
            // Registered before the check, so that no notification is missed.
            let changed = self.0.changed.notified();
            if let Some(found) = unclear.look() {
                return found;
            }
            changed.await;
        }
    }

    /// Acquires the elicitation permit of a call.
    fn asking(&self, call: Option<&Call>) -> Result<Asking, &'static str> {
        let call = call.ok_or("it belongs to no call in progress")?;
        let turn = call.asking.clone().try_acquire_owned();
        let turn = turn.map_err(|_| "an earlier elicitation of its call is unanswered")?;
        // No other unassigned elicitation can belong to this call now.
        self.0.changed.notify_waiters();
        Ok(Asking { tell: call.tell.clone(), _turn: turn })
    }

    /// Registers an elicitation that does not identify its call.
    fn unclear(&self) -> Unclear {
        let mut state = self.lock();
        let number = state.number();
        state.unclear.insert(number);
        Unclear { calls: self.clone(), number }
    }
}

/// An elicitation that does not identify its call.
struct Unclear {
    calls: Calls,
    number: u64,
}

impl Unclear {
    /// Returns the elicitation permit of the call that sent this elicitation, or the reason why no call can be
    /// assigned. Returns `None` while several calls may have sent it.
    fn look(&self) -> Option<Result<Asking, &'static str>> {
        let state = self.calls.lock();
        if state.has_given_up {
            return Some(Err("it may belong to a cancelled call"));
        }
        let mut free = state.calls.values().filter(|call| call.asking.available_permits() > 0);
        let (first, second) = (free.next(), free.next());
        if second.is_none() {
            // Either every call has an unanswered elicitation, or there is no call.
            return Some(self.calls.asking(first.or_else(|| state.calls.values().next())));
        }
        // If there are as many unassigned elicitations as calls that may have sent them, all these calls may wait for
        // an answer. None of them ends before one elicitation is refused.
        let is_stuck = state.unclear.len() >= 2 + free.count();
        let is_newest = state.unclear.last() == Some(&self.number);
        (is_stuck && is_newest).then_some(Err("it may belong to any of several calls"))
    }
}

impl Drop for Unclear {
    fn drop(&mut self) {
        self.calls.lock().unclear.remove(&self.number);
        self.calls.0.changed.notify_waiters();
    }
}

/// The elicitation permit of a call, which may have one unanswered elicitation. Dropping the permit allows the next
/// one.
#[derive(Debug)]
pub(crate) struct Asking {
    tell: mpsc::Sender<Asked>,
    _turn: OwnedSemaphorePermit,
}

impl Asking {
    /// Passes an elicitation to its call and waits for the answer. Returns `None` if the call has ended or was
    /// cancelled.
    pub(crate) async fn ask(&self, question: ElicitedQuestion) -> Option<Answered> {
        let (reply, answer) = oneshot::channel();
        self.tell.try_send(Asked { question, reply }).ok()?;
        answer.await.ok()
    }
}

/// The registration of a call in progress. Dropping it removes the call.
#[derive(Debug)]
pub(crate) struct Place {
    calls: Calls,
    number: u64,
    has_ended: bool,
}

impl Place {
    /// Sends the call and waits for its result. The request carries the permit through `rmcp` to the transport.
    /// Dropping the future cancels the call.
    pub(crate) async fn call(
        mut self,
        peer: &Peer<RoleClient>,
        parameters: CallToolRequestParams,
        permit: Permit,
    ) -> Result<CallToolResponse, ServiceError> {
        let mut request = CallToolRequest::new(parameters);
        request.extensions.insert(permit);
        let request = ClientRequest::CallToolRequest(request);
        let mut sent = {
            let _sending = self.calls.0.sending.lock().await;
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_request_with_option(request, options).await?;
            self.sent(handle.id.clone());
            Sent(Some(handle))
        };
        let answer = sent.answer().await;
        self.has_ended = true;
        match answer? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(asked) => Ok(CallToolResponse::InputRequired(asked)),
            ServerResult::CreateTaskResult(task) => Ok(CallToolResponse::Task(task)),
            other => outcome::of_another_form(&other)
                .map(CallToolResponse::Complete)
                .ok_or(ServiceError::UnexpectedResponse),
        }
    }

    fn sent(&self, id: RequestId) {
        if let Some(call) = self.calls.lock().calls.get_mut(&self.number) {
            call.id = Some(id);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        let call = state.calls.remove(&self.number);
        let was_sent = call.is_some_and(|call| call.id.is_some());
        state.has_given_up |= was_sent && !self.has_ended;
        drop(state);
        self.calls.0.changed.notify_waiters();
    }
}

/// A request that was sent. If it is dropped before the response, the server receives a cancel notification.
struct Sent(Option<RequestHandle<RoleClient>>);

impl Sent {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        // Without a runtime, the session ends with the host.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { handle.cancel(Some(GIVEN_UP.to_owned())).await.ok() });
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
    fn sent(calls: &Calls, id: i64) -> (Place, mpsc::Receiver<Asked>) {
        let (place, asks) = calls.enter();
        place.sent(RequestId::Number(id));
        (place, asks)
    }

    fn end(mut place: Place) {
        place.has_ended = true;
    }

    #[tokio::test]
    async fn elicitation_in_a_response_belongs_to_its_call() {
        let calls = Calls::default();
        let (_first, mut asks_first) = sent(&calls, 1);
        let (second, mut asks_second) = sent(&calls, 2);
        let origin = in_answer_to(2);
        let asking = calls.whose(Some(&origin)).await.unwrap();
        let (reply, _answer) = oneshot::channel();
        asking.tell.try_send(Asked { question: question(), reply }).unwrap();
        assert!(asks_second.try_recv().is_ok() && asks_first.try_recv().is_err());
        drop(asking);
        drop(second);
        let gone = calls.whose(Some(&origin)).await.unwrap_err();
        assert_eq!(gone, "it belongs to no call in progress");
        // The other call is not affected.
        assert!(calls.whose(Some(&in_answer_to(1))).await.is_ok());
    }

    #[tokio::test]
    async fn elicitation_on_one_stream_belongs_to_the_only_call() {
        let calls = Calls::default();
        assert!(calls.whose(FROM_ONE_STREAM).await.is_err());
        let (first, _asks) = sent(&calls, 1);
        assert!(calls.whose(FROM_ONE_STREAM).await.is_ok());
        assert!(calls.whose(Some(&InboundStreamOrigin::Unassociated)).await.is_ok());
        let (second, _asks) = sent(&calls, 2);
        let mut whose = pin!(calls.whose(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none(), "it may belong to either call");
        end(first);
        assert!(whose.await.is_ok());
        end(second);
        assert!(calls.are_clear());
    }

    #[tokio::test]
    async fn call_with_an_unanswered_elicitation_sends_no_other() {
        let calls = Calls::default();
        let (_first, _asks) = sent(&calls, 1);
        let (_second, mut asks) = sent(&calls, 2);
        let mut whose = pin!(calls.whose(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none(), "it may belong to either call");
        let _asked = calls.whose(Some(&in_answer_to(1))).await.unwrap();
        let asking = whose.await.unwrap();
        let (reply, _answer) = oneshot::channel();
        asking.tell.try_send(Asked { question: question(), reply }).unwrap();
        assert!(asks.try_recv().is_ok());
    }

    #[tokio::test]
    async fn newest_of_as_many_elicitations_as_calls_is_refused() {
        let calls = Calls::default();
        let (first, _asks) = sent(&calls, 1);
        let (second, _asks) = sent(&calls, 2);
        let mut whose = pin!(calls.whose(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none());
        let several = calls.whose(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(several, "it may belong to any of several calls");
        assert!(whose.as_mut().now_or_never().is_none(), "the older elicitation still waits");
        drop(second);
        assert_eq!(whose.await.unwrap_err(), "it may belong to a cancelled call");
        end(first);
    }

    #[tokio::test]
    async fn cancelled_call_blocks_unassigned_elicitations() {
        let calls = Calls::default();
        let (first, _asks) = sent(&calls, 1);
        drop(first);
        let (_second, _asks) = sent(&calls, 2);
        let unclear = calls.whose(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(unclear, "it may belong to a cancelled call");
        assert!(calls.have_given_up());
        assert!(calls.whose(Some(&in_answer_to(2))).await.is_ok());
        // A call that was not sent cannot have sent an elicitation.
        let calls = Calls::default();
        drop(calls.enter());
        assert!(calls.are_clear());
    }

    #[tokio::test]
    async fn call_has_one_unanswered_elicitation() {
        let calls = Calls::default();
        let (_place, mut asks) = sent(&calls, 1);
        let first = calls.whose(FROM_ONE_STREAM).await.unwrap();
        let second = calls.whose(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(second, "an earlier elicitation of its call is unanswered");
        let asked = first.ask(question());
        let answered = async {
            let Asked { reply, .. } = asks.recv().await.unwrap();
            let (answer, permit) = (Err(ErrorData::internal_error("no", None)), Permit::default());
            reply.send(Answered { answer, permit }).unwrap();
        };
        let (answered, ()) = tokio::join!(asked, answered);
        assert_eq!(answered.unwrap().answer.unwrap_err().message, "no");
        drop(first);
        let third = calls.whose(FROM_ONE_STREAM).await.unwrap();
        drop(asks);
        assert!(third.ask(question()).await.is_none(), "the call has ended");
    }
}
