//! Threads and runs as one app's web handler sees them: only its own, only its tenant's.

use async_trait::async_trait;
use wattle_graph::event::Event;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, ThreadId};

use crate::call::runs::{EndedRun, ResumeRun, RunRef, Runs, StartRun, ThreadView};
use crate::engine::Engine;
use crate::view::store_failure;

/// The engine, narrowed to one app and tenant.
pub(crate) struct AppRuns {
    engine: Engine,
    app: AppName,
    tenant: Option<String>,
}

impl AppRuns {
    pub(crate) fn new(engine: Engine, app: AppName, tenant: Option<String>) -> Self {
        Self { engine, app, tenant }
    }

    async fn is_own(&self, thread: &ThreadId) -> Result<bool, Failure> {
        let head = self.engine.ports().store.thread(thread).await.map_err(store_failure)?;
        let tenant = self.tenant.as_deref();
        Ok(head.is_some_and(|head| head.record.is_of(&self.app, tenant)))
    }

    async fn check_own(&self, thread: &ThreadId) -> Result<(), Failure> {
        if self.is_own(thread).await? {
            return Ok(());
        }
        Err(Failure::new(code::NOT_FOUND, format!("there is no thread `{thread}`")))
    }
}

#[async_trait]
impl Runs for AppRuns {
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure> {
        let (app, tenant) = (self.app.clone(), self.tenant.clone());
        self.engine.start(StartRun { app, tenant, ..request }).await
    }

    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure> {
        let (app, tenant) = (Some(self.app.clone()), self.tenant.clone());
        self.engine.resume(ResumeRun { app, tenant, ..request }).await
    }

    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        self.check_own(&run.thread).await?;
        self.engine.wait(run).await
    }

    async fn cancel(&self, run: &RunRef) -> Result<(), Failure> {
        self.check_own(&run.thread).await?;
        self.engine.cancel(run).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, Failure> {
        if self.is_own(thread).await? { self.engine.thread(thread).await } else { Ok(None) }
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), Failure> {
        self.check_own(thread).await?;
        self.engine.delete_thread(thread).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        self.check_own(thread).await?;
        self.engine.events(thread, after, limit).await
    }
}
