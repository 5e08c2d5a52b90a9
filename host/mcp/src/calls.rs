//! The calls under way on a session, and which of them a question of the server belongs to.
//!
//! Over HTTP a question comes in the answer to its call, and the library says so. A program has one stream for all of
//! its messages: there a question belongs to a call for sure only if no other call may ask, and if no call before it
//! was given up, since its server may go on with that one. A call whose question has no answer asks nothing else. A
//! question that comes beside several calls waits for the others to end.

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

/// The reason in the notification that cancels a call.
const GIVEN_UP: &str = "nobody waits for the answer any more";

/// The answer to a question, and what it may leave under.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answer: Result<ElicitResult, ErrorData>,
    pub(crate) permit: Permit,
}

/// Where the answer to a question goes.
pub(crate) type Reply = oneshot::Sender<Answered>;

/// A question of a server in the middle of a call.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: ElicitedQuestion,
    pub(crate) reply: Reply,
}

/// The calls under way on a session; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    /// Held while a call is sent: its id is known only then, and the question may be quicker.
    sending: tokio::sync::Mutex<()>,
    /// Told when a call has ended or asks, or a question waits no longer for that.
    changed: Notify,
    /// Cancelled once the way to the server is gone.
    lost: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<u64, Call>,
    /// Questions that may belong to any of several calls, in the order in which they came.
    unclear: BTreeSet<u64>,
    /// What answers that are on their way may leave under, by the ids of their questions.
    answers: HashMap<RequestId, Permit>,
    /// The number of the next call or question.
    next: u64,
    /// A call was given up before its end.
    has_given_up: bool,
    /// The session is reserved for a call that waits for a person, until that has ended.
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
    /// Under which it was sent, once it was.
    id: Option<RequestId>,
    tell: mpsc::Sender<Asked>,
    /// Taken by a question that has no answer: one call has one at a time.
    asking: Arc<Semaphore>,
}

impl Calls {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the answer to a question of the server may leave under.
    pub(crate) fn answer_under(&self, question: RequestId, permit: Permit) {
        self.lock().answers.insert(question, permit);
    }

    /// What a message may leave under. Asked once for each answer.
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

    /// Whether there is none, and none was given up: then no question can come.
    pub(crate) fn are_clear(&self) -> bool {
        let state = self.lock();
        state.calls.is_empty() && !state.has_given_up
    }

    /// Whether a call was given up before its end, so that a question may be one of that.
    pub(crate) fn have_given_up(&self) -> bool {
        self.lock().has_given_up
    }

    /// Reserves the session for a call that waits for a person.
    pub(crate) fn reserve(&self) {
        self.lock().is_reserved = true;
    }

    /// That call has ended: others may share its session again.
    pub(crate) fn share(&self) {
        self.lock().is_reserved = false;
    }

    pub(crate) fn are_reserved(&self) -> bool {
        self.lock().is_reserved
    }

    /// Cancelled once the way to the server is gone, so that no answer reaches it.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.0.lost
    }

    /// A place for one more call, and its questions.
    pub(crate) fn enter(&self) -> (Place, mpsc::Receiver<Asked>) {
        let (tell, asks) = mpsc::channel(1);
        let mut state = self.lock();
        let number = state.number();
        let asking = Arc::new(Semaphore::new(1));
        state.calls.insert(number, Call { id: None, tell, asking });
        (Place { calls: self.clone(), number, has_ended: false }, asks)
    }

    /// The call that a question belongs to, which came as `origin` says. Waits as long as that is not clear and may
    /// become so.
    ///
    /// # Errors
    ///
    /// Why there is none.
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
            // Before the look, so that no change in between is missed.
            let changed = self.0.changed.notified();
            if let Some(found) = unclear.look() {
                return found;
            }
            changed.await;
        }
    }

    /// The turn of a question in a call.
    fn asking(&self, call: Option<&Call>) -> Result<Asking, &'static str> {
        let call = call.ok_or("it belongs to no call that is under way")?;
        let turn = call.asking.clone().try_acquire_owned();
        let turn = turn.map_err(|_| "an earlier question of its call has no answer yet")?;
        // A question that is not clear is none of this call.
        self.0.changed.notify_waiters();
        Ok(Asking { tell: call.tell.clone(), _turn: turn })
    }

    /// Takes note of a question that does not say which call it belongs to.
    fn unclear(&self) -> Unclear {
        let mut state = self.lock();
        let number = state.number();
        state.unclear.insert(number);
        Unclear { calls: self.clone(), number }
    }
}

/// A question that does not say which call it belongs to.
struct Unclear {
    calls: Calls,
    number: u64,
}

impl Unclear {
    /// The call that it belongs to, or why there is none; `None` as long as it may belong to several.
    fn look(&self) -> Option<Result<Asking, &'static str>> {
        let state = self.calls.lock();
        if state.has_given_up {
            return Some(Err("it may belong to a call that was given up"));
        }
        let mut free = state.calls.values().filter(|call| call.asking.available_permits() > 0);
        let (first, second) = (free.next(), free.next());
        if second.is_none() {
            // Each call waits for an answer, or there is none.
            return Some(self.calls.asking(first.or_else(|| state.calls.values().next())));
        }
        // If as many questions wait as calls may ask, none of these may end before one is refused.
        let is_stuck = state.unclear.len() >= 2 + free.count();
        let is_newest = state.unclear.last() == Some(&self.number);
        (is_stuck && is_newest).then_some(Err("it may belong to any of several calls at once"))
    }
}

