//! Starts, resumes, cancels and reads runs.
//!
//! [`Engine`] is a handle that is cheap to clone. A thread has at most one active run. An operation
//! inserts an entry for its thread into `active` before it reads the thread, so at most one
//! operation at a time writes to a thread.

mod admission;
mod answers;
mod app_code;
mod balance;
pub mod call_node;
pub mod call_once;
mod create;
mod dispatch;
mod documents;
mod drain;
mod edit;
mod export;
mod find_function;
mod fork;
mod held_calls;
mod history;
mod host_leases;
pub mod interrupts;
mod lease;
mod lists;
mod load_balance;
pub mod migrate;
mod owner;
mod queue;
pub mod recover;
mod recovered_usage;
mod recovery_count;
mod recovery_state;
mod remote_run;
mod request;
mod retention;
mod run_places;
mod run_task;
pub mod settle;
mod start;
mod start_memory;
mod thread_lock;
pub mod threads;
mod unanswered;
mod web;
mod write_probe;
mod write_recovery;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, NodeName, RunId, ThreadId};
use wattle_graph::principal::Principal;

use crate::caller_id::CallerId;
use crate::caps::Caps;
use crate::catalog::Catalog;
use crate::driver::RunEnd;
use crate::fair_share::Pool;
use crate::free_disk::FreeDisk;
use crate::hostcall::runs::{
    EndedRun, InterruptView, ListThreads, ResumeRun, RunOutcome, RunRef, RunService, StartRun,
    ThreadView, UpdateThread,
};
use crate::log::{ThreadLease, ThreadLog};
use crate::memory_budget::CacheBudget;
use crate::ports::Ports;
use crate::ports::store::{
    LeaseEpoch, LeaseHolder, RunRecord, ThreadHead, ThreadRecord, ThreadSearchPage, ThreadTtl,
};
use crate::quota::Quotas;
use crate::run_memory::{MemoryCharge, RunMemory, RunMemoryPool};
use crate::schemas::SchemaCache;
use crate::state_cache::StateCache;
use crate::stop_flag::StopFlag;
use crate::tail::pages::Pages;
use crate::view;
use request::RunRequest;
pub use request::answers_by_interrupt;

/// Maximum time that a cancel request waits for the end of the run. If the run has not ended by
/// then, the request returns, and the run ends as soon as the work that delays it returns.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of each of the last steps of a shutdown: the host's last report, the end of aborted
/// runs, and the release of leases.
const SHUTDOWN_STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Settings of an [`Engine`]: its runtime, its name as a lease holder, and its limits. Every
/// setting has a default.
#[derive(Clone, Default)]
pub struct EngineConfig {
    /// Runtime that executes runs and guests. This runtime is separate from the runtime that serves
    /// HTTP, so that a busy guest does not delay requests. Default: the current runtime.
    pub runtime: Option<Handle>,
    /// Time to live of threads that do not set one. Default: threads are kept forever.
    pub thread_ttl: Option<ThreadTtl>,
    /// Name under which the engine holds leases. An engine that has the name of an earlier engine
    /// can replace that engine's leases immediately. Default: a new UUID.
    pub holder: Option<LeaseHolder>,
    /// Caps on what threads, apps and tenants store.
    pub caps: Caps,
    /// Maximum number of concurrent runs, at least 1. Further runs stay pending until a run ends.
    /// The host divides this number between callers. Default: no limit.
    pub max_runs: Option<usize>,
    /// Maximum number of guest instances that web handlers, tools and nodes that clients call, and
    /// the tools that these call hold. One caller can hold at most half of the instances that other
    /// callers do not hold. The engine rejects calls above these limits. Default: no limit.
    pub max_handlers: Option<usize>,
    /// Maximum memory that the states, journals, outcomes and events of all runs take, in bytes.
    /// The runs of one caller hold at most half of what runs of other callers leave. A run waits
    /// for memory before it starts. Default: no limit.
    pub runs_memory_bytes: Option<u64>,
    /// Limits of the caches of states, compiled schemas and pages of logs. Default: those of the
    /// default budget.
    pub caches: CacheBudget,
    /// The free space of the disk. Below its floor, no run begins, and no thread, blob or document
    /// is stored. Default: no floor.
    pub free_disk: FreeDisk,
}

