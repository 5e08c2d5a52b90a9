//! Checks that the host which makes a call still has the lease of the thread.
//!
//! An adapter that passes a call to tasks of its own checks the lease there as well: in a queue or
//! on a slow connection, a call may wait until long after the lease was lost.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;

use crate::ports::store::StoreError;

/// The lease of a thread.
#[async_trait]
pub trait Lease: Send + Sync {
    /// Returns true if the lease is valid without a store round trip. Called before every step of a
    /// call, so it must not wait.
    fn is_locally_valid(&self) -> bool;

    /// Waits until the lease is confirmed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another host has the lease.
    async fn confirm(&self) -> Result<(), StoreError>;
}

/// The lease under which a call is made. Clones share the lease. The default is for a call without
/// a thread, which needs no lease.
#[derive(Clone, Default)]
pub struct CallLease(Option<Arc<dyn Lease>>);

impl fmt::Debug for CallLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallLease").field(&self.0.is_some()).finish()
    }
}

impl CallLease {
    /// Binds a call to a lease.
    pub fn new(lease: Arc<dyn Lease>) -> Self {
        Self(Some(lease))
    }

    /// Polls a part of a call. The part is polled only while the lease is valid without a store
    /// round trip, and pauses while the lease is being confirmed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another host has the lease. The part is then not polled again.
    pub async fn poll_while_valid<T>(
        &self,
        mut part: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
    ) -> Result<T, StoreError> {
        loop {
            let done = poll_fn(|context| {
                if self.is_locally_valid() {
                    part.as_mut().poll(context).map(Some)
                } else {
                    Poll::Ready(None)
                }
            });
            match done.await {
                Some(done) => return Ok(done),
                None => self.confirm().await?,
            }
        }
    }
}

#[async_trait]
impl Lease for CallLease {
    fn is_locally_valid(&self) -> bool {
        self.0.as_ref().is_none_or(|lease| lease.is_locally_valid())
    }

    async fn confirm(&self) -> Result<(), StoreError> {
        match &self.0 {
            Some(lease) => lease.confirm().await,
            None => Ok(()),
        }
    }
}
