//! Creates runs together with their webhooks, on an existing thread or on a new one. The engine
//! decides whether a run starts at once or enters the thread queue. Callers complete the creation
//! even if their client disconnects.

use serde_json::Value;
use tokio::sync::watch;
use wattle_graph::failure::code;
use wattle_graph::id::RunId;
use wattle_run::engine::Engine;
use wattle_run::engine::threads::NewThread;
use wattle_run::hostcall::runs::{CreateRun, Multitask, RunService as _, ThreadCreation};
use wattle_run::metadata;
use wattle_run::ports::store::{PruneStrategy, RunRecord, ThreadRecord, ThreadTtl};

use crate::assistants;
use crate::error::ApiError;
use crate::extractors::{Caller, parse_thread_id};
use crate::graphs::AgentGraph;
use crate::resolve;
use crate::resolve::run::RequestedRun;
use crate::unknown_keys::UnknownKeys;
use crate::webhooks::{self, Webhooks};
use crate::wire::request::{IfNotExists, OnCompletion, RunCreate};

/// TTL in milliseconds of the thread of a stateless run, counted from its last event. It is long
/// enough for a client to reconnect after a lost connection or a crash of the host.
const STATELESS_THREAD_TTL_MS: u64 = 60_000;

/// The result of the creation of a run.
pub(crate) struct CreatedRun {
    /// The thread before the run.
    pub(crate) thread: ThreadRecord,
    /// The run as the client requested it.
    pub(crate) requested: RequestedRun,
    /// The record of the run.
    pub(crate) record: RunRecord,
}

/// Creates the runs that clients and crons request. Clones share the webhooks.
#[derive(Clone)]
pub(crate) struct RunCreator {
    webhooks: Webhooks,
    unknown_keys: UnknownKeys,
}

impl RunCreator {
    /// Returns a creator of runs on the engine of `webhooks`.
    pub(crate) fn new(webhooks: Webhooks, unknown_keys: UnknownKeys) -> Self {
        Self { webhooks, unknown_keys }
    }

    /// Returns the engine that executes the runs.
    pub(crate) fn engine(&self) -> &Engine {
        self.webhooks.engine()
    }

    /// Returns the signal of the shutdown of the host.
    pub(crate) fn stopping(&self) -> &watch::Receiver<bool> {
        self.webhooks.stopping()
    }

    /// Creates a run on a thread. Creates the thread if it does not exist and the request allows
    /// it.
    ///
    /// # Errors
    ///
    /// 404 for a missing thread, 422 and 400 for an invalid run, and the errors of
    /// [`Self::submit`].
    pub(crate) async fn create_on_thread(
        &self,
        caller: &Caller,
        id: &str,
        run: RunId,
        request: &RunCreate,
    ) -> Result<CreatedRun, ApiError> {
        self.check(request)?;
        let graph =
            assistants::find(self.engine(), caller.tenant.as_ref(), &request.assistant_id).await?;
        let create_if_missing = request.if_not_exists.unwrap_or_default() == IfNotExists::Create;
        let thread = get_or_create_thread(self.engine(), caller, id, create_if_missing).await?;
        self.submit_on(caller, &graph, thread, run, request).await
    }

    /// Creates a stateless run. Its thread has the id of the run.
    ///
    /// # Errors
    ///
    /// 400 for a run that needs an existing thread, 409 if a thread with the id exists; otherwise
    /// the errors of [`Self::create_on_thread`].
    pub(crate) async fn create_stateless(
        &self,
        caller: &Caller,
        run: RunId,
        request: &RunCreate,
    ) -> Result<CreatedRun, ApiError> {
        let graph = self.check_stateless(caller, request).await?;
        let keep = request.on_completion.unwrap_or_default() == OnCompletion::Keep;
        let ttl = (!keep).then(|| stateless_ttl(request));
        let new = NewThread {
            thread: Some(parse_thread_id(run.as_str())?),
            tenant: caller.tenant.clone(),
            metadata: ttl
                .map(|_| (metadata::STATELESS_MARKER.to_owned(), Value::Bool(true)))
                .into_iter()
                .collect(),
            ttl,
            created_ms: None,
            requested_graph: Some((graph.app.name.clone(), graph.name().clone())),
        };
        let thread = self.engine().unbound_thread(new);
        let (requested, mut create) = self.resolve(caller, &graph, &thread, run, request).await?;
        create.creation = ThreadCreation::New(Box::new(thread.clone()));
        match self.submit(caller, &requested, create).await {
            Ok(record) => Ok(CreatedRun { thread, requested, record }),
            Err(error) => {
                delete_unused_thread(self.engine(), &thread).await;
                Err(error)
            }
        }
    }

    /// Checks that a run can be created from a request.
    ///
    /// # Errors
    ///
    /// The errors of [`RunCreate::check`]; 422 for metadata or a context that is too large, and for
    /// a webhook URL that is not permitted.
    pub(crate) fn check(&self, request: &RunCreate) -> Result<(), ApiError> {
        request.check()?;
        let metadata = request.metadata.clone().unwrap_or_default();
        metadata::check_size(&metadata.into_iter().collect())?;
        self.engine().check_context_size(&request.run_context())?;
        match &request.webhook {
            Some(url) => self.webhooks.check(url),
            None => Ok(()),
        }
    }

