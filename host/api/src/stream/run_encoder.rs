//! Encoders that need a run from its first event, because a message can depend on earlier events.

use std::collections::VecDeque;
use std::future::Future;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;
use wattle_project::projection::{EventState, Projection};
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Store;
use wattle_run::ports::store::RunRecord;

use crate::projection::{is_large_state, is_long_event};
use crate::response::join_large;
use crate::stream::client_tail::{ClientTail, ClientTailItem};

/// The encoder of a wire format.
pub(super) trait RunEncoder: Send + 'static {
    /// Encodes an event as messages. Called for each event of the run, in order.
    fn encode(&mut self, event: &Event) -> impl Future<Output = Vec<Bytes>> + Send;

    /// Returns true after the last message. Called after each event.
    fn is_over(&self) -> bool;

    /// Returns the last messages of a stream whose log ends without the end of the run: the run
    /// never started, its thread was deleted, or the host shuts down.
    fn log_ended(&mut self) -> impl Future<Output = Vec<Bytes>> + Send {
        std::future::ready(Vec::new())
    }

    /// Returns the last messages of a stream whose log cannot be read. With `None`, the connection
    /// is aborted, so that the client does not mistake the end of the stream for the end of the
    /// run.
    fn read_failed(&mut self, failure: &Failure) -> Option<Vec<Bytes>>;

    /// Frees what the encoder can compute again. Called after an interval without an event.
    fn release(&mut self) {}

    /// Returns the heartbeat, which is sent after an interval without an event.
    fn heartbeat(&self) -> Bytes {
        HEARTBEAT_COMMENT
    }
}

/// Returns the record of a run that ended before it started. Returns `None` for any other run.
///
/// # Errors
///
/// Errors of the store.
pub(super) async fn find_unstarted(
    store: &dyn Store,
    run: &RunId,
) -> Result<Option<RunRecord>, Failure> {
    let record = store.run(run).await?;
    Ok(record.filter(|record| !record.has_started() && record.ended_ms.is_some()))
}

/// Applies an event to a projection, and encodes the results as messages. A long event, or one with
/// a large state, is encoded in a turn of the owner.
pub(super) async fn encode_event<P, M>(
    owner: CallerId,
    projection: &mut P,
    event: &Event,
    state: EventState,
) -> Vec<Bytes>
where
    P: Projection<Output = Vec<M>> + Send,
    M: Serialize,
{
    let is_long = is_long_event(event) || state.checkpoint.as_ref().is_some_and(is_large_state);
    let encode = || -> Vec<Bytes> {
        projection.apply(event, &state).iter().map(super::json_message).collect()
    };
    block_in_place_in_turn(owner, is_long, encode).await
}

/// A comment, which clients of server-sent events ignore.
pub(super) const HEARTBEAT_COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// Encodes the events of a tail as the body of a response. `pending` contains messages to send
/// before the first event.
pub(super) fn encode_stream(
    tail: ClientTail,
    encoder: impl RunEncoder,
    pending: VecDeque<Bytes>,
) -> Body {
    let encoded = EncodedStream { tail, encoder, pending, has_ended: false };
    Body::from_stream(stream::unfold(encoded, |mut encoded| async move {
        let message = encoded.next().await?;
        Some((message, encoded))
    }))
}

struct EncodedStream<E> {
    tail: ClientTail,
    encoder: E,
    /// Encoded messages that were not sent yet.
    pending: VecDeque<Bytes>,
    /// True after the last item of the tail.
    has_ended: bool,
}

impl<E: RunEncoder> EncodedStream<E> {
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if let Some(message) = self.pending.pop_front() {
                return Some(Ok(message));
            }
            if self.has_ended || self.encoder.is_over() {
                return None;
            }
            match self.tail.next().await {
                Some(ClientTailItem::Event(event)) => {
                    self.pending.extend(join_large(self.encoder.encode(&event).await));
                }
                Some(ClientTailItem::Heartbeat) => {
                    self.encoder.release();
                    return Some(Ok(self.encoder.heartbeat()));
                }
                None => {
                    self.has_ended = true;
                    self.pending.extend(self.encoder.log_ended().await);
                }
                Some(ClientTailItem::ReadFailed(failure)) => {
                    self.has_ended = true;
                    match self.encoder.read_failed(&failure) {
                        Some(messages) => self.pending.extend(messages),
                        None => return Some(Err(failure)),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use serde_json::{Value, json};

    use super::*;

    /// A projection that waits for another task of the runtime.
    struct WaitsForTask;

    impl Projection for WaitsForTask {
        type Output = Vec<Value>;

        fn apply(&mut self, _event: &Event, _state: &EventState) -> Vec<Value> {
            let (sender, receiver) = channel();
            tokio::spawn(async move { sender.send(()) });
            receiver.recv().unwrap();
            vec![json!(1)]
        }
    }

    /// The runtime has one worker thread. Encoding the event waits for another task, so the test
    /// hangs if the encoder blocks the worker thread.
    #[test]
    fn long_event_does_not_block_other_tasks() {
        let event = json!({ "seq": 1, "at_ms": 0, "run": "r", "type": "custom", "task": "t",
            "node": "n", "name": "note", "data": "x".repeat(300_000) });
        let event: Event = serde_json::from_value(event).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.unwrap();
        let encoded = runtime.spawn(async move {
            let state = EventState::default();
            encode_event(CallerId::default(), &mut WaitsForTask, &event, state).await
        });
        assert_eq!(runtime.block_on(encoded).unwrap(), ["data: 1\n\n"]);
    }
}