/// A handle to the engine that is cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    ports: Ports,
    catalog: Arc<Catalog>,
    runtime: Handle,
    active: Mutex<HashMap<ThreadId, ActiveThread>>,
    leases: host_leases::HostLeases,
    /// Progress of the recovery, and the threads that are set aside.
    recovery: recovery_state::RecoveryState,
    /// The wait until the store accepts writes again.
    write_probe: write_probe::WriteProbe,
    locks: thread_lock::ThreadLocks,
    dispatch: Arc<dispatch::DispatchSchedule>,
    load_balance: load_balance::LoadBalance,
    thread_ttl: Option<ThreadTtl>,
    quotas: Arc<Quotas>,
    /// Guest instances of web handlers, and of tools and nodes that clients call, divided between
    /// callers.
    handlers: Pool<CallerId>,
    /// Memory of all runs, divided between callers.
    run_memory: RunMemoryPool,
    /// Compiled schemas of interrupts and tools.
    schemas: Arc<SchemaCache>,
    /// Pages of event logs, shared by the tails that read them.
    pages: Pages,
    /// Cache of the states of threads, from which checkpoints are read.
    states: StateCache,
    /// Set when a shutdown begins. Active runs stop before their next superstep.
    shutdown: StopFlag,
    /// Set when the grace period of a shutdown ends. Runs that are still active are aborted.
    abort: StopFlag,
}

/// Entry of a thread that a run uses, or that another operation uses under a new run id.
#[derive(Clone)]
struct ActiveThread {
    run: RunId,
    /// Caller for which the run counts. The caller is unknown until the run starts.
    caller: CallerId,
    cancel: StopFlag,
    drain: StopFlag,
    handover: StopFlag,
    done: watch::Receiver<Option<Arc<RunEnd>>>,
    /// Log of the run. The reference is dangling until the run starts.
    log: Weak<ThreadLog>,
}

impl ActiveThread {
    /// Returns true if a run writes to the thread.
    fn has_active_run(&self) -> bool {
        self.log.strong_count() > 0
    }
}

/// A claim of a thread: its entry in `active` and its lease. Both are released on drop.
struct ThreadClaim {
    engine: Engine,
    thread: ThreadId,
    run: RunId,
    /// Epoch of the lease; 0 before the lease is acquired.
    epoch: LeaseEpoch,
    /// Validity of the lease; `None` before the lease is acquired.
    lease: Option<Arc<ThreadLease>>,
    /// State of the lease, which decides what the drop releases in the store.
    lease_status: host_leases::LeaseStatus,
    /// The request for which the thread is claimed.
    request: RunRequest,
    /// Memory of the run, once it has any.
    memory: RunMemory,
    /// Memory of the state and of the events with which the run starts, until the run takes it.
    state_memory: MemoryCharge,
    cancel: StopFlag,
    drain: StopFlag,
    /// Set when the run must stop before its next superstep and be handed over.
    handover: StopFlag,
    done: watch::Sender<Option<Arc<RunEnd>>>,
}

impl Engine {
    /// Creates an engine over the adapters and the apps.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime if the configuration has no runtime.
    pub fn new(ports: Ports, catalog: Arc<Catalog>, config: EngineConfig) -> Self {
        let runtime = config.runtime.unwrap_or_else(Handle::current);
        let (active, shutdown, abort) =
            (Mutex::default(), StopFlag::default(), StopFlag::default());
        let leases = host_leases::HostLeases::new(config.holder, ports.clock.clone());
        let quotas = Arc::new(Quotas::new(config.caps).with_free_disk(config.free_disk));
        let thread_ttl = config.thread_ttl;
        let recovery = recovery_state::RecoveryState::default();
        let caches = config.caches;
        let states = StateCache::with_capacity(ports.store.clone(), caches.states_bytes);
        let load_balance = {
            let (max_runs, now_ms) = (config.max_runs, ports.clock.now_ms());
            load_balance::LoadBalance::new(max_runs, now_ms, leases.holder().clone())
        };
        Self(Arc::new(EngineInner {
            ports,
            catalog,
            runtime,
            active,
            leases,
            recovery,
            write_probe: write_probe::WriteProbe::default(),
            locks: thread_lock::ThreadLocks::default(),
            dispatch: Arc::default(),
            load_balance,
            thread_ttl,
            quotas,
            handlers: Pool::new(config.max_handlers.unwrap_or(usize::MAX)),
            run_memory: RunMemoryPool::new(config.runs_memory_bytes.unwrap_or(u64::MAX)),
            schemas: Arc::new(SchemaCache::with_capacity(caches.schemas_bytes)),
            pages: Pages::new(caches.log_pages_bytes),
            states,
            shutdown,
            abort,
        }))
    }

