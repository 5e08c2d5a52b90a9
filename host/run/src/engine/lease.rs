//! Claims of threads: which engine may write to a thread.
//!
//! Within a process, the entry in `active` excludes concurrent operations on a thread. Between
//! processes that share a store, a lease excludes them. An operation acquires the lease after the
//! entry and before it reads anything. The store checks the epoch of the lease with every write.
//! The lease is released before the end of the run is announced: with the last batch of the run, or
//! after that batch.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::host_leases::LeaseStatus;
use super::request::RunRequest;
use super::{ActiveThread, Engine, EngineInner, ThreadClaim, new_run_id, shutting_down};
use crate::caller_id::CallerId;
use crate::log::ThreadLease;
use crate::ports::Ports;
use crate::ports::store::{
    LeaseEpoch, Notification, QueueCondition, StoreError, ThreadHead, ThreadStatus,
};
use crate::run_memory::{MemoryCharge, RunMemory};
use crate::stop_flag::StopFlag;

/// Number of heartbeats per lease period. A single late or lost heartbeat does not let the lease
/// expire.
const HEARTBEATS_PER_LEASE: u64 = 3;

/// Attempts to acquire a lease that another host holds although no run is active on the thread.
/// That host has recorded the end of its run and is about to release the lease.
const LEASE_ATTEMPTS: u32 = 8;

/// Delay before the second attempt. The delay doubles with each attempt; in total, the delays are
/// more than a second.
const LEASE_RETRY_DELAY: Duration = Duration::from_millis(10);

impl Engine {
    /// Claims a thread for a run that starts, under the requested run id if no other run has it.
    ///
    /// # Errors
    ///
    /// `conflict` if the run id is taken; `busy` if a run is active on the thread.
    pub(super) async fn claim_for_run(
        &self,
        thread: &ThreadId,
        run_request: RunRequest,
    ) -> Result<ThreadClaim, Failure> {
        let mut slot = match run_request.run.clone() {
            None => self.claim(thread, new_run_id()).await?,
            // The run is pending under this id, and starts in its turn.
            Some(run) if run_request.queue_condition == QueueCondition::Pending => {
                self.claim(thread, run).await?
            }
            Some(run) => self.claim_for_run_id(thread, run).await?,
        };
        slot.request = run_request;
        Ok(slot)
    }

