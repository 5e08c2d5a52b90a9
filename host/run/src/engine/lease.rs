//! Which engine may write to a thread.
//!
//! Inside of a process a slot in `active` keeps two runs from one thread; between processes that
//! share a store a lease does. It is taken after the slot and before anything is read, its epoch is
//! checked with every write, and it is given back before anybody hears that the run has ended.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::elsewhere::Asking;
use super::{Engine, Inner, Slot};
use crate::log::{Tenure, Term};
use crate::ports::store::{Epoch, Holder, Signal, StoreError, ThreadHead, ThreadStatus};
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
    /// Set once the engine receives the signals of other hosts.
    pub(super) is_listening: AtomicBool,
}

impl Leases {
    pub(super) fn new(holder: Option<Holder>, clock: Arc<dyn Clock>) -> Self {
        let holder = holder.unwrap_or_else(|| Holder(uuid::Uuid::now_v7().to_string()));
        let (beating, returning) = (tokio::sync::OnceCell::new(), watch::Sender::new(0));
        let term = Arc::new(Term::new(holder, clock));
        let (asking, is_listening) = (Asking::default(), AtomicBool::new(false));
        Self { term, beating, returning, asking, is_listening }
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
    /// Takes a thread for a run: in this process and, by a lease, of all that share the store. A run
    /// of it that was cut goes on first.
    ///
    /// # Errors
    ///
    /// `busy` if a run is at work on it, here or on another host.
    pub(super) async fn claim(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        self.pull_forward(thread).await?;
        self.claim_first(thread, run).await
    }

    /// The same for the run that was cut itself.
    pub(super) async fn claim_first(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        let mut slot = self.slot(thread, run).await?;
        self.keep_beating().await.map_err(store_failure)?;
        slot.tenure = Some(Arc::new(Tenure::new(self.0.leases.term.clone())));
        slot.epoch = self.lease(thread).await?;
        slot.leased = true;
        Ok(slot)
    }

    /// Takes the slot of a thread. The end of a run is visible a moment before its slot is free, so a
    /// run that has ended is waited for.
    async fn slot(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        loop {
            let busy = match self.take_slot(thread, run.clone()) {
                Err(failure) if failure.code == code::BUSY => failure,
                answer => return answer,
            };
            let Some(mut other) = self.active().get(thread).cloned() else { continue };
            let head = self.0.ports.store.thread(thread).await.map_err(store_failure)?;
            let has_ended = head.is_some_and(|ThreadHead { record, .. }| {
                record.run.as_ref() == Some(&other.run) && record.status != ThreadStatus::Running
            });
            if !has_ended {
                return Err(busy);
            }
            // A run that is cut does not say that it has ended; its slot is free then, too.
            let _ = other.done.wait_for(Option::is_some).await;
        }
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

    /// Sends the first heartbeat of this host, if none was sent yet, and all later ones in the
    /// background.
    pub(super) async fn keep_beating(&self) -> Result<(), StoreError> {
        self.0.leases.beating.get_or_try_init(|| self.begin_beating()).await.map(drop)
    }

    async fn begin_beating(&self) -> Result<(), StoreError> {
        let store = &self.0.ports.store;
        self.0.leases.term.beat(store.as_ref()).await?;
        let pause = Duration::from_millis(store.lease_ms() / BEATS);
        self.0.runtime.spawn(beat(Arc::downgrade(&self.0), pause));
        self.keep_listening();
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

    /// Gives the lease of a run back that has not ended, and tells hosts that share the store to
    /// recover it. If the signal is lost, they find the run at their next look.
    pub(super) async fn hand_over(mut self) {
        self.release().await;
        let engine = self.engine.clone();
        drop(self);
        engine.notify(&Signal::HandedOver).await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Before anything else can begin on the thread.
        self.engine.let_go(&self.thread);
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
