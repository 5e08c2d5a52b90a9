//! Which engine may write to a thread.
//!
//! Inside of a process a slot in `active` keeps two runs from one thread; between processes that
//! share a store a lease does. It is taken after the slot and before anything is read, its epoch is
//! checked with every write, and it is given back before anybody hears that the run has ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::elsewhere::{Asking, hear};
use super::{Engine, Inner, Slot};
use crate::log::Term;
use crate::ports::store::{Epoch, Holder, StoreError, ThreadStatus};
use crate::ports::{Clock, Ports};
use crate::view::store_failure;

/// Signs of life within the time of a lease, so that one that is late or lost loses nothing.
const BEATS: u64 = 3;

/// Attempts at a thread that another host has and no run is at work on: that host has just written
/// down how its run ended, and is about to give the thread back.
const HANDOVER_ATTEMPTS: u32 = 8;

/// Pause before the second attempt; it doubles each time, to more than a second altogether.
const HANDOVER_PAUSE: Duration = Duration::from_millis(10);

/// The engine as a holder of leases.
pub(super) struct Leases {
    /// Under which name threads are held, and how long they surely are.
    pub(super) term: Arc<Term>,
    /// Set once the engine has shown that it lives and goes on doing so.
    beating: tokio::sync::OnceCell<()>,
    /// Leases that are being given back by nobody who could wait for it.
    returning: watch::Sender<usize>,
    /// Runs that other hosts are asked to let stand still.
    pub(super) asking: Asking,
}

impl Leases {
    pub(super) fn new(holder: Option<Holder>, clock: Arc<dyn Clock>) -> Self {
        let holder = holder.unwrap_or_else(|| Holder(uuid::Uuid::now_v7().to_string()));
        let (beating, returning) = (tokio::sync::OnceCell::new(), watch::Sender::new(0));
        let term = Arc::new(Term::new(holder, clock));
        Self { term, beating, returning, asking: Asking::default() }
    }

    /// Under which name threads are held.
    pub(super) fn holder(&self) -> &Holder {
        self.term.holder()
    }

    /// Waits until what was dropped is given back.
    pub(super) async fn returned(&self) {
        // The sender is there as long as this is.
        let _ = self.returning.subscribe().wait_for(|returning| *returning == 0).await;
    }
}

impl Engine {
    /// Takes a thread for a run: in this process and, by a lease, of all that share the store.
    ///
    /// # Errors
    ///
    /// `busy` if a run is at work on it, here or on another host.
    pub(super) async fn claim(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        let mut slot = self.take_slot(thread, run)?;
        let beating = &self.0.leases.beating;
        beating.get_or_try_init(|| self.begin_beating()).await.map_err(store_failure)?;
        slot.epoch = self.lease(thread).await?;
        slot.leased = true;
        Ok(slot)
    }

    /// Takes the lease of a thread. The news that a run has ended can be here before its lease is
    /// given back, so a thread without a run at work is asked for again.
    async fn lease(&self, thread: &ThreadId) -> Result<Epoch, Failure> {
        let Inner { ports: Ports { store, .. }, leases, .. } = &*self.0;
        let mut pause = HANDOVER_PAUSE;
        let mut attempt = 1;
        loop {
            let holder = match store.lease(thread, leases.holder()).await {
                Err(StoreError::Leased { holder, .. }) => holder,
                answer => return answer.map_err(store_failure),
            };
            let head = store.thread(thread).await.map_err(store_failure)?;
            let is_at_work = head.is_some_and(|it| it.record.status == ThreadStatus::Running);
            if is_at_work || attempt == HANDOVER_ATTEMPTS {
                return Err(at_work_elsewhere(thread, &holder));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
            attempt += 1;
        }
    }

    async fn begin_beating(&self) -> Result<(), StoreError> {
        let store = &self.0.ports.store;
        self.0.leases.term.beat(store.as_ref()).await?;
        let pause = Duration::from_millis(store.lease_ms() / BEATS);
        self.0.runtime.spawn(beat(Arc::downgrade(&self.0), pause));
        if let Some(wishes) = store.wishes() {
            self.0.runtime.spawn(hear(Arc::downgrade(&self.0), wishes));
        }
        Ok(())
    }
}

/// Shows that the engine lives until it is gone. A store that cannot be reached, or does not answer
/// until it is time for the next sign, is tried again: its leases end by themselves, and the writes
/// under them are then refused.
async fn beat(engine: Weak<Inner>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(engine) = engine.upgrade() else { return };
        let beat = engine.leases.term.beat(engine.ports.store.as_ref());
        let error = match tokio::time::timeout(pause, beat).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => format!("no answer within {} ms", pause.as_millis()),
        };
        tracing::warn!(%error, "cannot tell the store that this host lives");
    }
}

fn at_work_elsewhere(thread: &ThreadId, holder: &str) -> Failure {
    Failure::new(
        code::BUSY,
        format!("thread `{thread}` is at work on another host; wait for it or cancel its run"),
    )
    .with_details(json!({ "host": holder }))
}

impl Slot {
    /// Gives the lease back.
    pub(super) async fn release(&mut self) {
        if std::mem::take(&mut self.leased) {
            release(&self.engine, &self.thread, self.epoch).await;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.engine.active().remove(&self.thread);
        if self.leased {
            let (engine, thread, epoch) = (self.engine.clone(), self.thread.clone(), self.epoch);
            let runtime = engine.0.runtime.clone();
            engine.0.leases.returning.send_modify(|returning| *returning += 1);
            runtime.spawn(async move {
                release(&engine, &thread, epoch).await;
                engine.0.leases.returning.send_modify(|returning| *returning -= 1);
            });
        }
    }
}

async fn release(engine: &Engine, thread: &ThreadId, epoch: Epoch) {
    if let Err(error) = engine.0.ports.store.release(thread, epoch).await {
        tracing::debug!(%thread, %error, "the lease of a thread ends by itself");
    }
}
