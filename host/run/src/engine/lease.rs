//! Which engine may write to a thread.
//!
//! Inside of a process a slot in `active` keeps two runs from one thread; between processes that
//! share a store a lease does. It is taken after the slot and before anything is read, its epoch is
//! checked with every write, and it is given back before anybody hears that the run has ended.

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

/// Signs of life within the time of a lease, so that one that is late or lost loses nothing.
const BEATS: u64 = 3;

/// Attempts at a thread that another host has and no run is at work on: that host has just written
/// down how its run ended, and is about to give the thread back.
const HANDOVER_ATTEMPTS: u32 = 8;

/// Pause before the second attempt; it doubles each time, to more than a second altogether.
const HANDOVER_PAUSE: Duration = Duration::from_millis(10);

/// Strays that are remembered: about a megabyte of ids. Those beyond end with this host.
const STRAYS: usize = 10_000;

/// What a slot is to give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    /// Nothing.
    Nothing,
    /// A lease that was asked for or is being given back; nobody knows yet whether the store has it.
    Perhaps,
    /// The lease of its epoch.
    Lease,
}

/// The engine as a holder of leases.
pub(super) struct Leases {
    /// Under which name threads are held, and how long they surely are.
    pub(super) term: Arc<Term>,
    /// Set once the engine has shown that it lives and goes on doing so.
    beating: tokio::sync::OnceCell<()>,
    /// Leases that are being given back by nobody who could wait for it.
    returning: watch::Sender<usize>,
    /// Leases that the store may have under the name of this host though no slot holds them: they
    /// could not be given back, or the answer that gave them was lost. Those of which the epoch is
    /// not known have none. While the host lives they would keep all others from the threads.
    strays: Mutex<BTreeMap<ThreadId, Option<Epoch>>>,
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
        Self { term, beating, returning, strays: Mutex::default(), asking, is_listening }
    }

    /// Under which name threads are held.
    pub(super) fn holder(&self) -> &Holder {
        self.term.holder()
    }

    /// No code that can panic runs under this lock.
    fn strays(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Option<Epoch>>> {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a stray. It takes the place of an older one of its thread, which was over when it
    /// was taken.
    fn remember(&self, thread: &ThreadId, epoch: Option<Epoch>) {
        let mut strays = self.strays();
        if strays.len() < STRAYS || strays.contains_key(thread) {
            strays.insert(thread.clone(), epoch);
        } else {
            tracing::warn!(%thread, "the lease of a thread ends with this host");
        }
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
        slot.owed = Owed::Perhaps;
        match self.lease(thread).await {
            Ok(epoch) => {
                (slot.epoch, slot.owed) = (epoch, Owed::Lease);
                Ok(slot)
            }
            Err(failure) => {
                // Another host has it.
                if failure.code == code::BUSY {
                    slot.owed = Owed::Nothing;
                }
                Err(failure)
            }
        }
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
        self.keep_giving_back(pause);
        self.keep_listening();
        Ok(())
    }

    /// Not `async`, since what gives strays back takes threads, and so begins to beat.
    fn keep_giving_back(&self, pause: Duration) {
        self.0.runtime.spawn(give_back(Arc::downgrade(&self.0), pause));
    }

    /// Remembers a lease that is to be given back later, if another host could want the thread.
    fn owe(&self, thread: &ThreadId, epoch: Option<Epoch>) {
        if self.is_shared() {
            self.0.leases.remember(thread, epoch);
        }
    }

    /// Gives strays back until the store fails.
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

    /// Ends a lease whose epoch is not known: a holder ends its own lease by taking another.
    /// `false` if the store fails.
    async fn take_and_give_back(&self, thread: &ThreadId) -> bool {
        match self.claim_first(thread, new_run_id()).await {
            Ok(mut slot) => {
                slot.release().await;
                true
            }
            // Otherwise another host has the thread, or a slot of this one, which gives it back.
            Err(failure) => failure.code != code::UNAVAILABLE,
        }
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

/// Gives strays back, as often as the engine shows that it lives, until it is gone. Not together
/// with that: a store that fails takes its time.
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
        format!("thread `{thread}` is at work on another host; wait for it or cancel its run"),
    )
    .with_details(json!({ "host": holder }))
}

impl Slot {
    /// Gives the lease back.
    pub(super) async fn release(&mut self) {
        if self.owed == Owed::Lease {
            // This future may be dropped while it waits for the store.
            self.owed = Owed::Perhaps;
            release(&self.engine, &self.thread, self.epoch).await;
            self.owed = Owed::Nothing;
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

/// Gives a lease back; one that the store does not take back is given back later. `false` if the
/// store fails.
async fn release(engine: &Engine, thread: &ThreadId, epoch: Epoch) -> bool {
    let Err(error) = engine.0.ports.store.release(thread, epoch).await else { return true };
    tracing::warn!(%thread, %error, "the lease of a thread is given back later");
    engine.owe(thread, Some(epoch));
    false
}
