//! What is left of a batch that was handed over: the answer to come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::ports::store::StoreError;

/// Answers when a batch is durable. Dropping it does not undo the batch.
pub struct Ticket(Inner);

enum Inner {
    Ready(Option<Result<(), StoreError>>),
    Waiting { answer: oneshot::Receiver<Result<(), StoreError>>, hurry: Option<Hurry> },
}

/// Tells a writer that somebody waits.
type Hurry = Box<dyn FnOnce() + Send>;

impl Ticket {
    /// A ticket that is already answered.
    pub fn ready(result: Result<(), StoreError>) -> Self {
        Self(Inner::Ready(Some(result)))
    }

    /// A ticket that a writer answers later, and which may take its time while nobody waits:
    /// `hurry` is called once, when somebody first waits for an answer that is not there yet.
    pub fn waiting(
        answer: oneshot::Receiver<Result<(), StoreError>>,
        hurry: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self(Inner::Waiting { answer, hurry: Some(Box::new(hurry)) })
    }
}

impl Future for Ticket {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(result) => Poll::Ready(result.take().unwrap_or(Err(StoreError::Closed))),
            Inner::Waiting { answer, hurry } => {
                let polled = Pin::new(answer).poll(cx);
                if polled.is_pending()
                    && let Some(hurry) = hurry.take()
                {
                    hurry();
                }
                polled.map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
            }
        }
    }
}