impl Drop for Unclear {
    fn drop(&mut self) {
        self.calls.lock().unclear.remove(&self.number);
        self.calls.0.changed.notify_waiters();
    }
}

/// A call that is asked in. The next question has its turn when this is dropped.
#[derive(Debug)]
pub(crate) struct Asking {
    tell: mpsc::Sender<Asked>,
    _turn: OwnedSemaphorePermit,
}

impl Asking {
    /// Asks, and waits for the answer. `None` if nobody gives one: the call has ended or was given up.
    pub(crate) async fn ask(&self, question: ElicitedQuestion) -> Option<Answered> {
        let (reply, answer) = oneshot::channel();
        self.tell.try_send(Asked { question, reply }).ok()?;
        answer.await.ok()
    }
}

/// The place of a call among those under way.
#[derive(Debug)]
pub(crate) struct Place {
    calls: Calls,
    number: u64,
    has_ended: bool,
}

impl Place {
    /// Makes the call under a permit, which goes along with it through the library; it is called off if this is
    /// dropped before its end.
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

/// A call that was sent. If it is dropped before its end, the server gets a notification that cancels it.
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
        // Without a runtime the session ends with the host.
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

    /// A call that was sent.
    fn sent(calls: &Calls, id: i64) -> (Place, mpsc::Receiver<Asked>) {
        let (place, asks) = calls.enter();
        place.sent(RequestId::Number(id));
        (place, asks)
    }

    fn end(mut place: Place) {
        place.has_ended = true;
    }

    #[tokio::test]
    async fn a_question_in_the_answer_to_a_call_belongs_to_that() {
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
        assert_eq!(gone, "it belongs to no call that is under way");
        // The first is known all the same.
        assert!(calls.whose(Some(&in_answer_to(1))).await.is_ok());
    }

    #[tokio::test]
    async fn on_one_stream_a_question_belongs_to_a_call_that_is_alone() {
        let calls = Calls::default();
        assert!(calls.whose(FROM_ONE_STREAM).await.is_err());
        let (first, _asks) = sent(&calls, 1);
        assert!(calls.whose(FROM_ONE_STREAM).await.is_ok());
        assert!(calls.whose(Some(&InboundStreamOrigin::Unassociated)).await.is_ok());
        let (second, _asks) = sent(&calls, 2);
        let mut whose = pin!(calls.whose(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none(), "it may belong to either");
        end(first);
        assert!(whose.await.is_ok());
        end(second);
        assert!(calls.are_clear());
    }

    #[tokio::test]
    async fn a_call_that_waits_for_an_answer_asks_nothing_else() {
        let calls = Calls::default();
        let (_first, _asks) = sent(&calls, 1);
        let (_second, mut asks) = sent(&calls, 2);
        let mut whose = pin!(calls.whose(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none(), "it may belong to either");
        let _asked = calls.whose(Some(&in_answer_to(1))).await.unwrap();
        let asking = whose.await.unwrap();
        let (reply, _answer) = oneshot::channel();
        asking.tell.try_send(Asked { question: question(), reply }).unwrap();
        assert!(asks.try_recv().is_ok());
    }

    #[tokio::test]
    async fn of_as_many_questions_as_calls_the_newest_is_refused() {
        let calls = Calls::default();
        let (first, _asks) = sent(&calls, 1);
        let (second, _asks) = sent(&calls, 2);
        let mut whose = pin!(calls.whose(FROM_ONE_STREAM));
        assert!(whose.as_mut().now_or_never().is_none());
        let several = calls.whose(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(several, "it may belong to any of several calls at once");
        assert!(whose.as_mut().now_or_never().is_none(), "it waits all the same");
        drop(second);
        assert_eq!(whose.await.unwrap_err(), "it may belong to a call that was given up");
        end(first);
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_takes_the_questions_of_its_session_with_it() {
        let calls = Calls::default();
        let (first, _asks) = sent(&calls, 1);
        drop(first);
        let (_second, _asks) = sent(&calls, 2);
        let unclear = calls.whose(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(unclear, "it may belong to a call that was given up");
        assert!(calls.have_given_up());
        assert!(calls.whose(Some(&in_answer_to(2))).await.is_ok());
        // Nobody can ask in a call that was not sent.
        let calls = Calls::default();
        drop(calls.enter());
        assert!(calls.are_clear());
    }

    #[tokio::test]
    async fn a_call_has_one_question_at_a_time() {
        let calls = Calls::default();
        let (_place, mut asks) = sent(&calls, 1);
        let first = calls.whose(FROM_ONE_STREAM).await.unwrap();
        let second = calls.whose(FROM_ONE_STREAM).await.unwrap_err();
        assert_eq!(second, "an earlier question of its call has no answer yet");
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