    /// Returns the adapters.
    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// Returns the loaded apps.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.0.catalog
    }

    /// Returns a receiver of the sequence number of a thread's newest durable event.
    pub fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.0.ports.store.watch(thread)
    }

    /// Returns the pages of event logs that tails share.
    pub(crate) fn pages(&self) -> &Pages {
        &self.0.pages
    }

    /// Returns the states of threads, which reads of checkpoints share.
    pub fn states(&self) -> &StateCache {
        &self.0.states
    }

    /// Locks the entries of the threads in use. No code that can panic runs under this lock.
    fn active(&self) -> MutexGuard<'_, HashMap<ThreadId, ActiveThread>> {
        self.0.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if other hosts can work on the same threads.
    pub fn is_shared(&self) -> bool {
        self.0.ports.store.is_shared()
    }

    /// Returns true if a run or another operation of this process uses the thread.
    pub fn is_active(&self, thread: &ThreadId) -> bool {
        self.active().contains_key(thread)
    }

    /// Returns the entry of a run that is active in this process.
    fn active_run(&self, run: &RunRef) -> Option<ActiveThread> {
        self.active().get(&run.thread).filter(|active| active.run == run.run).cloned()
    }

    /// Returns the head of a thread that the caller has claimed, or `None` if the thread does not
    /// exist or has expired. Deletes an expired thread, so that a new one can have its id.
    async fn unexpired_thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, Failure> {
        let store = &self.0.ports.store;
        let Some(head) = store.thread(thread).await? else {
            return Ok(None);
        };
        if head.record.is_expired(self.now_ms()) {
            self.delete_expired(thread).await?;
            return Ok(None);
        }
        Ok(Some(head))
    }

    /// Returns the head of a thread that the caller has not claimed, or `None` if the thread does
    /// not exist or has expired. An expired thread is not deleted: without a claim, another request
    /// may have created a thread with the same id since.
    ///
    /// # Errors
    ///
    /// The failure of the store.
    pub async fn visible_thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, Failure> {
        let head = self.0.ports.store.thread(thread).await?;
        Ok(head.filter(|head| !head.record.is_expired(self.now_ms())))
    }

    async fn delete_expired(&self, thread: &ThreadId) -> Result<(), Failure> {
        tracing::info!(%thread, "thread expired");
        self.delete_stored(thread).await
    }

    /// Deletes a thread from the store.
    async fn delete_stored(&self, thread: &ThreadId) -> Result<(), Failure> {
        self.0.ports.store.delete_thread(thread).await?;
        self.0.states.remove(thread);
        Ok(())
    }

    /// Begins a shutdown: no run starts from now on, and active runs stop before their next
    /// superstep.
    pub fn begin_shutdown(&self) {
        self.0.shutdown.set();
        self.active().values().for_each(|active| active.handover.set());
    }

    /// Shuts down the engine. No run starts, and active runs stop before their next superstep.
    /// Supersteps in progress have `grace` to complete; runs that are still active then are
    /// aborted. The engine releases its leases and notifies the hosts that share the store, which
    /// recover the runs. Without such a host, [`Engine::recover`] continues the runs after the next
    /// start, as after a crash. Does nothing if the engine has already shut down.
    pub async fn shutdown(&self, grace: Duration) {
        if self.0.abort.is_set() {
            return;
        }
        self.begin_shutdown();
        let runs: Vec<_> = self.active().values().map(|active| active.done.clone()).collect();
        self.report_shutdown().await;
        let ends = || {
            futures::future::join_all(runs.iter().cloned().map(|mut done| async move {
                // An error means that the run stopped without an outcome.
                let _ = done.wait_for(Option::is_some).await;
            }))
        };
        if tokio::time::timeout(grace, ends()).await.is_err() {
            self.0.abort.set();
            // A run that blocks its runtime thread cannot be aborted; such a run ends with the
            // process.
            if tokio::time::timeout(SHUTDOWN_STEP_TIMEOUT, ends()).await.is_err() {
                let runs = self.active().len();
                tracing::warn!(
                    runs,
                    "runs do not stop; they are recovered by another host or after the next start"
                );
            }
        }
        self.0.abort.set();
        // If the store does not respond, the leases expire.
        let _ = tokio::time::timeout(SHUTDOWN_STEP_TIMEOUT, self.0.leases.wait_released()).await;
    }

    /// Returns true once a shutdown has begun. Active runs then stop without an outcome.
    fn is_shutting_down(&self) -> bool {
        self.0.shutdown.is_set()
    }

    /// Waits until a run has ended or is interrupted and its thread is free, without reading the
    /// result.
    ///
    /// # Errors
    ///
    /// The errors that [`RunService::wait`] returns before the run ends.
    pub async fn wait_ended(&self, run: &RunRef) -> Result<(), Failure> {
        self.run_end(run).await.map(drop)
    }

    /// Waits until a run has ended or is interrupted. Returns `None` if this process did not
    /// execute the end of the run.
    async fn run_end(&self, run: &RunRef) -> Result<Option<Arc<RunEnd>>, Failure> {
        self.recover_before_use(&run.thread).await?;
        if self.active_run(run).is_none() {
            self.wait_started(run).await?;
        }
        let active = self.active_run(run);
        if let Some(mut active) = active
            && let Ok(end) = active.done.wait_for(Option::is_some).await
        {
            return Ok(end.clone());
        }
        if self.may_run_remotely(&run.thread) && !self.is_shutting_down() {
            self.wait_remote(run).await?;
        }
        Ok(None)
    }

    /// Reads the result of a run that has ended from the store.
    async fn ended_run(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        let store = self.0.ports.store.as_ref();
        let record = store.run(&run.run).await?;
        let Some(record) = record.filter(|record| record.thread == run.thread) else {
            return Err(run_not_found(run));
        };
        let (state, interrupts, next) = match record.last_checkpoint {
            // Later runs may have changed the thread.
            Some(last) => self.end_at(&record, last).await?,
            None => {
                let view = self.thread(&run.thread).await?;
                let view = view.ok_or_else(|| thread_not_found(&run.thread))?;
                (view.state, view.interrupts, view.next)
            }
        };
        let outcome = match record.status {
            RunStatus::Completed => RunOutcome::Completed,
            RunStatus::Cancelled => RunOutcome::Cancelled,
            RunStatus::Interrupted => RunOutcome::Interrupted { interrupts, next },
            RunStatus::Failed => RunOutcome::Failed {
                failure: record.failure.unwrap_or_else(|| Failure::internal("the run failed")),
            },
            RunStatus::Pending | RunStatus::Running => {
                return Err(self.not_recovered(&run.thread, &run.run));
            }
        };
        Ok(EndedRun { run: run.clone(), outcome, state })
    }

    /// Returns the state at the last checkpoint of a run, and for an interrupted run its interrupts
    /// and the nodes that follow.
    async fn end_at(
        &self,
        record: &RunRecord,
        last: CheckpointId,
    ) -> Result<(Value, Vec<InterruptView>, Vec<NodeName>), Failure> {
        let thread = &record.thread;
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let tuple = self.root_checkpoint(thread, last).await?;
        let state = tuple.checkpoint.state();
        if record.status != RunStatus::Interrupted {
            return Ok((state, Vec::new(), Vec::new()));
        }
        let next = tuple.checkpoint.meta.next.iter().map(|trigger| trigger.node.clone()).collect();
        Ok((state, self.interrupts_of_stop(&head, tuple).await?, next))
    }
}

