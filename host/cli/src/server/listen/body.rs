//! Request bodies with timeouts, and response bodies that record their progress.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use wattle_api::traffic::{CutReason, Traffic};

use super::activity::Underway;

/// A request body that fails when a timeout expires. The timeouts start at the first poll.
pub(super) struct Timed {
    body: Incoming,
    stall: Duration,
    whole: Duration,
    traffic: Arc<Traffic>,
    waiting: Option<Waiting>,
}

struct Waiting {
    stalled: Pin<Box<Sleep>>,
    over: Pin<Box<Sleep>>,
}

impl Timed {
    pub(super) fn new(
        body: Incoming,
        stall: Duration,
        whole: Duration,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self { body, stall, whole, traffic, waiting: None }
    }

    fn late(&self, what: &str, time: Duration) -> axum::Error {
        self.traffic.count_cut(CutReason::BodyTimeout);
        let message = format!("{what} within {time:?}");
        axum::Error::new(io::Error::new(io::ErrorKind::TimedOut, message))
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let (stall, whole) = (this.stall, this.whole);
        let waiting = this.waiting.get_or_insert_with(|| Waiting {
            stalled: Box::pin(sleep(stall)),
            over: Box::pin(sleep(whole)),
        });
        // The timeout of the whole body also ends a body whose next chunk is always ready.
        if waiting.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(this.late("the body did not arrive", whole))));
        }
        if let Poll::Ready(frame) = polled {
            waiting.stalled.as_mut().reset(Instant::now() + stall);
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        if waiting.stalled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(this.late("no part of the body arrived", stall))));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body that records when its chunks are taken.
pub(super) struct Taken {
    body: Body,
    request: Underway,
}

impl Taken {
    pub(super) fn new(body: Body, request: Underway) -> Self {
        Self { body, request }
    }
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.asked();
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.request.handed(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
