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
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

impl Ticket {
    /// A ticket that is already answered.
    pub fn ready(result: Result<(), StoreError>) -> Self {
        Self(Inner::Ready(Some(result)))
    }

    /// A ticket that a writer answers later.
    pub fn waiting(receiver: oneshot::Receiver<Result<(), StoreError>>) -> Self {
        Self(Inner::Waiting(receiver))
    }
}

impl Future for Ticket {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(result) => Poll::Ready(result.take().unwrap_or(Err(StoreError::Closed))),
            Inner::Waiting(receiver) => {
                Pin::new(receiver).poll(cx).map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
            }
        }
    }
}
