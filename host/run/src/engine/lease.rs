//! Which engine may write to a thread.
//!
//! Inside of a process a slot in `active` keeps two runs from one thread; between processes that
//! share a store a lease does. It is taken after the slot and before anything is read, its epoch is
//! checked with every write, and it is given back before anybody hears that the run has ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{broadcast, watch};
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::{Engine, Inner, Slot, no_run};
use crate::call::runs::{RunRef, Runs as _};
use crate::ports::Ports;
use crate::ports::store::{Epoch, Holder, LEASE_MS, StoreError, ThreadStatus};
use crate::view::store_failure;

/// Pause between two signs of life: several fit into [`LEASE_MS`], so that one that is late loses
/// nothing.
const BEAT: Duration = Duration::from_millis(LEASE_MS / 5);

/// How long to wait for news of a run on another host before looking again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Attempts at a thread that another host has and no run is at work on: that host has just written
/// down how its run ended, and is about to give the thread back.
const HANDOVER_ATTEMPTS: u32 = 8;

/// Pause before the second attempt; it doubles each time, to more than a second altogether.
const HANDOVER_PAUSE: Duration = Duration::from_millis(10);

/// The engine as a holder of leases.
pub(super) struct Leases {
    holder: Holder,
    /// Set once the engine has shown that it lives and goes on doing so.
    beating: tokio::sync::OnceCell<()>,
    /// Leases that are being given back by nobody who could wait for it.
    returning: watch::Sender<usize>,
}

impl Leases {
    pub(super) fn new(holder: Option<Holder>) -> Self {
        let holder = holder.unwrap_or_else(|| Holder(uuid::Uuid::now_v7().to_string()));
        let (beating, returning) = (tokio::sync::OnceCell::new(), watch::Sender::new(0));
        Self { holder, beating, returning }
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
            let holder = match store.lease(thread, &leases.holder).await {
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

    /// Waits until a run that another host has is over; `cancel` asks that host to end it. If the
    /// host dies meanwhile, the run goes on here or elsewhere by [`Engine::recover`].
    pub(super) async fn ends_elsewhere(&self, run: &RunRef, cancel: bool) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let mut news = store.watch(&run.thread);
        loop {
            news.borrow_and_update();
            let record = store.run(&run.run).await.map_err(store_failure)?;
            let Some(record) = record.filter(|record| record.thread == run.thread) else {
                return Err(no_run(run));
            };
            if record.status != RunStatus::Running {
                return Ok(());
            }
            let is_here = self.active().get(&run.thread).is_some_and(|here| here.run == run.run);
            if is_here && cancel {
                return Box::pin(self.cancel(run)).await;
            }
            if cancel {
                store.ask_cancel(&run.run).await.map_err(store_failure)?;
            }
            // News may be lost with a connection, so nothing depends on them alone. They end when a
            // thread is deleted, and begin anew with one of the same id.
            if let Ok(Err(_ended)) = tokio::time::timeout(ASK_AGAIN, news.changed()).await {
                tokio::time::sleep(ASK_AGAIN).await;
                news = store.watch(&run.thread);
            }
        }
    }

    /// Ends runs of this engine as other hosts ask for it.
    async fn hear_cancels(engine: Weak<Inner>, mut asked: broadcast::Receiver<RunId>) {
        loop {
            let run = match asked.recv().await {
                Ok(run) => run,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            let Some(engine) = engine.upgrade().map(Engine) else { return };
            let cancel = engine.active().values().find(|a| a.run == run).map(|a| a.cancel.clone());
            if let Some(cancel) = cancel {
                cancel.cancel();
            }
        }
    }

    async fn begin_beating(&self) -> Result<(), StoreError> {
        self.0.ports.store.beat(&self.0.leases.holder).await?;
        self.0.runtime.spawn(beat(Arc::downgrade(&self.0)));
        if let Some(asked) = self.0.ports.store.cancels() {
            self.0.runtime.spawn(Self::hear_cancels(Arc::downgrade(&self.0), asked));
        }
        Ok(())
    }
}

/// Shows that the engine lives until it is gone. A store that cannot be reached is tried again: its
/// leases end by themselves, and the writes under them are then refused.
async fn beat(engine: Weak<Inner>) {
    loop {
        tokio::time::sleep(BEAT).await;
        let Some(engine) = engine.upgrade() else { return };
        if let Err(error) = engine.ports.store.beat(&engine.leases.holder).await {
            tracing::warn!(%error, "cannot tell the store that this host lives");
        }
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
