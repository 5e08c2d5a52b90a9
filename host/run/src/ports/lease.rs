//! Whether the host that makes a call still has the thread of the call.
//!
//! An adapter that hands a call to tasks of its own compares the lease there as well: in a queue or
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
    /// Whether the lease surely holds now. Asked before every step of a call, so it must not wait.
    fn is_sure(&self) -> bool;

    /// Waits until the lease is proven.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another host has the thread.
    async fn prove(&self) -> Result<(), StoreError>;
}

/// The lease under which a call is made. Clones share it. The default is that of a call without a
/// thread, which nobody can take over.
#[derive(Clone, Default)]
pub struct Leased(Option<Arc<dyn Lease>>);

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leased").field(&self.0.is_some()).finish()
    }
}

impl Leased {
    /// Makes a call depend on a lease.
    pub fn new(lease: Arc<dyn Lease>) -> Self {
        Self(Some(lease))
    }

    /// Does a part of a call. The part goes on only while the lease surely holds, and stands still
    /// while that is being proven.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another host has the thread. The part goes no further then.
    pub async fn hold<T>(
        &self,
        mut part: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
    ) -> Result<T, StoreError> {
        loop {
            let done = poll_fn(|context| {
                if self.is_sure() {
                    part.as_mut().poll(context).map(Some)
                } else {
                    Poll::Ready(None)
                }
            });
            match done.await {
                Some(done) => return Ok(done),
                None => self.prove().await?,
            }
        }
    }
}

#[async_trait]
impl Lease for Leased {
    fn is_sure(&self) -> bool {
        self.0.as_ref().is_none_or(|lease| lease.is_sure())
    }

    async fn prove(&self) -> Result<(), StoreError> {
        match &self.0 {
            Some(lease) => lease.prove().await,
            None => Ok(()),
        }
    }
}
