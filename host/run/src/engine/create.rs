//! Requests for runs. A run starts immediately if its thread is free and this host has capacity.
//! Otherwise it is stored as pending.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::json;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, RunId, ThreadId};
use wattle_graph::step::check_input;

use super::admission::{check_context, check_documents, check_new_id};
use super::dispatch::is_transient;
use super::owner::{check_new_thread, check_owner};
use super::threads::NewThread;
use super::{Engine, new_run_id, new_thread_id, thread_not_found};
use crate::blocking::{block_in_place_in_turn, is_long_validation};
use crate::free_disk::DiskUse;
use crate::hostcall::runs::{CreateRun, Multitask, RunRef, ThreadCreation};
use crate::limit::THREAD_PENDING_RUNS;
use crate::metadata;
use crate::meter::model_usage::ModelUsage;
use crate::ports::store::{
    LeaseHolder, QueueCondition, RecoveryCount, RunKind, RunOptions, RunRecord, RunSpec,
    ThreadHead, ThreadRecord, ThreadStatus,
};
use crate::run_memory::lacks_memory;
use crate::task::options;

/// Runs of the thread that precede a requested run.
#[derive(Default)]
struct PrecedingRuns {
    /// The active run.
    running: Option<RunId>,
    /// True if the thread has pending runs, due or not.
    is_pending: bool,
    /// True if the thread has pending runs that are due.
    is_due: bool,
}

impl PrecedingRuns {
    /// Returns true if no run precedes the requested one.
    fn is_empty(&self) -> bool {
        self.running.is_none() && !self.is_pending
    }

    /// Returns true if a run may start now.
    fn allows_start(&self) -> bool {
        self.running.is_none() && !self.is_due
    }
}

impl Engine {
    /// Requests a run. Returns once it is durable that the run has started or is pending.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist and is not to be created; `conflict` if the run id
    /// or the id of a [new thread](ThreadCreation::New) is taken; `busy` if the thread has an
    /// active or pending run and the strategy is [`Multitask::Reject`]; `limit` if the context is
    /// too large; `unavailable` if too many runs of the thread are pending, if another host creates
    /// the new thread, or below the floor of free disk space; errors of the start of the run.
    pub async fn create_run(&self, request: CreateRun) -> Result<RunRecord, Failure> {
        self.check_context_size(&request.spec.context)?;
        // A pending run takes space as well, so it is not stored to start later.
        let is_answer = matches!(request.spec.kind, RunKind::Answer { .. });
        let disk_use = if is_answer { DiskUse::Answer } else { DiskUse::New };
        self.check_free_disk(disk_use).await?;
        let engine = self.clone();
        // Boxed, because the future is large and the futures of all callers would contain it.
        let create = async move { Box::pin(engine.create_locked(request)).await };
        self.run_to_completion(create).await
    }