    async fn claim_for_run_id(
        &self,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<ThreadClaim, Failure> {
        if self.active().values().any(|active| active.run == run) {
            return Err(run_id_taken(&run));
        }
        self.reject_existing_run(&run).await?;
        let slot = self.claim(thread, run).await?;
        // Another host may have started and ended the same run during the wait for the lease.
        self.reject_existing_run(&slot.run).await?;
        Ok(slot)
    }

    pub(super) async fn reject_existing_run(&self, run: &RunId) -> Result<(), Failure> {
        let known = self.0.ports.store.run(run).await?;
        known.map_or(Ok(()), |_| Err(run_id_taken(run)))
    }

    /// Claims a thread: its entry in this process, and its lease. An orphaned run of the thread is
    /// recovered first.
    ///
    /// # Errors
    ///
    /// `busy` if a run is active on the thread, here or on another host.
    pub(super) async fn claim(
        &self,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<ThreadClaim, Failure> {
        self.recover_before_use(thread).await?;
        self.claim_without_recovery(thread, run).await
    }

    /// Claims a thread without recovering its orphaned run first.
    pub(super) async fn claim_without_recovery(
        &self,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<ThreadClaim, Failure> {
        let mut slot = self.claim_local(thread, run).await?;
        self.start_heartbeats().await?;
        slot.lease = Some(Arc::new(ThreadLease::new(self.0.leases.heartbeats.clone())));
        slot.lease_status = LeaseStatus::Unknown;
        match self.acquire_lease(thread).await {
            Ok(epoch) => {
                (slot.epoch, slot.lease_status) = (epoch, LeaseStatus::Held);
                Ok(slot)
            }
            Err(failure) => {
                // Another host holds the lease.
                if failure.code == code::BUSY {
                    slot.lease_status = LeaseStatus::NotHeld;
                }
                Err(failure)
            }
        }
    }

    /// Takes the entry of a thread. The end of a run is visible shortly before its entry is free,
    /// so this function waits if the run of the entry has ended.
    async fn claim_local(&self, thread: &ThreadId, run: RunId) -> Result<ThreadClaim, Failure> {
        loop {
            let busy = match self.try_claim_local(thread, run.clone()) {
                Err(failure) if failure.code == code::BUSY => failure,
                answer => return answer,
            };
            let Some(mut other) = self.active().get(thread).cloned() else { continue };
            let head = self.0.ports.store.thread(thread).await?;
            let has_ended = head.is_some_and(|ThreadHead { record, .. }| {
                record.run.as_ref() == Some(&other.run) && record.status != ThreadStatus::Running
            });
            if !has_ended {
                return Err(busy);
            }
            // An aborted run announces no end. The wait then fails, and the entry is free.
            let _ = other.done.wait_for(Option::is_some).await;
        }
    }

    /// Takes the entry of a thread, which no other operation of this process may have.
    fn try_claim_local(&self, thread: &ThreadId, run: RunId) -> Result<ThreadClaim, Failure> {
        let (done, receiver) = watch::channel(None);
        let (cancel, drain, handover) =
            (StopFlag::default(), StopFlag::default(), StopFlag::default());
        let mut active = self.active();
        // The check is under the lock, so that a shutdown stops every run that passes it.
        if self.is_shutting_down() {
            return Err(shutting_down());
        }
        if let Some(other) = active.get(thread) {
            return Err(Failure::new(
                code::BUSY,
                format!(
                    "run `{}` is active on thread `{thread}`; wait for it or cancel it",
                    other.run
                ),
            )
            .with_details(json!({ "run_id": other.run })));
        }
        active.insert(
            thread.clone(),
            ActiveThread {
                run: run.clone(),
                caller: CallerId::default(),
                cancel: cancel.clone(),
                drain: drain.clone(),
                handover: handover.clone(),
                done: receiver,
                log: Weak::new(),
            },
        );
        Ok(ThreadClaim {
            engine: self.clone(),
            thread: thread.clone(),
            run,
            epoch: LeaseEpoch(0),
            lease: None,
            lease_status: LeaseStatus::NotHeld,
            request: RunRequest::default(),
            memory: RunMemory::default(),
            state_memory: MemoryCharge::default(),
            cancel,
            drain,
            handover,
            done,
        })
    }

    /// Acquires the lease of a thread. The end of a run can be visible before its lease is
    /// released, so the acquisition is retried if no run is active on the thread.
    async fn acquire_lease(&self, thread: &ThreadId) -> Result<LeaseEpoch, Failure> {
        let EngineInner { ports: Ports { store, .. }, leases, .. } = &*self.0;
        let mut pause = LEASE_RETRY_DELAY;
        let mut attempt = 1;
        loop {
            let holder = match store.acquire_lease(thread, leases.holder()).await {
                Err(StoreError::Leased { holder, .. }) => holder,
                answer => return Ok(answer?),
            };
            let head = store.thread(thread).await?;
            let is_at_work = head.is_some_and(|it| it.record.status == ThreadStatus::Running);
            if is_at_work || attempt == LEASE_ATTEMPTS {
                return Err(leased_by_other_host(thread, &holder));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
            attempt += 1;
        }
    }

    /// Sends the first heartbeat of this host, if none was sent yet, and all later ones in the
    /// background.
    pub(super) async fn start_heartbeats(&self) -> Result<(), StoreError> {
        self.0
            .leases
            .heartbeat_started
            .get_or_try_init(|| self.send_first_heartbeat())
            .await
            .map(drop)
    }

    async fn send_first_heartbeat(&self) -> Result<(), StoreError> {
        let store = &self.0.ports.store;
        self.0.leases.heartbeats.send(store.as_ref()).await?;
        let pause = Duration::from_millis(store.lease_ms() / HEARTBEATS_PER_LEASE);
        self.0.runtime.spawn(heartbeat_loop(Arc::downgrade(&self.0), pause));
        self.start_stray_release(pause);
        self.start_listener();
        Ok(())
    }

    /// Starts the release of stray leases in the background. This function is not `async`: the
    /// release of a stray lease claims its thread, which starts the heartbeats, so the future would
    /// contain itself.
    fn start_stray_release(&self, pause: Duration) {
        self.0.runtime.spawn(stray_release_loop(Arc::downgrade(&self.0), pause));
    }

    /// Records a lease as stray, so that it is released later. Does nothing if no other host shares
    /// the store.
    fn remember_stray(&self, thread: &ThreadId, epoch: Option<LeaseEpoch>) {
        if self.is_shared() {
            self.0.leases.add_stray(thread, epoch);
        }
    }

    /// Releases all stray leases (those that no claim of this host uses; see `HostLeases::strays`).
    /// Stops at the first failure of the store.
    async fn release_strays(&self) {
        loop {
            let Some((thread, epoch)) = self.0.leases.strays().pop_first() else { return };
            let is_given_back = match epoch {
                Some(epoch) => release_lease(self, &thread, epoch).await,
                None => self.reacquire_and_release(&thread).await,
            };
            if !is_given_back {
                return;
            }
        }
    }

    /// Releases a lease with an unknown epoch: a new lease of the same holder replaces it. Returns
    /// false if the store fails.
    async fn reacquire_and_release(&self, thread: &ThreadId) -> bool {
        match self.claim_without_recovery(thread, new_run_id()).await {
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
async fn heartbeat_loop(engine: Weak<EngineInner>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(engine) = engine.upgrade() else { return };
        let heartbeat = engine.leases.heartbeats.send(engine.ports.store.as_ref());
        let error = match tokio::time::timeout(pause, heartbeat).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => format!("no response within {} ms", pause.as_millis()),
        };
        tracing::warn!(%error, "heartbeat failed");
    }
}

/// Releases stray leases once per heartbeat interval, until the engine is dropped. This loop is
/// separate from the heartbeats, because a store that fails may take long to respond.
async fn stray_release_loop(engine: Weak<EngineInner>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(engine) = engine.upgrade() else { return };
        Engine(engine).release_strays().await;
    }
}

pub(super) fn run_id_taken(run: &RunId) -> Failure {
    let text = format!("there is a run `{run}` already; choose another id");
    Failure::new(code::CONFLICT, text).with_details(json!({ "run_id": run }))
}

fn leased_by_other_host(thread: &ThreadId, holder: &str) -> Failure {
    Failure::new(
        code::BUSY,
        format!("thread `{thread}` is in use on another host; wait for its run or cancel it"),
    )
    .with_details(json!({ "host": holder }))
}

impl ThreadClaim {
    /// Releases the lease.
    pub(super) async fn release(&mut self) {
        if self.lease_status == LeaseStatus::Held {
            // This future may be dropped while it waits for the store.
            self.lease_status = LeaseStatus::Unknown;
            release_lease(&self.engine, &self.thread, self.epoch).await;
            self.lease_status = LeaseStatus::NotHeld;
        }
    }

    /// Records that the last batch under the lease has released the lease.
    pub(super) fn lease_ended(&mut self) {
        self.lease_status = LeaseStatus::NotHeld;
    }

    /// Releases the lease of a run that has not ended, and notifies the hosts that share the store,
    /// which recover the run. If the notification is lost, they find the run with their next scan.
    pub(super) async fn hand_over(mut self) {
        self.release().await;
        let engine = self.engine.clone();
        drop(self);
        engine.notify(&Notification::HandedOver).await;
    }
}

impl Drop for ThreadClaim {
    fn drop(&mut self) {
        // Held calls are released before another operation can start on the thread.
        self.engine.release_unneeded(&self.thread);
        self.engine.active().remove(&self.thread);
        match self.lease_status {
            LeaseStatus::NotHeld => {}
            LeaseStatus::Unknown => self.engine.remember_stray(&self.thread, None),
            LeaseStatus::Held => {
                let (engine, thread, epoch) =
                    (self.engine.clone(), self.thread.clone(), self.epoch);
                let runtime = engine.0.runtime.clone();
                engine.0.leases.releasing.send_modify(|returning| *returning += 1);
                runtime.spawn(async move {
                    release_lease(&engine, &thread, epoch).await;
                    engine.0.leases.releasing.send_modify(|returning| *returning -= 1);
                });
            }
        }
    }
}

/// Releases a lease. If the store fails, records the lease as stray, so that it is released later,
/// and returns false.
async fn release_lease(engine: &Engine, thread: &ThreadId, epoch: LeaseEpoch) -> bool {
    let Err(error) = engine.0.ports.store.release_lease(thread, epoch).await else { return true };
    tracing::warn!(%thread, %error, "cannot release the lease of a thread; it is released later");
    engine.remember_stray(thread, Some(epoch));
    false
}
