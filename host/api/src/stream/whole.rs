//! Streams that are always read from the first event of a run: what they say of an event depends
//! on those before it.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use futures::{Stream, stream};
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;

use crate::stream::follow::{Follower, Next};

/// A wire form of a run.
pub(super) trait Form: Send + 'static {
    /// What is sent for an event. Called for each event of the run, in order.
    fn take(&mut self, event: &Event) -> impl Future<Output = Vec<Bytes>> + Send;

    /// Whether all was sent; asked after each event.
    fn is_over(&self) -> bool;

    /// What is sent at last when the log cannot be read. `None` for a form that has no word for it:
    /// the connection breaks off, so that the client does not take the end for that of the run.
    fn unreadable(&mut self, failure: &Failure) -> Option<Vec<Bytes>>;

    /// What is sent when nothing happens for a while.
    fn silence(&self) -> Bytes {
        SILENCE
    }
}

/// A comment, which every client of server-sent events leaves out.
pub(super) const SILENCE: Bytes = Bytes::from_static(b":\n\n");

/// The stream; `ready` is sent before everything else.
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
    /// Messages that are ready to be sent.
    ready: VecDeque<Bytes>,
    /// Whether the log cannot be read.
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
