//! The future of a batch.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::ports::store::StoreError;

/// Resolves when a batch is durable. Dropping the ticket does not undo the batch.
pub struct Ticket(Inner);

enum Inner {
    Ready(Option<Result<(), StoreError>>),
    Waiting { answer: oneshot::Receiver<Result<(), StoreError>>, hurry: Option<Hurry> },
}

/// Notifies a writer that a caller waits.
type Hurry = Box<dyn FnOnce() + Send>;

impl Ticket {
    /// Creates a ticket that is resolved already.
    pub fn ready(result: Result<(), StoreError>) -> Self {
        Self(Inner::Ready(Some(result)))
    }

    /// Creates a ticket that a writer resolves later. The writer may delay the batch until it is
    /// waited for: `hurry` is called once, when the ticket is first polled without a result.
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
