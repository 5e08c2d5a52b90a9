//! The engine: starts, resumes, cancels and reads runs.
//!
//! A handle is cheap to clone. A thread has one run at a time; its slot in `active` is taken
//! before anything is read, so two requests at once never work on one thread.

mod admit;
mod ask;
mod asked;
mod balance;
mod begin;
pub mod blank;
mod create;
mod dispatch;
mod drain;
mod edit;
mod elsewhere;
mod export;
mod fork;
mod held;
mod history;
mod lease;
mod mend;
pub mod migrate;
mod owner;
mod queue;
pub mod recover;
mod retention;
pub mod settle;
mod thread_lock;
mod web;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::watch;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;

use crate::cancel::Cancel;
use crate::caps::Caps;
use crate::catalog::Catalog;
use crate::hostcall::runs::{EndedRun, ResumeRun, RunOutcome, RunRef, Runs, StartRun, ThreadView};
use crate::log::{Tenure, ThreadLog};
use crate::ports::Ports;
use crate::ports::store::{Epoch, Holder, ThreadHead, ThreadRecord, ThreadStatus, ThreadTtl};
use crate::quota::Quotas;
use crate::tail::pages::Pages;
use crate::view::{self, store_failure};
use asked::Asked;
pub use asked::matched;

/// How long a request to cancel a run waits for its end. The run ends all the same, when what holds
/// it up lets go.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// How long runs that are cut may take to let go, and their leases to be given back.
const CUT_GRACE: Duration = Duration::from_secs(2);

/// How an engine is set up.
#[derive(Clone, Default)]
pub struct EngineConfig {
    /// Where runs and guests execute: a runtime apart from the one that serves HTTP, so that a
    /// busy guest delays nobody. Without it, the current one.
    pub runtime: Option<Handle>,
    /// How long threads are kept that do not say so themselves; for ever without it.
    pub thread_ttl: Option<ThreadTtl>,
    /// Under which name it holds threads; a fresh one without it. An engine that takes the name of
    /// another takes its threads at once.
    pub holder: Option<Holder>,
    /// What threads, apps and tenants may take.
    pub caps: Caps,
    /// How many runs it begins at once at most; others are pending until one ends. Without a limit
    /// if it is not set.
    pub max_runs: Option<usize>,
}

/// A cheap handle to the engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    ports: Ports,
    catalog: Arc<Catalog>,
    runtime: Handle,
    active: Mutex<HashMap<ThreadId, Active>>,
    leases: lease::Leases,
    /// Runs that were cut.
    cuts: recover::Cuts,
    /// The wait until the store can be written again.
    mending: mend::Mending,
    locks: thread_lock::ThreadLocks,
    dispatch: Arc<dispatch::Known>,
    balance: balance::Balance,
    thread_ttl: Option<ThreadTtl>,
    quotas: Arc<Quotas>,
    /// Pages of logs that tails are reading.
    pages: Pages,
    /// Set when the engine begins to shut down: runs stand still between two supersteps.
    halting: Cancel,
    /// Set when the engine shuts down: runs are cut where they stand.
    closing: Cancel,
}

/// The run that has a thread's slot.
#[derive(Clone)]
struct Active {
    run: RunId,
    cancel: Cancel,
    drain: Cancel,
    halt: Cancel,
    done: watch::Receiver<Option<Arc<EndedRun>>>,
    /// What the run writes, once it is at work.
    log: Weak<ThreadLog>,
}

impl Active {
    /// Whether a run writes to the thread.
    fn is_at_work(&self) -> bool {
        self.log.strong_count() > 0
    }
}

/// Holds a thread's slot and its lease; gives them back when dropped.
struct Slot {
    engine: Engine,
    thread: ThreadId,
    run: RunId,
    /// The lease.
    epoch: Epoch,
    /// How long it surely lasts.
    tenure: Option<Arc<Tenure>>,
    /// What is to be given back.
    owed: lease::Owed,
    /// What was asked for.
    asked: Asked,
    cancel: Cancel,
    drain: Cancel,
    /// Set when the run is to stop before its next superstep and to be handed over.
    halt: Cancel,
    done: watch::Sender<Option<Arc<EndedRun>>>,
}

impl Engine {
    /// An engine over some adapters and apps.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the configuration names none.
    pub fn new(ports: Ports, catalog: Arc<Catalog>, config: EngineConfig) -> Self {
        let runtime = config.runtime.unwrap_or_else(Handle::current);
        let (active, halting, closing) = (Mutex::default(), Cancel::default(), Cancel::default());
        let leases = lease::Leases::new(config.holder, ports.clock.clone());
        let (thread_ttl, quotas) = (config.thread_ttl, Arc::new(Quotas::new(config.caps)));
        let cuts = recover::Cuts::default();
        let balance = {
            let (max_runs, now_ms) = (config.max_runs, ports.clock.now_ms());
            balance::Balance::new(max_runs, now_ms, leases.holder().clone())
        };
        Self(Arc::new(Inner {
            ports,
            catalog,
            runtime,
            active,
            leases,
            cuts,
            mending: mend::Mending::default(),
            locks: thread_lock::ThreadLocks::default(),
            dispatch: Arc::default(),
            balance,
            thread_ttl,
            quotas,
            pages: Pages::default(),
            halting,
            closing,
        }))
    }

