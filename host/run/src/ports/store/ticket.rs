//! The future of a batch.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::ports::store::StoreError;

/// Resolves when a batch is durable. Dropping the ticket does not undo the batch.
pub struct Ticket(TicketState);

enum TicketState {
    Ready(Option<Result<(), StoreError>>),
    Waiting { result: oneshot::Receiver<Result<(), StoreError>>, on_wait: Option<OnWait> },
}

/// Notifies a writer that a caller waits.
type OnWait = Box<dyn FnOnce() + Send>;

impl Ticket {
    /// Creates a ticket that is resolved already.
    pub fn ready(result: Result<(), StoreError>) -> Self {
        Self(TicketState::Ready(Some(result)))
    }

    /// Creates a ticket that a writer resolves later. The writer may delay the batch until a caller
    /// waits: `on_wait` is called once, when the ticket is first polled without a result.
    pub fn waiting(
        result: oneshot::Receiver<Result<(), StoreError>>,
        on_wait: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self(TicketState::Waiting { result, on_wait: Some(Box::new(on_wait)) })
    }
}

impl Future for Ticket {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            TicketState::Ready(result) => {
                Poll::Ready(result.take().unwrap_or(Err(StoreError::Closed)))
            }
            TicketState::Waiting { result, on_wait } => {
                let polled = Pin::new(result).poll(cx);
                if polled.is_pending()
                    && let Some(on_wait) = on_wait.take()
                {
                    on_wait();
                }
                polled.map(|result| result.unwrap_or(Err(StoreError::Closed)))
            }
        }
    }
}
