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

use super::activity::OpenRequest;

/// A request body that fails when a timeout expires. The timeouts start at the first poll.
pub(super) struct TimedBody {
    body: Incoming,
    stall: Duration,
    whole: Duration,
    traffic: Arc<Traffic>,
    timers: Option<Timers>,
}

struct Timers {
    stall: Pin<Box<Sleep>>,
    whole: Pin<Box<Sleep>>,
}

impl TimedBody {
    pub(super) fn new(
        body: Incoming,
        stall: Duration,
        whole: Duration,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self { body, stall, whole, traffic, timers: None }
    }

    fn timeout_error(&self, what: &str, time: Duration) -> axum::Error {
        self.traffic.count_cut(CutReason::BodyTimeout);
        let message = format!("{what} within {time:?}");
        axum::Error::new(io::Error::new(io::ErrorKind::TimedOut, message))
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let (stall, whole) = (this.stall, this.whole);
        let timers = this.timers.get_or_insert_with(|| Timers {
            stall: Box::pin(sleep(stall)),
            whole: Box::pin(sleep(whole)),
        });
        // The timeout of the whole body also ends a body whose next chunk is always ready.
        if timers.whole.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(this.timeout_error("the body did not arrive", whole))));
        }
        if let Poll::Ready(frame) = polled {
            timers.stall.as_mut().reset(Instant::now() + stall);
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        if timers.stall.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(
                Err(this.timeout_error("no part of the body arrived", stall)),
            ));
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

/// A response body that records when the connection requests and receives its chunks.
pub(super) struct TrackedBody {
    body: Body,
    request: OpenRequest,
}

impl TrackedBody {
    pub(super) fn new(body: Body, request: OpenRequest) -> Self {
        Self { body, request }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.chunk_requested();
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.request.chunk_received(frame.data_ref().map_or(0, Bytes::len));
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
