//! The engine: starts, resumes, cancels and reads runs.
//!
//! A handle is cheap to clone. A thread has one run at a time; its slot in `active` is taken
//! before anything is read, so two requests at once never work on one thread.

mod begin;
pub mod blank;
mod drain;
mod edit;
mod elsewhere;
mod export;
mod fork;
mod history;
mod lease;
pub mod migrate;
mod recover;
mod retention;
pub mod settle;

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

use crate::app::App;
use crate::call::runs::{EndedRun, ResumeRun, RunOutcome, RunRef, Runs, StartRun, ThreadView};
use crate::cancel::Cancel;
use crate::catalog::Catalog;
use crate::gate::{Gate, Setting};
use crate::log::ThreadLog;
use crate::ports::sandbox::{Ended, WebRequest, WebResponse};
use crate::ports::store::{Epoch, Holder, ThreadHead, ThreadRecord, ThreadStatus, ThreadTtl};
use crate::ports::{Caller, Ports};
use crate::view::{self, store_failure};
use crate::web::AppRuns;

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
    thread_ttl: Option<ThreadTtl>,
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
    done: watch::Receiver<Option<Arc<EndedRun>>>,
    /// What the run writes, once it is at work.
    log: Weak<ThreadLog>,
}

/// Holds a thread's slot and its lease; gives them back when dropped.
struct Slot {
    engine: Engine,
    thread: ThreadId,
    run: RunId,
    /// The lease.
    epoch: Epoch,
    /// Whether the lease is to be given back.
    leased: bool,
    cancel: Cancel,
    drain: Cancel,
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
        let thread_ttl = config.thread_ttl;
        let inner = Inner { ports, catalog, runtime, active, leases, thread_ttl, halting, closing };
        Self(Arc::new(inner))
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

    fn take_slot(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        let (done, receiver) = watch::channel(None);
        let (cancel, drain) = (Cancel::default(), Cancel::default());
        if self.0.halting.is_cancelled() {
            return Err(Failure::new(code::UNAVAILABLE, "the host is shutting down").retryable());
        }
        let mut active = self.active();
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
                done: receiver,
                log: Weak::new(),
            },
        );
        Ok(Slot {
            engine: self.clone(),
            thread: thread.clone(),
            run,
            epoch: Epoch(0),
            leased: false,
            cancel,
            drain,
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

    /// Lets an app answer an HTTP request.
    ///
    /// # Errors
    ///
    /// [`Ended`] if the guest gave no response.
    pub async fn handle_web(
        &self,
        app: &Arc<App>,
        request: WebRequest,
    ) -> Result<WebResponse, Ended> {
        let plugin = app.web.as_ref().and_then(|name| Some((name, app.plugins.get(name)?.clone())));
        let Some((name, plugin)) = plugin else {
            return Err(Ended::Host(Failure::new(
                code::NOT_FOUND,
                format!("app `{}` has no HTTP endpoints", app.name),
            )));
        };
        let grants = app.grants_of(name);
        let tenant = request.tenant.clone();
        let setting = Setting {
            ports: self.0.ports.clone(),
            caller: Caller { app: app.name.clone(), plugin: name.clone(), tenant: tenant.clone() },
            app: app.clone(),
            cancel: Cancel::default(),
            grants: grants.clone(),
        };
        let runs = AppRuns::new(self.clone(), app.name.clone(), tenant);
        let gate = Arc::new(Gate::for_web(setting, Arc::new(runs)));
        let limit = Duration::from_millis(grants.limits.node_timeout_ms);
        let work = async move { tokio::time::timeout(limit, plugin.handle(request, gate)).await };
        let task = AbortOnDrop(self.0.runtime.spawn(work));
        match task.join().await {
            Ok(Ok(ended)) => ended,
            Ok(Err(_elapsed)) => Err(Ended::Failure(Failure::new(
                code::TIMEOUT,
                format!(
                    "the handler of app `{}` took longer than {} ms",
                    app.name,
                    limit.as_millis()
                ),
            ))),
            Err(error) => {
                Err(Ended::Host(Failure::internal(format!("the handler ended: {error}"))))
            }
        }
    }

    /// Lets runs stand still between two supersteps, then cuts those that do not in time;
    /// [`Engine::recover`] goes on with all of them after the next start, as after a crash.
    pub async fn shutdown(&self) {
        /// Long enough for a step that is about to end, short enough for a restart.
        const GRACE: Duration = Duration::from_secs(2);
        self.0.halting.cancel();
        let runs: Vec<_> = self.active().values().map(|active| active.done.clone()).collect();
        let ends = || {
            futures::future::join_all(runs.iter().cloned().map(|mut done| async move {
                // An error means that the run was cut.
                let _ = done.wait_for(Option::is_some).await;
            }))
        };
        if tokio::time::timeout(GRACE, ends()).await.is_err() {
            self.0.closing.cancel();
            ends().await;
        }
        self.0.closing.cancel();
        // Others may go on at once where the store answers; elsewhere the leases end by themselves.
        let _ = tokio::time::timeout(GRACE, self.0.leases.returned()).await;
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
            RunStatus::Running => {
                return Err(Failure::new(
                    code::BUSY,
                    format!("run `{}` was cut and has not been recovered", run.run),
                ));
            }
        };
        Ok(EndedRun { run: run.clone(), outcome, state: view.state })
    }
}

#[async_trait]
impl Runs for Engine {
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure> {
        Box::pin(self.start_run(request)).await
    }

    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure> {
        Box::pin(self.resume_run(request)).await
    }

    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        let active = self.active().get(&run.thread).filter(|a| a.run == run.run).cloned();
        if let Some(mut active) = active
            && let Ok(ended) = active.done.wait_for(Option::is_some).await
            && let Some(ended) = ended.as_deref()
        {
            return Ok(ended.clone());
        }
        if self.0.ports.store.is_shared() {
            self.ends_elsewhere(run, false).await?;
        }
        self.ended_run(run).await
    }

    async fn cancel(&self, run: &RunRef) -> Result<(), Failure> {
        let active = self.active().get(&run.thread).filter(|a| a.run == run.run).cloned();
        if let Some(mut active) = active {
            active.cancel.cancel();
            // An error means that it goes on elsewhere, or after the next start.
            if active.done.wait_for(Option::is_some).await.is_ok() {
                return Ok(());
            }
        }
        if self.0.ports.store.is_shared() {
            return self.ends_elsewhere(run, true).await;
        }
        let record = self.0.ports.store.run(&run.run).await.map_err(store_failure)?;
        record.map(drop).ok_or_else(|| no_run(run))
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
        self.0.ports.store.delete_thread(thread).await.map_err(store_failure)
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

/// A guest call on the engine's runtime that ends with its owner.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    async fn join(mut self) -> Result<T, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn new_run_id() -> RunId {
    fresh(RunId::new)
}

/// A UUID is always a valid id.
fn fresh<T, E: std::fmt::Debug>(parse: impl Fn(String) -> Result<T, E>) -> T {
    parse(uuid::Uuid::now_v7().to_string()).expect("a UUID is a valid id")
}

fn no_thread(thread: &ThreadId) -> Failure {
    Failure::new(code::NOT_FOUND, format!("there is no thread `{thread}`, or it has expired"))
}

fn no_run(run: &RunRef) -> Failure {
    Failure::new(code::NOT_FOUND, format!("thread `{}` has no run `{}`", run.thread, run.run))
}