impl Engine {
    /// Cancels a pending or active run on behalf of a principal. Does nothing if the run has ended.
    ///
    /// # Errors
    ///
    /// `not-found` if the run does not exist; errors of the store.
    pub async fn cancel_for(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        if self.active_run(run).is_none() {
            let record = self.0.ports.store.run(&run.run).await?;
            if record.is_some_and(|record| record.status == RunStatus::Pending) {
                // The run may start and end before the thread is locked.
                return self.cancel_unless_ended(run, false, principal).await.map(drop);
            }
        }
        self.cancel_started(run, principal).await
    }

    /// Cancels a run that has started. Does nothing if the run has ended.
    async fn cancel_started(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        self.recover_before_use(&run.thread).await?;
        let active = self.active_run(run);
        if let Some(mut active) = active {
            active.cancel.set_for(principal.cloned());
            let ended = active.done.wait_for(Option::is_some);
            match tokio::time::timeout(CANCEL_TIMEOUT, ended).await {
                Ok(Ok(_)) => return Ok(()),
                // The run stopped without an outcome. Another host continues it, or this host after
                // its next start.
                Ok(Err(_)) => {}
                Err(_elapsed) => {
                    tracing::warn!(run = %run.run, "a cancelled run has not ended yet");
                    return Ok(());
                }
            }
        }
        if self.may_run_remotely(&run.thread) {
            return self.cancel_remote(run, principal).await;
        }
        let record = self.0.ports.store.run(&run.run).await?;
        record.map(drop).ok_or_else(|| run_not_found(run))
    }
}