    /// The adapters.
    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// The apps.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.0.catalog
    }

    /// The newest durable event of a thread, to wait for more.
    pub fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.0.ports.store.watch(thread)
    }

    /// Pages of logs that tails are reading.
    pub(crate) fn pages(&self) -> &Pages {
        &self.0.pages
    }

    /// No code that can panic runs under this lock.
    fn active(&self) -> MutexGuard<'_, HashMap<ThreadId, Active>> {
        self.0.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether other hosts may work on the same threads.
    pub fn is_shared(&self) -> bool {
        self.0.ports.store.is_shared()
    }

    /// Whether a thread has a run at work in this process.
    pub fn is_active(&self, thread: &ThreadId) -> bool {
        self.active().contains_key(thread)
    }

    /// A run that is at work in this process.
    fn active_run(&self, run: &RunRef) -> Option<Active> {
        self.active().get(&run.thread).filter(|active| active.run == run.run).cloned()
    }

    fn take_slot(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        let (done, receiver) = watch::channel(None);
        let (cancel, drain, halt) = (Cancel::default(), Cancel::default(), Cancel::default());
        let mut active = self.active();
        // Under the lock, so that a shutdown stops every run that got past this.
        if self.is_halting() {
            return Err(shutting_down());
        }
        if let Some(other) = active.get(thread) {
            return Err(Failure::new(
                code::BUSY,
                format!(
                    "run `{}` is at work on thread `{thread}`; wait for it or cancel it",
                    other.run
                ),
            )
            .with_details(json!({ "run_id": other.run })));
        }
        active.insert(
            thread.clone(),
            Active {
                run: run.clone(),
                cancel: cancel.clone(),
                drain: drain.clone(),
                halt: halt.clone(),
                done: receiver,
                log: Weak::new(),
            },
        );
        Ok(Slot {
            engine: self.clone(),
            thread: thread.clone(),
            run,
            epoch: Epoch(0),
            tenure: None,
            owed: lease::Owed::Nothing,
            asked: Asked::default(),
            cancel,
            drain,
            halt,
            done,
        })
    }

    /// A thread that is there and has not expired. An expired one is deleted on the way.
    async fn live_thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, Failure> {
        let store = &self.0.ports.store;
        let Some(head) = store.thread(thread).await.map_err(store_failure)? else {
            return Ok(None);
        };
        Ok(self.is_live(&head.record).await?.then_some(head))
    }

    /// Whether a thread is still there; one whose questions ran out is deleted.
    async fn is_live(&self, record: &ThreadRecord) -> Result<bool, Failure> {
        let is_over = record.status == ThreadStatus::Interrupted && self.is_expired(record);
        if is_over {
            self.delete_expired(&record.id).await?;
        }
        Ok(!is_over)
    }

    fn is_expired(&self, record: &ThreadRecord) -> bool {
        record.expires_ms.is_some_and(|expires_ms| expires_ms <= self.0.ports.clock.now_ms())
    }

    async fn delete_expired(&self, thread: &ThreadId) -> Result<(), Failure> {
        tracing::info!(%thread, "thread expired");
        self.0.ports.store.delete_thread(thread).await.map_err(store_failure)
    }

    /// Begins to shut down: no run begins from now on, and runs stop before their next superstep.
    pub fn halt(&self) {
        self.0.halting.cancel();
        self.active().values().for_each(|active| active.halt.cancel());
    }

    /// Shuts down: no run begins, and runs stop before their next superstep. Supersteps under way
    /// get `grace` to end; runs that are still at work then are cut. The leases are given back, so
    /// that hosts which share the store recover the runs at once. Without such a host,
    /// [`Engine::recover`] does after the next start, as after a crash. Not an error if the engine
    /// has shut down.
    pub async fn shutdown(&self, grace: Duration) {
        if self.0.closing.is_cancelled() {
            return;
        }
        self.halt();
        let runs: Vec<_> = self.active().values().map(|active| active.done.clone()).collect();
        self.report_stop().await;
        let ends = || {
            futures::future::join_all(runs.iter().cloned().map(|mut done| async move {
                // An error means that the run was cut.
                let _ = done.wait_for(Option::is_some).await;
            }))
        };
        if tokio::time::timeout(grace, ends()).await.is_err() {
            self.0.closing.cancel();
            // A run whose thread of the runtime is busy cannot be cut; it ends with the process.
            if tokio::time::timeout(CUT_GRACE, ends()).await.is_err() {
                let runs = self.active().len();
                tracing::warn!(runs, "runs do not let go; they go on after the next start");
            }
        }
        self.0.closing.cancel();
        // A store that does not answer leaves the leases to end by themselves.
        let _ = tokio::time::timeout(CUT_GRACE, self.0.leases.returned()).await;
    }

    /// Whether the engine shuts down: runs that it has do not end here.
    fn is_halting(&self) -> bool {
        self.0.halting.is_cancelled()
    }

    async fn ended_run(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        let store = self.0.ports.store.as_ref();
        let record = store.run(&run.run).await.map_err(store_failure)?;
        let Some(record) = record.filter(|record| record.thread == run.thread) else {
            return Err(no_run(run));
        };
        let Some(view) = self.thread(&run.thread).await? else {
            return Err(no_thread(&run.thread));
        };
        let outcome = match record.status {
            RunStatus::Completed => RunOutcome::Completed,
            RunStatus::Cancelled => RunOutcome::Cancelled,
            RunStatus::Interrupted => {
                RunOutcome::Interrupted { interrupts: view.interrupts, next: view.next }
            }
            RunStatus::Failed => RunOutcome::Failed {
                failure: record.failure.unwrap_or_else(|| Failure::internal("the run failed")),
            },
            RunStatus::Pending | RunStatus::Running => {
                return Err(self.not_recovered(&run.thread, &run.run));
            }
        };
        Ok(EndedRun { run: run.clone(), outcome, state: view.state })
    }
}

