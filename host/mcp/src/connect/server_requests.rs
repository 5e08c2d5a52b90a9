//! Bounds the requests of a server to this host.

use std::future::ready;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Semaphore;

use crate::calls::Calls;
use crate::normalize::Normalizer;

/// Maximum responses that wait to be sent. A server has fewer requests open than it has calls.
const MAX_UNSENT_RESPONSES: usize = 64;

/// Maximum bytes of the id of a request. The response repeats the id.
const MAX_ID_BYTES: usize = 256;

/// A transport that drops responses to a server that sends requests without reading the responses.
/// `rmcp` keeps each response until it is sent, however many there are.
pub(super) struct BoundedRequests<T> {
    transport: T,
    /// One permit for each response that may wait.
    slots: Arc<Semaphore>,
    normalizer: Normalizer,
    /// Has the permits of the responses.
    calls: Calls,
}

impl<T> BoundedRequests<T> {
    pub(super) fn new(transport: T, normalizer: Normalizer, calls: Calls) -> Self {
        let slots = Arc::new(Semaphore::new(MAX_UNSENT_RESPONSES));
        Self { transport, slots, normalizer, calls }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for BoundedRequests<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_response = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let slot = is_response.then(|| self.slots.clone().try_acquire_owned());
        let sent: BoxFuture<'static, Result<(), Self::Error>> = if let Some(Err(_)) = &slot {
            self.normalizer.note("a request gets no response: the server reads none");
            // The transport takes the permit only of a message that it gets.
            drop(self.calls.take_permit(&message));
            ready(Ok(())).boxed()
        } else {
            self.transport.send(message).boxed()
        };
        async move {
            let _slot = slot;
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.receive().await?;
            if !has_long_id(&message) {
                return Some(message);
            }
            let note = format!("a request whose id has more than {MAX_ID_BYTES} bytes is left out");
            self.normalizer.note(&note);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

fn has_long_id(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    matches!(&request.id, RequestId::String(id) if id.len() > MAX_ID_BYTES)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::pending;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rmcp::ErrorData;
    use rmcp::model::ClientJsonRpcMessage;
    use serde_json::json;

    use super::*;
    use crate::permit::SendPermit;

    /// A transport to a server that reads nothing, with the messages of the server.
    #[derive(Default)]
    struct Unread {
        sent: Arc<AtomicUsize>,
        messages: VecDeque<RxJsonRpcMessage<RoleClient>>,
    }

    impl Transport<RoleClient> for Unread {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            self.sent.fetch_add(1, Ordering::SeqCst);
            pending()
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            self.messages.pop_front()
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    fn refusal(id: Option<RequestId>) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::error(ErrorData::internal_error("no", None), id)
    }

    fn bounded(server: Unread, calls: &Calls) -> BoundedRequests<Unread> {
        BoundedRequests::new(server, Normalizer::new("graph"), calls.clone())
    }

    #[tokio::test]
    async fn responses_that_are_not_read_are_dropped() {
        let server = Unread::default();
        let sent = server.sent.clone();
        let count = || sent.load(Ordering::SeqCst);
        let calls = Calls::default();
        let mut bounded = bounded(server, &calls);
        let mut waiting = Vec::new();
        for _ in 0..MAX_UNSENT_RESPONSES {
            waiting.push(bounded.send(refusal(None)).boxed());
        }
        let id = RequestId::Number(7);
        let permit = SendPermit::default();
        permit.revoke();
        calls.set_answer_permit(id.clone(), permit);
        bounded.send(refusal(Some(id.clone()))).await.unwrap();
        assert_eq!(count(), MAX_UNSENT_RESPONSES);
        let next = calls.take_permit(&refusal(Some(id)));
        assert!(next.send(pin!(async {})).await.is_ok(), "the permit of the response is taken");
        waiting.pop();
        waiting.push(bounded.send(refusal(None)).boxed());
        assert_eq!(count(), MAX_UNSENT_RESPONSES + 1);
    }

    #[tokio::test]
    async fn requests_with_long_ids_are_left_out() {
        let request = |id: &str| -> RxJsonRpcMessage<RoleClient> {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            serde_json::from_value(request).unwrap()
        };
        let messages = [request(&"x".repeat(MAX_ID_BYTES + 1)), request("a")].into();
        let server = Unread { messages, ..Unread::default() };
        let mut bounded = bounded(server, &Calls::default());
        let Some(JsonRpcMessage::Request(read)) = bounded.receive().await else { panic!("none") };
        assert_eq!(read.id, RequestId::String("a".into()));
        assert!(bounded.receive().await.is_none());
    }
}