    /// Checks that a stateless run can be created from a request. Returns the graph of the run.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::check`]; 404 or 422 for an unknown assistant, 400 for a run that needs
    /// an existing thread.
    pub(crate) async fn check_stateless(
        &self,
        caller: &Caller,
        request: &RunCreate,
    ) -> Result<AgentGraph, ApiError> {
        self.check(request)?;
        let graph =
            assistants::find(self.engine(), caller.tenant.as_ref(), &request.assistant_id).await?;
        if request.command().is_some() || request.input().is_none() {
            let text = "a stateless run needs an `input` and must not have a `command`";
            return Err(ApiError::bad_request(text));
        }
        Ok(graph)
    }

    /// Resolves a request into a run on a thread, see [`resolve::resolve_run`].
    async fn resolve(
        &self,
        caller: &Caller,
        graph: &AgentGraph,
        thread: &ThreadRecord,
        run: RunId,
        request: &RunCreate,
    ) -> Result<(RequestedRun, CreateRun), ApiError> {
        let (engine, unknown_keys) = (self.engine(), self.unknown_keys);
        resolve::resolve_run(engine, unknown_keys, caller, graph, thread, run, request).await
    }

    async fn submit_on(
        &self,
        caller: &Caller,
        graph: &AgentGraph,
        thread: ThreadRecord,
        run: RunId,
        request: &RunCreate,
    ) -> Result<CreatedRun, ApiError> {
        let (requested, create) = self.resolve(caller, graph, &thread, run, request).await?;
        let record = self.submit(caller, &requested, create).await?;
        Ok(CreatedRun { thread, requested, record })
    }

    /// Starts a run or enqueues it. Returns the record of the run when the record is durable. The
    /// caller must not be dropped when the client disconnects.
    ///
    /// # Errors
    ///
    /// 409 for a thread with an active run and the strategy `reject`, 503 if too many runs are
    /// pending, and the errors of the engine.
    async fn submit(
        &self,
        caller: &Caller,
        requested: &RequestedRun,
        create: CreateRun,
    ) -> Result<RunRecord, ApiError> {
        // The webhook is stored before the run can start. Dropping the registration starts the
        // delivery, after the creation of the run has succeeded or failed.
        let _registration = self.webhooks.register(requested).await?;
        let deleted = if requested.client.strategy == Multitask::Rollback {
            webhooks::unregister_thread(self.engine(), &requested.thread).await?
        } else {
            Vec::new()
        };
        let failure = match self.engine().create_run(create).await {
            Ok(record) => return Ok(record),
            Err(failure) => failure,
        };
        // The engine may have rejected the run before it deleted the other runs.
        self.webhooks.restore(deleted).await;
        // Another host may have created the same run of the cron.
        let known = if caller.is_cron {
            self.engine().ports().store.run(&requested.run).await?
        } else {
            None
        };
        known.ok_or_else(|| failure.into())
    }
}

/// Deletes the new thread of a run that was not created, if the thread was stored and has no run. A
/// failure is only logged: the client gets the reason why its run was not created.
async fn delete_unused_thread(engine: &Engine, new: &ThreadRecord) {
    let deleted = match is_unused(engine, new).await {
        Ok(true) => engine.delete_thread(&new.id).await.map_err(ApiError::from),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = deleted {
        let (thread, why) = (&new.id, error.detail());
        tracing::warn!(%thread, why, "failed to delete the thread of a run that did not start");
    }
}

/// Returns whether a new thread is stored and has no run. Another host may have created the thread
/// for the same cron run, and a cron run on a new thread may be pending.
async fn is_unused(engine: &Engine, new: &ThreadRecord) -> Result<bool, ApiError> {
    let store = &engine.ports().store;
    let stored = store.thread(&new.id).await?;
    if stored.is_none_or(|head| head.record.incarnation != new.incarnation) {
        return Ok(false);
    }
    Ok(store.newest_runs(&new.id, 0, 1).await?.items.is_empty())
}

/// Returns the TTL of the thread of a stateless run. Every event of the thread restarts the TTL.
fn stateless_ttl(request: &RunCreate) -> ThreadTtl {
    let wait_ms = request.after_seconds.unwrap_or(0.0) * 1000.0;
    #[expect(clippy::cast_sign_loss, reason = "`RunCreate::check` rejects negative values")]
    let after_ms = STATELESS_THREAD_TTL_MS.saturating_add(wait_ms as u64);
    ThreadTtl { after_ms, strategy: PruneStrategy::Delete }
}

/// Returns the thread of a run. Creates the thread if it does not exist and `create_if_missing` is
/// set.
///
/// # Errors
///
/// 404 if the thread does not exist and `create_if_missing` is not set.
pub(crate) async fn get_or_create_thread(
    engine: &Engine,
    caller: &Caller,
    id: &str,
    create_if_missing: bool,
) -> Result<ThreadRecord, ApiError> {
    if let Some(record) = caller.find_thread(engine, id).await? {
        return Ok(record);
    }
    if !create_if_missing {
        return Err(ApiError::missing("thread", id));
    }
    let thread = Some(parse_thread_id(id)?);
    let new = NewThread { thread, tenant: caller.tenant.clone(), ..NewThread::default() };
    match engine.create_thread(new).await {
        Ok(record) => Ok(record),
        // Another request has created the thread meanwhile.
        Err(failure) if failure.code == code::CONFLICT => caller.thread(engine, id).await,
        Err(failure) => Err(failure.into()),
    }
}