#[async_trait]
impl RunService for Engine {
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure> {
        self.check_context_size(&request.context)?;
        let run_request = RunRequest::immediate(request.run.clone(), request.principal.clone());
        Box::pin(self.start_run(request, run_request)).await
    }

    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure> {
        let run_request = RunRequest::immediate(request.run.clone(), request.principal.clone());
        Box::pin(self.resume_run(request, run_request)).await
    }

    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        match self.run_end(run).await? {
            Some(end) => Ok(end.to_ended_run()),
            None => self.ended_run(run).await,
        }
    }

    async fn cancel(&self, run: &RunRef) -> Result<(), Failure> {
        self.cancel_for(run, None).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, Failure> {
        let latest = self.0.states.thread_snapshot(thread).await?;
        let Some(latest) = latest else { return Ok(None) };
        if latest.head.record.is_expired(self.now_ms()) {
            return Ok(None);
        }
        let store = self.0.ports.store.as_ref();
        Ok(Some(view::thread(store, latest).await?))
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), Failure> {
        let _slot = self.claim(thread, new_run_id()).await?;
        self.delete_stored(thread).await?;
        self.clear_set_aside(thread);
        Ok(())
    }

    async fn threads(&self, list: ListThreads) -> Result<ThreadSearchPage, Failure> {
        Ok(self.search_threads(list.into()).await?)
    }

    async fn update_thread(&self, update: UpdateThread) -> Result<ThreadRecord, Failure> {
        self.apply_update(update).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        Ok(self.0.ports.store.events(thread, after, limit).await?)
    }
}

fn new_run_id() -> RunId {
    new_id(RunId::new)
}

fn new_thread_id() -> ThreadId {
    new_id(ThreadId::new)
}

/// Parses a new UUID, which is always a valid id.
fn new_id<T, E: std::fmt::Debug>(parse: impl Fn(String) -> Result<T, E>) -> T {
    parse(uuid::Uuid::now_v7().to_string()).expect("a UUID is a valid id")
}

/// Returns the failure of a request that arrives during a shutdown.
fn shutting_down() -> Failure {
    Failure::new(code::UNAVAILABLE, "the host is shutting down; try again").retryable()
}

fn thread_not_found(thread: &ThreadId) -> Failure {
    Failure::new(code::NOT_FOUND, format!("there is no thread `{thread}`, or it has expired"))
}

fn run_not_found(run: &RunRef) -> Failure {
    Failure::new(code::NOT_FOUND, format!("thread `{}` has no run `{}`", run.thread, run.run))
}