    async fn create_locked(&self, request: CreateRun) -> Result<RunRecord, Failure> {
        let thread = request.thread.clone().unwrap_or_else(new_thread_id);
        let _lock = self.0.locks.lock(&thread).await;
        let head = self.find_thread(&thread, &request).await?;
        if let Some(run) = &request.run {
            check_new_id("run", run.as_str())?;
            self.reject_existing_run(run).await?;
        }
        let CreateRun { tenant, strategy, may_stay_pending, creation, .. } = request;
        let new_thread = creation.new_thread();
        let mut record = self.pending_record(thread, request.run, request.options, request.spec);
        let ahead = match &head {
            Some(head) => self.preceding_runs(head).await?,
            None => PrecedingRuns::default(),
        };
        // While a run is active, the answers may be for interrupts that the run has not raised yet.
        if head.is_some() && ahead.running.is_none() {
            self.resolve_answers(&mut record).await;
        }
        let is_due = record.due_ms() <= record.started_ms;
        let goes_before = matches!(strategy, Multitask::Interrupt | Multitask::Rollback);
        let place = if goes_before && ahead.running.is_some() {
            // The active run that the requested run cancels frees a place.
            Some(self.lock_places().reserve(record.caller()))
        } else {
            self.try_reserve_start(record.caller())
        };
        // The start of a run checks the run, so a run that starts immediately is not checked here.
        let begins_now = is_due && ahead.is_empty() && place.is_some();
        if !may_stay_pending && !begins_now {
            self.check_start(head.as_ref(), &record).await?;
        }
        if !ahead.is_empty() {
            self.apply_multitask_strategy(&record, strategy, ahead.running.as_ref()).await?;
        }
        if is_due && place.is_some() && (goes_before || ahead.allows_start()) {
            let tenant = head.as_ref().map_or(&tenant, |head| &head.record.tenant).clone();
            let (turn, own_thread) = (QueueCondition::Free, new_thread.cloned().map(Box::new));
            let is_own_thread = head.is_none() && own_thread.is_some();
            match self.start_from_spec(&record, tenant, turn, own_thread).await {
                Ok(_) => {
                    self.0.dispatch.take_turn(record.caller());
                    return self.existing_run(&record.id).await;
                }
                Err(failure) if failure.code == code::BUSY && is_own_thread => {
                    return Err(being_created(&record.thread));
                }
                // Another caller or another host started a run first.
                Err(failure) if failure.code == code::BUSY && strategy != Multitask::Reject => {}
                Err(failure)
                    if may_stay_pending && (is_transient(&failure) || lacks_memory(&failure)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let is_left = is_due && ahead.allows_start() && place.is_none();
        drop(place);
        let host = if is_left { self.assign_run(head.as_ref(), &record).await? } else { None };
        let requested = match (&head, record.spec.as_deref()) {
            (None, _) => {
                self.create_thread_for(&record, tenant, new_thread).await?;
                None
            }
            // The first pending run binds the thread, so a later one does not replace its graph.
            (Some(head), Some(spec))
                if head.record.is_unbound() && (goes_before || !ahead.is_pending) =>
            {
                self.requested_graph(spec)
            }
            (Some(_), _) => None,
        };
        self.enqueue(&record, host, requested).await?;
        Ok(record)
    }

    /// Returns the host that is to start a run: the host that holds calls open for it, or else the
    /// least busy other host.
    async fn assign_run(
        &self,
        head: Option<&ThreadHead>,
        record: &RunRecord,
    ) -> Result<Option<LeaseHolder>, Failure> {
        if let Some(head) = head.filter(|_| self.is_shared())
            && let Some(holder) = self.held_call_host_for(head, record).await?
        {
            return Ok(Some(holder));
        }
        Ok(self.assign())
    }

    /// Returns the thread of a requested run; `None` if the thread is new.
    async fn find_thread(
        &self,
        thread: &ThreadId,
        request: &CreateRun,
    ) -> Result<Option<ThreadHead>, Failure> {
        if request.thread.is_none() {
            return Ok(None);
        }
        match self.visible_thread(thread).await? {
            Some(head) => {
                check_new_thread(&head, request.creation.new_thread())?;
                check_owner(&head, required_app(&head, &request.spec), request.tenant.as_ref())?;
                Ok(Some(head))
            }
            None if request.creation == ThreadCreation::Never => Err(thread_not_found(thread)),
            None => Ok(None),
        }
    }

    /// Returns the record of a pending run.
    pub(super) fn pending_record(
        &self,
        thread: ThreadId,
        run: Option<RunId>,
        options: RunOptions,
        spec: RunSpec,
    ) -> RunRecord {
        let now_ms = self.now_ms();
        RunRecord {
            id: run.unwrap_or_else(new_run_id),
            thread,
            first_seq: 0,
            status: RunStatus::Pending,
            failure: None,
            created_ms: Some(now_ms),
            started_ms: now_ms,
            ended_ms: None,
            last_checkpoint: None,
            reopen: None,
            options,
            first_step: None,
            origin: None,
            usage: ModelUsage::default(),
            recovery_count: RecoveryCount::default(),
            spec: Some(Box::new(spec)),
        }
    }

    /// Creates the new thread of a run that will be pending. Another host may have created the
    /// thread meanwhile.
    async fn create_thread_for(
        &self,
        record: &RunRecord,
        tenant: Option<String>,
        new_thread: Option<&ThreadRecord>,
    ) -> Result<(), Failure> {
        let (thread, spec) = (&record.thread, record.spec.as_deref());
        let new = match new_thread {
            Some(new) => Cow::Borrowed(new),
            None => Cow::Owned(self.unbound_thread(NewThread {
                thread: Some(thread.clone()),
                tenant: tenant.clone(),
                ttl: spec.and_then(|spec| spec.ttl),
                requested_graph: spec.and_then(|spec| self.requested_graph(spec)),
                ..NewThread::default()
            })),
        };
        match self.store_new_thread(&new).await {
            Err(failure) if failure.code == code::BUSY && new_thread.is_some() => {
                return Err(being_created(thread));
            }
            Err(failure) if failure.code != code::CONFLICT && failure.code != code::BUSY => {
                return Err(failure);
            }
            _ => {}
        }
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        check_new_thread(&head, new_thread)?;
        let app = spec.and_then(|spec| required_app(&head, spec));
        check_owner(&head, app, tenant.as_ref())
    }

    /// Checks a run that starts with an input. Rejects a run whose start would fail on the thread
    /// in its current state. Called before the run becomes pending, and before other runs are
    /// cancelled for it.
    async fn check_start(
        &self,
        head: Option<&ThreadHead>,
        record: &RunRecord,
    ) -> Result<(), Failure> {
        let Some(RunSpec { kind: RunKind::Start { input }, app, graph, context, metadata, .. }) =
            record.spec.as_deref()
        else {
            return Ok(());
        };
        check_documents(input, context, metadata)?;
        let (_, graph_version) = self.code_for(head, app, graph.as_ref()).await?;
        options::check(&record.options, &graph_version.graph)?;
        let graph = &graph_version.graph;
        let caller = record.caller();
        check_context(caller, graph, context).await?;
        let is_long = is_long_validation(graph, [input]);
        let checked = block_in_place_in_turn(caller, is_long, || check_input(graph, input)).await;
        checked.map_err(|error| error.to_failure())?;
        let no_facts = BTreeMap::new();
        metadata::check_merged_size(head.map_or(&no_facts, |head| &head.record.metadata), metadata)
    }

    async fn preceding_runs(&self, head: &ThreadHead) -> Result<PrecedingRuns, Failure> {
        let ThreadRecord { id, status, run, .. } = &head.record;
        let running = run.clone().filter(|_| *status == ThreadStatus::Running);
        let pending = self.pending_of(id).await?;
        let now_ms = self.now_ms();
        let is_due = pending.iter().any(|pending| pending.due_ms <= now_ms);
        Ok(PrecedingRuns { running, is_pending: !pending.is_empty(), is_due })
    }

    /// Applies a multitask strategy to the runs that precede a run.
    async fn apply_multitask_strategy(
        &self,
        record: &RunRecord,
        strategy: Multitask,
        running: Option<&RunId>,
    ) -> Result<(), Failure> {
        let thread = &record.thread;
        let forget = match strategy {
            Multitask::Reject => return Err(thread_busy(thread, running)),
            Multitask::Enqueue => {
                if let Some(run) = running.filter(|_| self.set_aside(thread).is_some()) {
                    return Err(self.not_recovered(thread, run));
                }
                return self.reject_full_queue(thread).await;
            }
            Multitask::Interrupt => false,
            Multitask::Rollback => true,
        };
        self.dequeue_all(thread, forget, Some(&record.id)).await?;
        let Some(run) = running else { return Ok(()) };
        let principal = record.spec.as_ref().and_then(|spec| spec.principal.as_ref());
        let running = RunRef { thread: thread.clone(), run: run.clone() };
        self.cancel_started(&running, principal).await?;
        if forget { self.roll_back(thread, run).await } else { Ok(()) }
    }

    async fn reject_full_queue(&self, thread: &ThreadId) -> Result<(), Failure> {
        if self.pending_of(thread).await?.len() < THREAD_PENDING_RUNS {
            return Ok(());
        }
        let text =
            format!("{THREAD_PENDING_RUNS} runs of thread `{thread}` are pending; try again later");
        Err(Failure::new(code::UNAVAILABLE, text)
            .retryable()
            .with_details(json!({ "limit": "thread_pending_runs" })))
    }
}

fn thread_busy(thread: &ThreadId, running: Option<&RunId>) -> Failure {
    let text = format!(
        "thread `{thread}` has active or pending runs; wait for them to end, or cancel them"
    );
    Failure::new(code::BUSY, text).with_details(json!({ "run_id": running }))
}

/// Returns the failure of a run whose new thread another host creates at the same time. That host
/// may end before the thread is durable, so the caller must retry.
fn being_created(thread: &ThreadId) -> Failure {
    let text = format!("another host is creating thread `{thread}`; try again");
    Failure::new(code::UNAVAILABLE, text)
}

/// Returns the app that a run must name on its thread. An unbound thread accepts every app.
fn required_app<'s>(head: &ThreadHead, spec: &'s RunSpec) -> Option<&'s AppName> {
    (!head.record.is_unbound()).then_some(&spec.app)
}
