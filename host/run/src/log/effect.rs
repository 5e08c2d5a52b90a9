//! Effects leave the host only while it surely has the thread.
//!
//! A durable log is not enough for that. The store compares the lease when it writes a batch, but
//! its answer may arrive any time later, when another host has taken the thread over. So the lease
//! is compared with the clock after the log is durable, and again whenever a call goes on that has
//! waited: for a delay, for a connection, or because the process or the machine stood still.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Tenure, ThreadLog, Writer};
use crate::ports::lease::{Lease, Leased};
use crate::ports::store::StoreError;

/// Pause before a store is asked again that could not say whether a lease holds.
const PAUSE: Duration = Duration::from_millis(500);

impl ThreadLog {
    /// The same log under a lease that ends if its holder is silent.
    pub(crate) fn for_tenure(mut self, tenure: Arc<Tenure>) -> Self {
        self.holder = Some(tenure.holder().clone());
        let writer = self.writer.clone();
        self.leased = Leased::new(Arc::new(ThreadLease { tenure, writer }));
        self
    }

    /// Waits, before something leaves the host, until what led to it is durable, and makes sure
    /// that the thread is still this host's.
    ///
    /// The thread is surely this host's while the last sign of life that the store took was sent
    /// less than half a lease ago; otherwise the store is asked. How late the store answers makes no
    /// difference, since times count from before the question. A store that cannot be reached is
    /// asked again.
    ///
    /// # Errors
    ///
    /// As [`Self::barrier`], and [`StoreError::Fenced`] if another host has the thread.
    pub async fn before_effect(&self) -> Result<(), StoreError> {
        if self.runs_ahead() {
            self.flush().await;
        } else {
            self.barrier().await?;
        }
        self.leased.prove().await
    }

    /// Makes a call that has an effect. It goes on only while the thread is surely this host's, and
    /// stands still while the store is asked or cannot be reached.
    ///
    /// What a lease cannot promise: an effect that was already on its way when the process was
    /// stopped may arrive after the lease is over. The host that takes the thread over finds the
    /// call begun and not answered, and does not repeat it unless that is safe.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another host has the thread. The call is dropped then.
    pub(crate) async fn while_leased<T>(
        &self,
        call: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
    ) -> Result<T, StoreError> {
        self.leased.hold(call).await
    }

    /// The lease of the thread, for what adapters do for a call in tasks of their own.
    pub(crate) fn leased(&self) -> &Leased {
        &self.leased
    }
}

/// The lease under which a log is written.
struct ThreadLease {
    tenure: Arc<Tenure>,
    writer: Arc<Writer>,
}

impl ThreadLease {
    /// Refuses if the lease does not hold any more.
    async fn check(&self) -> Result<(), StoreError> {
        let Writer { store, thread, epoch, .. } = self.writer.as_ref();
        if self.tenure.holds(store.as_ref(), thread, *epoch).await? {
            return Ok(());
        }
        Err(StoreError::Fenced { thread: thread.clone(), epoch: epoch.0 })
    }
}

#[async_trait]
impl Lease for ThreadLease {
    fn is_sure(&self) -> bool {
        self.tenure.is_sure(self.writer.store.lease_ms())
    }

    /// A store that cannot be reached is asked again.
    async fn prove(&self) -> Result<(), StoreError> {
        loop {
            match self.check().await {
                Ok(()) => return Ok(()),
                Err(fenced @ StoreError::Fenced { .. }) => return Err(fenced),
                Err(error) => {
                    let thread = &self.writer.thread;
                    tracing::warn!(%thread, %error, "a call waits until the lease is proven");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}
