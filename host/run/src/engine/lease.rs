//! Claims of threads: which engine may write to a thread.
//!
//! Within a process, the entry in `active` excludes concurrent operations on a thread. Between
//! processes that share a store, a lease does. The lease is acquired after the entry and before
//! anything is read, the store checks its epoch with every write, and it is released before the end
//! of the run is announced.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::elsewhere::Asking;
use super::{Engine, Inner, Slot, new_run_id};
use crate::log::{Tenure, Term};
use crate::ports::store::{Epoch, Holder, Signal, StoreError, ThreadHead, ThreadStatus};
use crate::ports::{Clock, Ports};
use crate::view::store_failure;

/// Heartbeats per lease period. A late or lost heartbeat does not expire the lease.
const BEATS: u64 = 3;

/// Attempts to acquire a lease that another host holds although no run is active on the thread.
/// That host has recorded the end of its run and is about to release the lease.
const HANDOVER_ATTEMPTS: u32 = 8;

/// Delay before the second attempt. It doubles each time, to more than a second in total.
const HANDOVER_PAUSE: Duration = Duration::from_millis(10);

/// Maximum number of stray leases that are remembered, about a megabyte of ids. Further ones expire
/// after this host has stopped.
const STRAYS: usize = 10_000;

/// What a claim has to release in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    /// Nothing.
    Nothing,
    /// A lease whose acquisition or release is in progress. The store may have it or not.
    Perhaps,
    /// The lease with the epoch of the claim.
    Lease,
}

/// State of the engine as a holder of leases.
pub(super) struct Leases {
    /// Name of the holder, and the validity of its leases.
    pub(super) term: Arc<Term>,
    /// Set once the first heartbeat was sent and the background task sends further ones.
    beating: tokio::sync::OnceCell<()>,
    /// Number of releases in progress for claims that were dropped.
    returning: watch::Sender<usize>,
    /// Stray leases: the store may have them under the name of this host although no claim holds
    /// them. Their release failed, or the response to their acquisition was lost. The epoch is
    /// `None` if it is unknown. While this host is live, stray leases keep other hosts from the
    /// threads.
    strays: Mutex<BTreeMap<ThreadId, Option<Epoch>>>,
    /// Runs of other hosts for which this host repeats drain signals.
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
        Self { term, beating, returning, strays: Mutex::default(), asking, is_listening }
    }

    /// Returns the name of the holder.
    pub(super) fn holder(&self) -> &Holder {
        self.term.holder()
    }

    /// Locks the stray leases. No code that can panic runs under this lock.
    fn strays(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Option<Epoch>>> {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a stray lease. It replaces an older one of the thread, which ended when the new
    /// one was acquired.
    fn remember(&self, thread: &ThreadId, epoch: Option<Epoch>) {
        let mut strays = self.strays();
        if strays.len() < STRAYS || strays.contains_key(thread) {
            strays.insert(thread.clone(), epoch);
        } else {
            tracing::warn!(
                %thread,
                "too many stray leases; this one expires after the host has stopped"
            );
        }
    }

    /// Waits until the leases of dropped claims are released.
    pub(super) async fn returned(&self) {
        // The sender lives as long as `self`.
        let _ = self.returning.subscribe().wait_for(|returning| *returning == 0).await;
    }
}

impl Engine {
    /// Claims a thread: its entry in this process, and its lease. An orphaned run of the thread is
    /// recovered first.
    ///
    /// # Errors
    ///
    /// `busy` if a run is active on the thread, here or on another host.
    pub(super) async fn claim(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        self.pull_forward(thread).await?;
        self.claim_first(thread, run).await
    }

    /// Claims a thread without recovering its orphaned run first.
    pub(super) async fn claim_first(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        let mut slot = self.slot(thread, run).await?;
        self.keep_beating().await.map_err(store_failure)?;
        slot.tenure = Some(Arc::new(Tenure::new(self.0.leases.term.clone())));
        slot.owed = Owed::Perhaps;
        match self.lease(thread).await {
            Ok(epoch) => {
                (slot.epoch, slot.owed) = (epoch, Owed::Lease);
                Ok(slot)
            }
            Err(failure) => {
                // Another host holds the lease.
                if failure.code == code::BUSY {
                    slot.owed = Owed::Nothing;
                }
                Err(failure)
            }
        }
    }

    /// Takes the entry of a thread. The end of a run is visible shortly before its entry is free,
    /// so this waits for a run that has ended.
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
            // A run that is aborted announces no end, but its entry is free then, too.
            let _ = other.done.wait_for(Option::is_some).await;
        }
    }

    /// Acquires the lease of a thread. The end of a run can be visible before its lease is
    /// released, so the acquisition is retried if no run is active on the thread.
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
        self.keep_giving_back(pause);
        self.keep_listening();
        Ok(())
    }

    /// Not `async`: the release of a stray lease claims its thread, which starts the heartbeats, so
    /// the future would contain itself.
    fn keep_giving_back(&self, pause: Duration) {
        self.0.runtime.spawn(give_back(Arc::downgrade(&self.0), pause));
    }

    /// Remembers a lease that is to be released later, if other hosts share the store.
    fn owe(&self, thread: &ThreadId, epoch: Option<Epoch>) {
        if self.is_shared() {
            self.0.leases.remember(thread, epoch);
        }
    }

    /// Releases stray leases until the store fails.
    async fn give_strays_back(&self) {
        loop {
            let Some((thread, epoch)) = self.0.leases.strays().pop_first() else { return };
            let is_given_back = match epoch {
                Some(epoch) => release(self, &thread, epoch).await,
                None => self.take_and_give_back(&thread).await,
            };
            if !is_given_back {
                return;
            }
        }
    }

    /// Releases a lease with an unknown epoch: a new lease of the same holder replaces it. Returns
    /// false if the store fails.
    async fn take_and_give_back(&self, thread: &ThreadId) -> bool {
        match self.claim_first(thread, new_run_id()).await {
            Ok(mut slot) => {
                slot.release().await;
                true
            }
            // Unless the store failed, another host has the lease, or another claim of this host
            // has it and releases it.
            Err(failure) => failure.code != code::UNAVAILABLE,
        }
    }
}

