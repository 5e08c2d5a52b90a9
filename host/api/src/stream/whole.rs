//! Encoders that need a run from its first event, because a message can depend on earlier events.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use futures::{Stream, stream};
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;

use crate::stream::follow::{Follower, Next};

/// The encoder of a wire format.
pub(super) trait Form: Send + 'static {
    /// Encodes an event as messages. Called for each event of the run, in order.
    fn take(&mut self, event: &Event) -> impl Future<Output = Vec<Bytes>> + Send;

    /// Returns true after the last message. Called after each event.
    fn is_over(&self) -> bool;

    /// Returns the last messages of a stream whose log ends without the end of the run: the run never
    /// started, its thread was deleted, or the host shuts down.
    fn log_ended(&mut self) -> impl Future<Output = Vec<Bytes>> + Send {
        std::future::ready(Vec::new())
    }

    /// Returns the last messages of a stream whose log cannot be read. With `None`, the connection
    /// is aborted, so that the client does not mistake the end of the stream for the end of the
    /// run.
    fn unreadable(&mut self, failure: &Failure) -> Option<Vec<Bytes>>;

    /// Returns the heartbeat, which is sent after an interval without an event.
    fn silence(&self) -> Bytes {
        SILENCE
    }
}

/// A comment, which clients of server-sent events ignore.
pub(super) const SILENCE: Bytes = Bytes::from_static(b":\n\n");

/// Encodes the events of a follower. `ready` contains messages to send before the first event.
pub(super) fn messages(
    follower: Follower,
    form: impl Form,
    ready: VecDeque<Bytes>,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send + 'static {
    let reading = Reading { follower, form, ready, has_ended: false };
    stream::unfold(reading, |mut reading| async move {
        let message = reading.next().await?;
        Some((message, reading))
    })
}

struct Reading<F> {
    follower: Follower,
    form: F,
    /// Encoded messages that were not sent yet.
    ready: VecDeque<Bytes>,
    /// True after the last item of the follower.
    has_ended: bool,
}

impl<F: Form> Reading<F> {
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(message));
            }
            if self.has_ended || self.form.is_over() {
                return None;
            }
            match self.follower.next().await {
                Some(Next::Event(event)) => self.ready.extend(self.form.take(&event).await),
                Some(Next::Silence) => return Some(Ok(self.form.silence())),
                None => {
                    self.has_ended = true;
                    self.ready.extend(self.form.log_ended().await);
                }
                Some(Next::Unreadable(failure)) => {
                    self.has_ended = true;
                    match self.form.unreadable(&failure) {
                        Some(messages) => self.ready.extend(messages),
                        None => return Some(Err(failure)),
                    }
                }
            }
        }
    }
}
