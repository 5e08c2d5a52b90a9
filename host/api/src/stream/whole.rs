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
    let reading = Reading { follower, form, ready, is_broken: false };
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
    /// True after a failure to read the log.
    is_broken: bool,
}

impl<F: Form> Reading<F> {
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(message));
            }
            if self.is_broken || self.form.is_over() {
                return None;
            }
            match self.follower.next().await? {
                Next::Event(event) => self.ready.extend(self.form.take(&event).await),
                Next::Silence => return Some(Ok(self.form.silence())),
                Next::Unreadable(failure) => {
                    self.is_broken = true;
                    match self.form.unreadable(&failure) {
                        Some(messages) => self.ready.extend(messages),
                        None => return Some(Err(failure)),
                    }
                }
            }
        }
    }
}