/// Sends heartbeats until the engine is dropped. If the store does not respond before the next
/// heartbeat is due, the heartbeat is sent again. Leases that expire meanwhile are fenced: the
/// store refuses writes under them.
async fn beat(engine: Weak<Inner>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(engine) = engine.upgrade() else { return };
        let beat = engine.leases.term.beat(engine.ports.store.as_ref());
        let error = match tokio::time::timeout(pause, beat).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => format!("no response within {} ms", pause.as_millis()),
        };
        tracing::warn!(%error, "heartbeat failed");
    }
}

/// Releases stray leases once per heartbeat interval, until the engine is dropped. It does not
/// share a task with the heartbeats, because a store that fails may take long to respond.
async fn give_back(engine: Weak<Inner>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(engine) = engine.upgrade() else { return };
        Engine(engine).give_strays_back().await;
    }
}

fn at_work_elsewhere(thread: &ThreadId, holder: &str) -> Failure {
    Failure::new(
        code::BUSY,
        format!("thread `{thread}` is in use on another host; wait for its run or cancel it"),
    )
    .with_details(json!({ "host": holder }))
}

impl Slot {
    /// Releases the lease.
    pub(super) async fn release(&mut self) {
        if self.owed == Owed::Lease {
            // This future may be dropped while it waits for the store.
            self.owed = Owed::Perhaps;
            release(&self.engine, &self.thread, self.epoch).await;
            self.owed = Owed::Nothing;
        }
    }

    /// Releases the lease of a run that has not ended, and notifies the hosts that share the store,
    /// which recover the run. If the signal is lost, they find the run with their next scan.
    pub(super) async fn hand_over(mut self) {
        self.release().await;
        let engine = self.engine.clone();
        drop(self);
        engine.notify(&Signal::HandedOver).await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Held calls are released before another operation can start on the thread.
        self.engine.let_go(&self.thread);
        self.engine.active().remove(&self.thread);
        match self.owed {
            Owed::Nothing => {}
            Owed::Perhaps => self.engine.owe(&self.thread, None),
            Owed::Lease => {
                let (engine, thread, epoch) =
                    (self.engine.clone(), self.thread.clone(), self.epoch);
                let runtime = engine.0.runtime.clone();
                engine.0.leases.returning.send_modify(|returning| *returning += 1);
                runtime.spawn(async move {
                    release(&engine, &thread, epoch).await;
                    engine.0.leases.returning.send_modify(|returning| *returning -= 1);
                });
            }
        }
    }
}

/// Releases a lease. If the store fails, the lease is stray and released later. Returns false in
/// that case.
async fn release(engine: &Engine, thread: &ThreadId, epoch: Epoch) -> bool {
    let Err(error) = engine.0.ports.store.release(thread, epoch).await else { return true };
    tracing::warn!(%thread, %error, "cannot release the lease of a thread; it is released later");
    engine.owe(thread, Some(epoch));
    false
}
