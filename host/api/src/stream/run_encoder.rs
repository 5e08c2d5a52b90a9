//! Encoders that need a run from its first event, because a message can depend on earlier events.

use std::collections::VecDeque;
use std::future::Future;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;
use wattle_run::ports::Store;
use wattle_run::ports::store::RunRecord;

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