impl Engine {
    /// Cancels a run for somebody, pending or at work. Not an error if it has ended.
    ///
    /// # Errors
    ///
    /// `not-found`, and those of the store.
    pub async fn cancel_for(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        if self.active_run(run).is_none() {
            let record = self.0.ports.store.run(&run.run).await.map_err(store_failure)?;
            if record.is_some_and(|record| record.status == RunStatus::Pending) {
                return self.cancel_run(run, false, principal).await;
            }
        }
        self.cancel_begun(run, principal).await
    }

    /// Cancels a run that has begun. Not an error if it has ended.
    async fn cancel_begun(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        self.pull_forward(&run.thread).await?;
        let active = self.active_run(run);
        if let Some(mut active) = active {
            active.cancel.cancel_for(principal.cloned());
            let ended = active.done.wait_for(Option::is_some);
            match tokio::time::timeout(CANCEL_PATIENCE, ended).await {
                Ok(Ok(_)) => return Ok(()),
                // It goes on elsewhere, or after the next start.
                Ok(Err(_)) => {}
                Err(_elapsed) => {
                    tracing::warn!(run = %run.run, "a run that was cancelled takes long to end");
                    return Ok(());
                }
            }
        }
        if self.may_be_elsewhere(&run.thread) {
            return self.cancel_elsewhere(run, principal).await;
        }
        let record = self.0.ports.store.run(&run.run).await.map_err(store_failure)?;
        record.map(drop).ok_or_else(|| no_run(run))
    }
}

#[async_trait]
impl Runs for Engine {
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure> {
        let asked = Asked::now(request.run.clone(), request.principal.clone());
        Box::pin(self.start_run(request, asked)).await
    }

    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure> {
        let asked = Asked::now(request.run.clone(), request.principal.clone());
        Box::pin(self.resume_run(request, asked)).await
    }

    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        self.pull_forward(&run.thread).await?;
        if self.active_run(run).is_none() {
            self.begun(run).await?;
        }
        let active = self.active_run(run);
        if let Some(mut active) = active
            && let Ok(ended) = active.done.wait_for(Option::is_some).await
            && let Some(ended) = ended.as_deref()
        {
            return Ok(ended.clone());
        }
        if self.may_be_elsewhere(&run.thread) && !self.is_halting() {
            self.ends_elsewhere(run).await?;
        }
        self.ended_run(run).await
    }

    async fn cancel(&self, run: &RunRef) -> Result<(), Failure> {
        self.cancel_for(run, None).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, Failure> {
        let store = self.0.ports.store.as_ref();
        let Some(latest) = store.latest(thread).await.map_err(store_failure)? else {
            return Ok(None);
        };
        if !self.is_live(&latest.head.record).await? {
            return Ok(None);
        }
        view::thread(store, latest).await.map(Some).map_err(store_failure)
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), Failure> {
        let _slot = self.claim(thread, new_run_id()).await?;
        self.0.ports.store.delete_thread(thread).await.map_err(store_failure)?;
        self.forget_cut(thread);
        Ok(())
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        self.0.ports.store.events(thread, after, limit).await.map_err(store_failure)
    }
}

fn new_run_id() -> RunId {
    fresh(RunId::new)
}

fn new_thread_id() -> ThreadId {
    fresh(ThreadId::new)
}

/// A UUID is always a valid id.
fn fresh<T, E: std::fmt::Debug>(parse: impl Fn(String) -> Result<T, E>) -> T {
    parse(uuid::Uuid::now_v7().to_string()).expect("a UUID is a valid id")
}

/// Why nothing begins on this host any more.
fn shutting_down() -> Failure {
    Failure::new(code::UNAVAILABLE, "the host is shutting down; try again").retryable()
}

fn no_thread(thread: &ThreadId) -> Failure {
    Failure::new(code::NOT_FOUND, format!("there is no thread `{thread}`, or it has expired"))
}

fn no_run(run: &RunRef) -> Failure {
    Failure::new(code::NOT_FOUND, format!("thread `{}` has no run `{}`", run.thread, run.run))
}
