//! The queue of pending runs: adds, cancels, deletes and awaits them.
//!
//! In this process, `thread_lock` serializes the operations on the runs of a thread. Across hosts,
//! the store serializes them: a run starts only in its turn, and a run that was removed from the
//! queue never starts.

use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_graph::principal::Principal;

use super::balance::ASSIGNMENT_DELAY;
use super::dispatch::RECHECK_DELAY;
use super::lease::run_id_taken;
use super::threads::NewThread;
use super::{Engine, new_run_id, run_not_found, shutting_down};
use crate::caller_id::CallerId;
use crate::hostcall::runs::{RunRef, RunService as _};
use crate::limit::THREAD_PENDING_RUNS;
use crate::ports::store::{
    LeaseHolder, Notification, PendingQuery, PendingRun, RunRecord, RunSpec, StoreError,
    ThreadRecord, ThreadStatus,
};
use crate::run_walk::RunWalk;

impl Engine {
    /// Adds a pending run to the queue of its thread, and notifies the hosts that share the store.
    /// `host` is the host that is to start the run. If the notification is lost, hosts find the run
    /// when they next list the pending runs. The record of an unbound thread gets the app and the
    /// graph `requested`, so that lists have them while the run is pending.
    pub(super) async fn enqueue(
        &self,
        record: &RunRecord,
        host: Option<LeaseHolder>,
        requested: Option<(AppName, GraphName)>,
    ) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let added = store.enqueue(record, requested.as_ref()).await;
        if !added.map_err(|error| self.write_failure(error))? {
            return Err(run_id_taken(&record.id));
        }
        let (thread, due_ms, caller) = (record.thread.clone(), record.due_ms(), record.caller());
        self.schedule_check(&thread, due_ms, caller, host.as_ref());
        self.start_dispatcher();
        self.notify(&Notification::Enqueued { thread, due_ms, caller, host }).await;
        Ok(())
    }

    /// Schedules a check of a thread at `due_ms`, milliseconds since 1970, for a run of a caller.
    /// The check is delayed if another host is to start the run.
    pub(super) fn schedule_check(
        &self,
        thread: &ThreadId,
        due_ms: i64,
        caller: CallerId,
        host: Option<&LeaseHolder>,
    ) {
        let is_left = host.is_some_and(|host| host != self.holder());
        let pause_ms = if is_left { ASSIGNMENT_DELAY.as_millis() as i64 } else { 0 };
        self.0.dispatch.schedule(thread, due_ms.saturating_add(pause_ms), caller);
    }

    /// Returns the pending runs of a thread in queue order.
    pub(super) async fn pending_of(&self, thread: &ThreadId) -> Result<Vec<PendingRun>, Failure> {
        let (thread, limit) = (Some(thread.clone()), THREAD_PENDING_RUNS);
        let query = PendingQuery { thread, limit, ..PendingQuery::default() };
        Ok(self.0.ports.store.pending(&query).await?)
    }

    /// Removes all pending runs of a thread from the queue and cancels them, or deletes them if
    /// `forget` is true. Keeps the run `except`, which is about to start and may be pending because
    /// another host has enqueued it.
    pub(super) async fn dequeue_all(
        &self,
        thread: &ThreadId,
        forget: bool,
        except: Option<&RunId>,
    ) -> Result<(), Failure> {
        for pending in self.pending_of(thread).await? {
            if Some(&pending.run) != except {
                self.dequeue(thread, &pending.run, forget).await?;
            }
        }
        Ok(())
    }

    /// Removes a pending run from the queue and cancels it, or deletes it if `forget` is true.
    /// Returns false if the run is not pending.
    async fn dequeue(&self, thread: &ThreadId, run: &RunId, forget: bool) -> Result<bool, Failure> {
        let store = &self.0.ports.store;
        let mut ended = None;
        if !forget {
            let record = store.run(run).await?;
            let Some(record) = record else { return Ok(false) };
            ended = Some(self.ended_before_start(record, RunStatus::Cancelled, None));
        }
        let is_out = store.dequeue(run, ended.as_ref()).await?;
        self.0.dispatch.run_left_queue(run);
        if !self.has_pending(thread).await? {
            self.0.dispatch.clear(thread);
        }
        Ok(is_out)
    }

    /// Returns the record of a run that ended before it started.
    pub(super) fn ended_before_start(
        &self,
        record: RunRecord,
        status: RunStatus,
        failure: Option<Failure>,
    ) -> RunRecord {
        RunRecord { status, failure, ended_ms: Some(self.now_ms()), ..record }
    }

    /// Cancels a pending or active run on behalf of a principal. If `forget` is true, the run is
    /// also deleted with its checkpoints.
    ///
    /// # Errors
    ///
    /// `not-found` if the run is neither pending nor active.
    pub async fn cancel_run(
        &self,
        run: &RunRef,
        forget: bool,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        if self.cancel_unless_ended(run, forget, principal).await? {
            Ok(())
        } else {
            Err(run_not_found(run))
        }
    }

    /// Like [`Engine::cancel_run`], but returns false if the run has ended.
    pub(super) async fn cancel_unless_ended(
        &self,
        run: &RunRef,
        forget: bool,
        principal: Option<&Principal>,
    ) -> Result<bool, Failure> {
        let (engine, run, principal) = (self.clone(), run.clone(), principal.cloned());
        let work = async move { engine.cancel_locked(&run, forget, principal.as_ref()).await };
        self.run_to_completion(work).await
    }

    async fn cancel_locked(
        &self,
        run: &RunRef,
        forget: bool,
        principal: Option<&Principal>,
    ) -> Result<bool, Failure> {
        let _lock = self.0.locks.lock(&run.thread).await;
        let record = self.0.ports.store.run(&run.run).await?;
        let record = record.filter(|record| record.thread == run.thread);
        let record = record.ok_or_else(|| run_not_found(run))?;
        // The run may start between the read of its record and its removal from the queue.
        if record.status == RunStatus::Pending
            && self.dequeue(&run.thread, &run.run, forget).await?
        {
            return Ok(true);
        }
        if !matches!(record.status, RunStatus::Pending | RunStatus::Running) {
            return Ok(false);
        }
        self.cancel_started(run, principal).await?;
        if forget {
            self.roll_back(&run.thread, &run.run).await?;
        }
        Ok(true)
    }

    /// Deletes a run with its checkpoints. An active run is cancelled first. Does nothing if the
    /// run does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn remove_run(&self, run: &RunRef) -> Result<(), Failure> {
        let (engine, run) = (self.clone(), run.clone());
        self.run_to_completion(async move { engine.remove_locked(&run).await }).await
    }

    async fn remove_locked(&self, run: &RunRef) -> Result<(), Failure> {
        let _lock = self.0.locks.lock(&run.thread).await;
        let record = self.0.ports.store.run(&run.run).await?;
        let Some(record) = record.filter(|record| record.thread == run.thread) else {
            return Ok(());
        };
        if record.status == RunStatus::Pending && self.dequeue(&run.thread, &run.run, true).await? {
            return Ok(());
        }
        if matches!(record.status, RunStatus::Pending | RunStatus::Running) {
            self.cancel_started(run, None).await?;
        }
        self.roll_back(&run.thread, &run.run).await
    }

    /// Deletes a thread with its runs. An active run is cancelled first. Does nothing if the thread
    /// does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn remove_thread(&self, thread: &ThreadId) -> Result<(), Failure> {
        let (engine, thread) = (self.clone(), thread.clone());
        self.run_to_completion(async move { engine.remove_thread_locked(&thread).await }).await
    }

    async fn remove_thread_locked(&self, thread: &ThreadId) -> Result<(), Failure> {
        let _lock = self.0.locks.lock(thread).await;
        self.dequeue_all(thread, true, None).await?;
        let head = self.0.ports.store.thread(thread).await?;
        let record = head.map(|head| head.record);
        if let Some(ThreadRecord { status: ThreadStatus::Running, run: Some(run), .. }) = record {
            self.cancel_started(&RunRef { thread: thread.clone(), run }, None).await?;
        }
        self.delete_thread(thread).await
    }

    /// Deletes a thread whose stored data is damaged. The owner of such a thread is unknown, so
    /// only the operator may call this function. Returns false if the thread is readable or does
    /// not exist.
    ///
    /// # Errors
    ///
    /// `busy` if a run is active on the thread; errors of the store.
    pub async fn remove_damaged(&self, thread: &ThreadId) -> Result<bool, Failure> {
        if !self.is_damaged(thread).await {
            return Ok(false);
        }
        let (engine, thread) = (self.clone(), thread.clone());
        self.run_to_completion(async move { engine.remove_damaged_locked(&thread).await }).await
    }

    async fn is_damaged(&self, thread: &ThreadId) -> bool {
        matches!(self.0.ports.store.thread(thread).await, Err(StoreError::Corrupt { .. }))
    }

    async fn remove_damaged_locked(&self, thread: &ThreadId) -> Result<bool, Failure> {
        let _lock = self.0.locks.lock(thread).await;
        if !self.is_damaged(thread).await {
            return Ok(false);
        }
        let _slot = self.claim_without_recovery(thread, new_run_id()).await?;
        self.delete_stored(thread).await?;
        self.clear_set_aside(thread);
        self.0.dispatch.clear(thread);
        Ok(true)
    }

    /// Returns true if a thread has pending runs, due or not.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn has_pending(&self, thread: &ThreadId) -> Result<bool, Failure> {
        Ok(!self.pending_of(thread).await?.is_empty())
    }

    /// Returns true if a run is pending, due or not.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn is_pending(&self, run: &RunRef) -> Result<bool, Failure> {
        let record = self.0.ports.store.run(&run.run).await?;
        let record = record.filter(|record| record.thread == run.thread);
        Ok(record.is_some_and(|record| record.status == RunStatus::Pending))
    }

    /// Returns true if a thread has a pending run that is due.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn has_due(&self, thread: &ThreadId) -> Result<bool, Failure> {
        let now_ms = self.now_ms();
        Ok(self.pending_of(thread).await?.iter().any(|pending| pending.due_ms <= now_ms))
    }

    /// Waits until a run is no longer pending, and returns its record; `None` if the run does not
    /// exist. A run that was cancelled before its start is no longer pending.
    ///
    /// # Errors
    ///
    /// `unavailable` if the host shuts down while the run is pending; errors of the store.
    pub async fn wait_started(&self, run: &RunRef) -> Result<Option<RunRecord>, Failure> {
        loop {
            // The subscription precedes the query, so that no change in between is missed.
            let mut left = self.0.dispatch.subscribe_left(&run.run);
            let mut events = self.watch(&run.thread);
            events.borrow_and_update();
            let record = self.0.ports.store.run(&run.run).await?;
            let record = record.filter(|record| record.thread == run.thread);
            if record.as_ref().is_none_or(|record| record.status != RunStatus::Pending) {
                if self.has_known_pending(&run.thread) {
                    self.0.dispatch.schedule_at(&run.thread, self.now_ms());
                }
                return Ok(record);
            }
            tokio::select! {
                _ = left.changed() => {}
                // Another host may have started the run.
                Ok(()) = events.changed() => {}
                // Another host may have removed the run or deleted its thread.
                () = tokio::time::sleep(RECHECK_DELAY) => {}
                () = self.0.shutdown.wait() => return Err(shutting_down()),
            }
        }
    }

    /// Waits until the operation that holds the lock of a thread in this process has completed.
    pub async fn wait_unlocked(&self, thread: &ThreadId) {
        drop(self.0.locks.lock(thread).await);
    }

    /// Deletes a run that has ended, with its checkpoints. A thread without remaining checkpoints
    /// is created again as unbound, with its runs that never started. If the host crashes between
    /// these steps, the thread and these runs are lost.
    pub(super) async fn roll_back(&self, thread: &ThreadId, run: &RunId) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let Some(head) = store.thread(thread).await? else { return Ok(()) };
        let unbegun = self.never_started_runs(thread, run).await?;
        self.delete_runs(thread, std::slice::from_ref(run)).await?;
        if store.thread(thread).await?.is_none() {
            // The runs that never started request the graph of the thread.
            let ThreadRecord { app, graph, .. } = &head.record;
            let requested_graph = (!unbegun.is_empty()).then(|| (app.clone(), graph.clone()));
            let new = NewThread { requested_graph, ..recreated_thread(head.record) };
            self.create_thread(new).await?;
            for record in unbegun {
                self.restore_never_started(record).await?;
            }
        }
        Ok(())
    }

    /// Returns the runs of a thread that never started, oldest first. The list is empty if a run
    /// other than `run` has started: the thread then outlives `run`.
    async fn never_started_runs(
        &self,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<Vec<RunRecord>, Failure> {
        let mut runs = RunWalk::newest_first(self.0.ports.store.as_ref(), thread);
        let mut unbegun = Vec::new();
        while let Some(record) = runs.next().await? {
            if record.has_started() && record.id != *run {
                return Ok(Vec::new());
            }
            if !record.has_started() && record.spec.is_some() {
                unbegun.push(record);
            }
        }
        unbegun.reverse();
        Ok(unbegun)
    }

    /// Stores the record of a run that never started on the recreated thread of the run.
    async fn restore_never_started(&self, record: RunRecord) -> Result<(), Failure> {
        if record.status == RunStatus::Pending {
            return self.enqueue(&record, None, None).await;
        }
        // The due time keeps other hosts from starting the run before it is removed from the queue.
        let later = |spec: RunSpec| Box::new(RunSpec { due_ms: i64::MAX, ..spec });
        let pending = RunRecord {
            status: RunStatus::Pending,
            failure: None,
            ended_ms: None,
            last_checkpoint: None,
            spec: record.spec.clone().map(|spec| later(*spec)),
            ..record.clone()
        };
        let store = &self.0.ports.store;
        store.enqueue(&pending, None).await?;
        store.dequeue(&record.id, Some(&record)).await?;
        Ok(())
    }

    pub(super) async fn existing_run(&self, run: &RunId) -> Result<RunRecord, Failure> {
        let known = self.0.ports.store.run(run).await?;
        known.ok_or_else(|| Failure::internal(format!("run `{run}` has started but has no record")))
    }

    /// Runs `work` to completion, even if the future of the caller is dropped.
    pub(super) async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.0.runtime.spawn(work).await;
        done.unwrap_or_else(|error| {
            Err(Failure::internal(format!("an operation on a run failed: {error}")))
        })
    }
}

fn recreated_thread(record: ThreadRecord) -> NewThread {
    NewThread {
        thread: Some(record.id),
        tenant: record.tenant,
        metadata: record.metadata,
        ttl: record.ttl,
        created_ms: Some(record.created_ms),
        requested_graph: None,
    }
}
