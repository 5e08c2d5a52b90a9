//! Streams that are always read from the first event of a run: what they say of an event depends
//! on those before it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use futures::{Stream, stream};
use wattle_graph::event::Event;

use crate::stream::follow::{Follower, Next};

/// A wire form of a run.
pub(super) trait Form: Send + 'static {
    /// What is sent for an event. Called for each event of the run, in order.
    fn take(&mut self, event: &Event) -> impl Future<Output = Vec<Bytes>> + Send;

    /// Whether all was sent; asked after each event.
    fn is_over(&self) -> bool;

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
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let reading = Reading { follower, form, ready };
    stream::unfold(reading, |mut reading| async move {
        let message = reading.next().await?;
        Some((Ok(message), reading))
    })
}

struct Reading<F> {
    follower: Follower,
    form: F,
    /// Messages that are ready to be sent.
    ready: VecDeque<Bytes>,
}

impl<F: Form> Reading<F> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.form.is_over() {
                return None;
            }
            match self.follower.next().await? {
                Next::Event(event) => self.ready.extend(self.form.take(&event).await),
                Next::Silence => return Some(self.form.silence()),
            }
        }
    }
}
