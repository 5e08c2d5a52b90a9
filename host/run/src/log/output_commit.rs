//! Output commit: effects leave the host only while it holds the lease of the thread.
//!
//! A durable log is not sufficient. The store compares the lease when it writes a batch, but its
//! response can arrive later, when another host has taken the lease. The lease is therefore checked
//! against the clock after the log is durable, and again whenever a call continues after a wait:
//! for a delay, for a connection, or because the process or the machine was suspended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{LogWriter, ThreadLease, ThreadLog};
use crate::ports::lease::{CallLease, Lease};
use crate::ports::store::StoreError;

/// Delay between two queries to a store that cannot confirm the lease.
const CONFIRM_RETRY_DELAY: Duration = Duration::from_millis(500);

impl ThreadLog {
    /// Sets the lease under which the log is written. The lease expires without heartbeats.
    pub(crate) fn with_lease(mut self, lease: Arc<ThreadLease>) -> Self {
        self.holder = Some(lease.holder().clone());
        let writer = self.writer.clone();
        self.lease = CallLease::new(Arc::new(LogLease { lease, writer }));
        self
    }

    /// Output commit: waits until all events that led to an effect are durable, and verifies the
    /// lease. Called before every effect outside of the host. With durability `async`, this
    /// function flushes the events without waiting.
    ///
    /// The lease is valid while the last acknowledged heartbeat was sent less than half a lease
    /// period ago. Otherwise the store is queried. The delay of its response does not matter, since
    /// all times count from before the query. The query is repeated while the store cannot be
    /// reached.
    ///
    /// # Errors
    ///
    /// See [`Self::wait_durable`]; [`StoreError::Fenced`] if another host holds the lease.
    pub async fn output_commit(&self) -> Result<(), StoreError> {
        if self.is_async() {
            self.flush().await;
        } else {
            self.wait_durable().await?;
        }
        self.lease.confirm().await
    }

    /// Awaits a call that has an effect. The call is polled only while the lease is valid. The call
    /// pauses while the store is queried or cannot be reached.
    ///
    /// A lease cannot recall an effect that left the host before the process was suspended; such an
    /// effect may arrive after the lease has expired. The host that takes over finds the call
    /// without a result and repeats it only if the call is idempotent.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another host holds the lease. The call is not polled again.
    pub(crate) async fn poll_while_leased<T>(
        &self,
        call: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
    ) -> Result<T, StoreError> {
        self.lease.poll_while_valid(call).await
    }

    /// Returns the lease of the thread, for adapters that perform a call in tasks of their own.
    pub(crate) fn call_lease(&self) -> &CallLease {
        &self.lease
    }
}

/// The lease under which a log is written.
struct LogLease {
    lease: Arc<ThreadLease>,
    writer: Arc<LogWriter>,
}

impl LogLease {
    /// Returns an error if the lease is not valid.
    async fn check(&self) -> Result<(), StoreError> {
        let LogWriter { states, thread, epoch, .. } = self.writer.as_ref();
        if self.lease.is_valid(states.store().as_ref(), thread, *epoch).await? {
            return Ok(());
        }
        Err(StoreError::Fenced { thread: thread.clone(), epoch: epoch.0 })
    }
}

#[async_trait]
impl Lease for LogLease {
    fn is_locally_valid(&self) -> bool {
        self.lease.is_locally_valid(self.writer.states.store().lease_ms())
    }

    /// Repeats the query while the store cannot be reached.
    async fn confirm(&self) -> Result<(), StoreError> {
        loop {
            match self.check().await {
                Ok(()) => return Ok(()),
                Err(fenced @ StoreError::Fenced { .. }) => return Err(fenced),
                Err(error) => {
                    let thread = &self.writer.thread;
                    tracing::warn!(%thread, %error, "cannot verify the lease; the call waits");
                    tokio::time::sleep(CONFIRM_RETRY_DELAY).await;
                }
            }
        }
    }
}
