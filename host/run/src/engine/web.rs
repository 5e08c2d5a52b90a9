//! Calls web handlers of apps. A handler can access the threads and runs of its own app and tenant
//! only.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::event::Event;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName, ThreadId};
use wattle_graph::principal::Principal;

use super::Engine;
use crate::app::App;
use crate::caller_id::CallerId;
use crate::gate::{Gate, GuestEnv, handlers_full};
use crate::hostcall::runs::{
    EndedRun, ListThreads, ResumeRun, RunRef, RunService, StartRun, ThreadView, UpdateThread,
};
use crate::limit::PAGE_EVENTS;
use crate::ports::Caller;
use crate::ports::sandbox::{GuestError, WebRequest, WebResponse};
use crate::ports::store::{ThreadRecord, ThreadSearchPage};
use crate::stop_flag::StopFlag;

impl Engine {
    /// Calls the web handler of an app for an HTTP request of a principal. The handler starts,
    /// resumes and cancels runs on behalf of that principal. Its guest instance and its work count
    /// for `caller`.
    ///
    /// # Errors
    ///
    /// [`GuestError`] if the app has no web handler, if web handlers hold as many guest instances
    /// as they may, or if the guest returns no response.
    pub async fn handle_web(
        &self,
        app: &Arc<App>,
        request: WebRequest,
        principal: Option<Principal>,
        caller: CallerId,
    ) -> Result<WebResponse, GuestError> {
        let plugin = app.web.as_ref().and_then(|name| Some((name, app.plugins.get(name)?.clone())));
        let Some((name, plugin)) = plugin else {
            return Err(GuestError::Host(Failure::new(
                code::NOT_FOUND,
                format!("app `{}` has no HTTP endpoints", app.name),
            )));
        };
        let instance = self.0.handlers.lease(caller, 1, usize::MAX);
        let instance = instance.map_err(|_full| GuestError::Host(handlers_full()))?;
        let tenant = request.tenant.clone();
        let env = self.env_outside_of_runs(app, name, tenant.clone(), caller);
        let principal = Principal { app: Some(app.name.clone()), ..principal.unwrap_or_default() };
        let limit = Duration::from_millis(env.grants.limits.node_timeout_ms);
        let runs =
            ScopedRunService { engine: self.clone(), app: app.name.clone(), tenant, principal };
        let gate = Gate::for_web(env, Arc::new(runs)).with_instance(instance);
        let gate = Arc::new(gate);
        let work = async move { tokio::time::timeout(limit, plugin.handle(request, gate)).await };
        let handled = async {
            match AbortOnDropHandle::new(self.0.runtime.spawn(work)).await {
                Ok(Ok(ended)) => ended,
                Ok(Err(_elapsed)) => Err(GuestError::Failure(Failure::new(
                    code::TIMEOUT,
                    format!(
                        "the handler of app `{}` took longer than {} ms",
                        app.name,
                        limit.as_millis()
                    ),
                ))),
                Err(error) => {
                    let text = format!("the web handler failed: {error}");
                    Err(GuestError::Host(Failure::internal(text)))
                }
            }
        };
        app.count(name, handled).await
    }

    /// Returns the environment of a guest that is not part of a run.
    pub(super) fn env_outside_of_runs(
        &self,
        app: &Arc<App>,
        plugin: &PluginName,
        tenant: Option<String>,
        owner: CallerId,
    ) -> GuestEnv {
        let caller = Caller { app: app.name.clone(), plugin: plugin.clone(), tenant, owner };
        GuestEnv {
            ports: Arc::new(self.0.ports.clone()),
            caller,
            app: app.clone(),
            cancel: StopFlag::default(),
            grants: app.grants_of(plugin),
            quotas: self.0.quotas.clone(),
            schemas: self.0.schemas.clone(),
        }
    }
}

/// The [`RunService`] of the engine, restricted to one app and tenant.
struct ScopedRunService {
    engine: Engine,
    app: AppName,
    tenant: Option<String>,
    /// Principal of the request, with the app.
    principal: Principal,
}

impl ScopedRunService {
    async fn owns_thread(&self, thread: &ThreadId) -> Result<bool, Failure> {
        let head = self.engine.ports().store.thread(thread).await?;
        let tenant = self.tenant.as_deref();
        Ok(head.is_some_and(|head| head.record.is_accessible_to(&self.app, tenant)))
    }

    async fn check_owns_thread(&self, thread: &ThreadId) -> Result<(), Failure> {
        if self.owns_thread(thread).await? {
            return Ok(());
        }
        Err(Failure::new(code::NOT_FOUND, format!("there is no thread `{thread}`")))
    }
}

#[async_trait]
impl RunService for ScopedRunService {
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure> {
        let (app, tenant) = (self.app.clone(), self.tenant.clone());
        let principal = Some(self.principal.clone());
        self.engine.start(StartRun { app, tenant, principal, ..request }).await
    }

    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure> {
        let (app, tenant) = (Some(self.app.clone()), self.tenant.clone());
        let principal = Some(self.principal.clone());
        self.engine.resume(ResumeRun { app, tenant, principal, ..request }).await
    }

    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure> {
        self.check_owns_thread(&run.thread).await?;
        self.engine.wait(run).await
    }

    async fn cancel(&self, run: &RunRef) -> Result<(), Failure> {
        self.check_owns_thread(&run.thread).await?;
        self.engine.cancel_for(run, Some(&self.principal)).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, Failure> {
        if self.owns_thread(thread).await? { self.engine.thread(thread).await } else { Ok(None) }
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), Failure> {
        self.check_owns_thread(thread).await?;
        self.engine.delete_thread(thread).await
    }

    async fn threads(&self, list: ListThreads) -> Result<ThreadSearchPage, Failure> {
        let (app, tenant) = (self.app.clone(), self.tenant.clone());
        self.engine.threads(ListThreads { app, tenant, ..list }).await
    }

    async fn update_thread(&self, update: UpdateThread) -> Result<ThreadRecord, Failure> {
        let (app, tenant) = (Some(self.app.clone()), self.tenant.clone());
        self.engine.update_thread(UpdateThread { app, tenant, ..update }).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        self.check_owns_thread(thread).await?;
        self.engine.events(thread, after, limit.min(PAGE_EVENTS)).await
    }
}
