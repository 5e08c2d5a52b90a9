//! Starts and continues runs: as their specifications say, with an input, with answers, or from the
//! current checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Checkpointed, EventKind, RunReason, RunStarted, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, CheckpointId, InterruptId, Namespace, RunId, TaskId};
use wattle_graph::lineage::Lineage;
use wattle_graph::principal::Principal;
use wattle_graph::step::{CheckpointStamp, accept_input, input_reductions};

use super::admission::{check_context, check_documents};
use super::answers::{check_can_continue, retain_pending};
use super::fork::CommandRun;
use super::held_calls::must_start_on;
use super::owner::{check_new_thread, check_owner};
use super::recovery_count::RecoveryCause;
use super::request::RunRequest;
use super::threads::bind;
use super::unanswered::{ThreadPosition, continues_unanswered, was_drained};
use super::{Engine, ThreadClaim, new_thread_id, thread_not_found};
use crate::app::{App, GraphVersion};
use crate::blocking::{block_in_place_in_turn, is_long_input};
use crate::caller_id::CallerId;
use crate::driver::{Driver, LoggedTask, RootSuperstep, SubgraphDriver, reduce};
use crate::hostcall::runs::{OnFailure, ResumeRun, RunRef, StartRun};
use crate::json::check_depth;
use crate::log::{Commit, ThreadLog};
use crate::metadata;
use crate::meter::model_usage::ModelUsage;
use crate::ports::store::{
    CheckpointTuple, QueueCondition, RecoveryCount, RunKind, RunOptions, RunRecord, ThreadHead,
    ThreadRecord, ThreadStatus,
};
use crate::result_reuse::{self, ReusableResults};
use crate::task::task_count::{TaskCount, finished_in_log};
use crate::task::{GraphContext, options};
use crate::time_travel::ForkFrom;
use crate::unpersisted_events::{self, UnpersistedEvents};
use crate::view;

impl Engine {
    /// Starts the run of `record` as its specification says, on a thread of `tenant`. A run with an
    /// input creates the thread if it does not exist, with the record `new_thread` if there is one.
    ///
    /// # Errors
    ///
    /// `busy` if another run of the thread comes first; otherwise the errors of the start, the
    /// resume, the command or the fork that the specification requests.
    pub(super) async fn start_from_spec(
        &self,
        record: &RunRecord,
        tenant: Option<String>,
        turn: QueueCondition,
        new_thread: Option<Box<ThreadRecord>>,
    ) -> Result<RunRef, Failure> {
        let Some(spec) = record.spec.as_deref() else {
            return Err(Failure::internal(format!("run `{}` has no specification", record.id)));
        };
        let thread = &record.thread;
        let run_request = RunRequest { new_thread, ..RunRequest::from_record(record, turn) };
        let (app, options) = (spec.app.clone(), record.options.clone());
        match &spec.kind {
            RunKind::Start { input } => {
                let start = StartRun {
                    graph: spec.graph.clone(),
                    thread: Some(thread.clone()),
                    context: spec.context.clone(),
                    metadata: spec.metadata.clone(),
                    tenant,
                    options,
                    ttl: spec.ttl,
                    ..StartRun::new(app, input.clone())
                };
                Box::pin(self.start_run(start, run_request)).await
            }
            RunKind::Continue | RunKind::Answer { .. } => {
                let answers = match &spec.kind {
                    RunKind::Answer { answer } => {
                        self.answers_by_id(thread, answer, spec.stale_answers).await?
                    }
                    _ => BTreeMap::new(),
                };
                let resume = ResumeRun {
                    thread: thread.clone(),
                    run: None,
                    answers,
                    on_failure: record.reopen.map_or(OnFailure::Keep, |_| OnFailure::Reopen),
                    app: Some(app),
                    tenant,
                    options,
                    principal: None,
                };
                Box::pin(self.resume_run(resume, run_request)).await
            }
            RunKind::Command { command, answer, checkpoint } => {
                let answers = match answer {
                    Some(answer) => self.answers_by_id(thread, answer, spec.stale_answers).await?,
                    None => BTreeMap::new(),
                };
                let checkpoint = *checkpoint;
                let request = CommandRun { record, spec, tenant, command, checkpoint, answers };
                Box::pin(self.start_command(request, run_request)).await
            }
            RunKind::Fork { checkpoint, input } => {
                let from = ForkFrom::Checkpoint { checkpoint: *checkpoint, input: input.clone() };
                Box::pin(self.start_fork(thread, &from, options, run_request)).await
            }
            RunKind::Redo { checkpoint, input } => {
                let from = ForkFrom::Input { checkpoint: *checkpoint, input: input.clone() };
                Box::pin(self.start_fork(thread, &from, options, run_request)).await
            }
        }
    }

    pub(super) async fn start_run(
        &self,
        request: StartRun,
        run_request: RunRequest,
    ) -> Result<RunRef, Failure> {
        check_documents(&request.input, &request.context, &request.metadata)?;
        self.app(&request.app)?;
        let thread = match request.thread.clone() {
            Some(thread) => thread,
            None => new_thread_id(),
        };
        let mut slot = self.claim_for_run(&thread, run_request).await?;
        let run_id = slot.run.clone();
        let head = self.unexpired_thread(&thread).await?;
        let new_thread = slot.request.new_thread.take();
        if let Some(head) = &head {
            check_new_thread(head, new_thread.as_deref())?;
            let app = (!head.record.is_unbound()).then_some(&request.app);
            check_owner(head, app, request.tenant.as_ref())?;
            self.admit(head).await?;
        }
        let caller = slot.request.caller(&request.app);
        self.take_memory(&mut slot, caller).await?;
        let (app, graph_version) =
            self.code_for(head.as_ref(), &request.app, request.graph.as_ref()).await?;
        let head = match head {
            Some(head) if !head.record.is_unbound() => head,
            Some(head) => bind(head, &app, &graph_version),
            None => {
                self.admit_new_thread(&thread, request.tenant.as_deref()).await?;
                let record = match new_thread {
                    Some(record) => *record,
                    None => self.new_thread(thread.clone(), request.tenant.clone()),
                };
                bind(ThreadHead::new(record), &app, &graph_version)
            }
        };
        if request.reject_if_interrupted {
            self.check_no_pending_interrupt(&head).await?;
        }
        options::check(&request.options, &graph_version.graph)?;
        check_context(caller, &graph_version.graph, &request.context).await?;
        let checkpoint =
            self.input_checkpoint(caller, &app, &graph_version, &head, &request, &run_id).await?;
        slot.count_state(&checkpoint, [])?;
        let first_step = Some(checkpoint.meta.step);
        let options = request.options;
        let run = RunRecord { options, first_step, ..self.new_run(&mut slot, &head, None) };
        let reusable_results = self.find_reusable_results(&head, &run.id, &BTreeMap::new()).await;
        let mut record = head.record.clone();
        metadata::check_merged_size(&record.metadata, &request.metadata)?;
        record.status = ThreadStatus::Running;
        record.stopped = false;
        record.failure = None;
        record.run = Some(run.id.clone());
        record.updated_ms = run.started_ms;
        record.expires_ms = None;
        if !request.context.is_null() {
            record.context = request.context;
        }
        record.metadata.extend(request.metadata);
        record.ttl = request.ttl.or(record.ttl);
        let log = self.run_log(&run, &head, &slot);
        log.push(self.run_started(&graph_version, &record, RunReason::Input, &slot));
        log.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        let commit = Commit {
            record: Some(record.clone()),
            run: Some(run.clone()),
            checkpoint: Some(checkpoint.clone()),
            queue_condition: slot.request.take_queue_condition(),
            ..Commit::default()
        };
        let first = log.commit_with_ticket(commit).await;
        let context = self.graph_context(app, graph_version, &record, &run, log, &slot);
        let context = GraphContext { reusable_results, ..context };
        let lineage = Lineage::new(checkpoint);
        let (unpersisted, memory) =
            (UnpersistedEvents::default(), std::mem::take(&mut slot.state_memory));
        let driver = Driver::new(context, record, run, lineage, unpersisted, memory);
        self.execute_run(slot, driver, RunReason::Input, first).await
    }

    /// Checks that a thread waits for no answer. The caller has claimed the thread, so no other run
    /// can raise an interrupt before its own run starts.
    ///
    /// # Errors
    ///
    /// `conflict` with the reason `interrupted` if the thread is interrupted and has pending
    /// interrupts.
    async fn check_no_pending_interrupt(&self, head: &ThreadHead) -> Result<(), Failure> {
        if head.record.status != ThreadStatus::Interrupted {
            return Ok(());
        }
        let tuple = view::current_checkpoint(&self.0.states, head).await?;
        let pending = tuple.map_or(0, |tuple| {
            let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
            view::pending_with_graphs(&lineage, &subgraphs).len()
        });
        if pending == 0 {
            return Ok(());
        }
        let text = format!(
            "thread `{}` is interrupted and waits for {pending} answer(s); resume it with answers",
            head.record.id
        );
        Err(Failure::new(code::CONFLICT, text).with_details(json!({ "reason": "interrupted" })))
    }

    async fn input_checkpoint(
        &self,
        caller: CallerId,
        app: &App,
        graph_version: &GraphVersion,
        head: &ThreadHead,
        request: &StartRun,
        run: &RunId,
    ) -> Result<Checkpoint, Failure> {
        let tuple = view::current_checkpoint(&self.0.states, head).await?;
        let id = unpersisted_events::next_checkpoint_id(head, tuple.as_ref());
        let base = tuple.map(|tuple| tuple.checkpoint);
        let reductions = input_reductions(&graph_version.graph, base.as_ref(), &request.input);
        let reduced = reduce(app, reductions).await?;
        let at = CheckpointStamp {
            id,
            run: run.clone(),
            at_ms: self.0.ports.clock.now_ms(),
            version: graph_version.version,
            parents: BTreeMap::new(),
            tasks: None,
        };
        let (graph, root) = (&graph_version.graph, Namespace::root());
        let is_long = is_long_input(graph, base.as_ref(), &request.input);
        let made = block_in_place_in_turn(caller, is_long, || {
            accept_input(graph, base.as_ref(), &root, &request.input, &reduced, at)
        });
        made.await.map_err(|error| error.to_failure())
    }

    pub(super) async fn resume_run(
        &self,
        mut request: ResumeRun,
        run_request: RunRequest,
    ) -> Result<RunRef, Failure> {
        let thread = &request.thread;
        let mut slot = self.claim_for_run(thread, run_request).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        if request.answers.is_empty() {
            self.admit(&head).await?;
        } else {
            self.admit_answers(&head).await?;
        }
        let caller = slot.request.caller(&head.record.app);
        self.take_memory(&mut slot, caller).await?;
        let tuple = view::current_checkpoint(&self.0.states, &head).await?;
        let tuple = tuple.ok_or_else(|| thread_not_found(thread))?;
        let past = self.is_shared().then(|| view::logged_tasks(&tuple.events));
        let was_drained = was_drained(&tuple.events);
        let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
        let open = view::pending_with_graphs(&lineage, &subgraphs);
        if slot.request.ignores_stale_answers() {
            retain_pending(&mut request.answers, &open);
        }
        let is_unanswered = slot.request.stale_answers.is_some() && request.answers.is_empty();
        let continues = open.is_empty() && continues_unanswered(&slot.request, &head.record);
        if is_unanswered && !continues {
            let interrupts = view::pending_interrupts(&lineage, &subgraphs, head.record.expires_ms);
            let at = ThreadPosition { checkpoint: lineage.checkpoint, interrupts, was_drained };
            return self.end_unanswered(slot, head, at, request.options).await;
        }
        for answer in request.answers.values() {
            check_depth("an answer", answer)?;
        }
        let (answers, reason) = if request.answers.is_empty() {
            check_can_continue(&head, &lineage, &open)?;
            let failed = head.record.status == ThreadStatus::Error;
            (Vec::new(), if failed { RunReason::Retry } else { RunReason::Resume })
        } else {
            let app = &head.record.app;
            (self.match_answers(&slot, app, &open, &request.answers).await?, RunReason::Resume)
        };
        let reopen = (request.on_failure == OnFailure::Reopen && !answers.is_empty())
            .then_some(lineage.checkpoint.meta.id);
        if let Some(past) = past {
            let held = view::held_elicitations(&past, &lineage, &subgraphs);
            let is_answered =
                |id: &InterruptId| answers.iter().any(|(_, kind)| is_answer_to(kind, id));
            let host = self.held_call_host(thread, held, is_answered).await?;
            if let Some(host) = host.filter(|host| host != self.holder()) {
                if slot.request.queue_condition == QueueCondition::Pending {
                    return Err(must_start_on(&host));
                }
                return self.enqueue_for_host(host, slot, &head, request, reopen, answers).await;
            }
        }
        let run = RunRecord { options: request.options, ..self.new_run(&mut slot, &head, reopen) };
        self.continue_at(slot, head, tuple, run, reason, answers).await
    }

    /// Continues a fork from the current checkpoint of its thread.
    pub(super) async fn continue_fork(
        &self,
        slot: ThreadClaim,
        head: ThreadHead,
        run: RunRecord,
    ) -> Result<RunRef, Failure> {
        let tuple = self.current_checkpoint(&head).await?;
        self.continue_at(slot, head, tuple, run, RunReason::Fork, Vec::new()).await
    }

    /// Continues an orphaned run from the current checkpoint of its thread, and counts the
    /// recovery.
    ///
    /// # Errors
    ///
    /// `limit` if the run was recovered too often without progress, or if its caller does not have
    /// enough memory. Nothing is then written.
    pub(super) async fn continue_orphaned(
        &self,
        mut slot: ThreadClaim,
        head: ThreadHead,
        mut run: RunRecord,
        cause: RecoveryCause,
    ) -> Result<RunRef, Failure> {
        let caller = caller_of(&run, &head.record.app, &slot);
        self.take_memory_to_recover(&mut slot, caller)?;
        let tuple = self.current_checkpoint(&head).await?;
        run.recovery_count = self.count_recovery(&run, &tuple.events, cause)?;
        self.continue_at(slot, head, tuple, run, RunReason::Recovery, Vec::new()).await
    }

    /// Returns the current checkpoint of a thread that a run has started on.
    async fn current_checkpoint(&self, head: &ThreadHead) -> Result<CheckpointTuple, Failure> {
        let tuple = view::current_checkpoint(&self.0.states, head).await?;
        tuple.ok_or_else(|| {
            Failure::internal(format!("thread `{}` has no checkpoint", head.record.id))
        })
    }

    /// Continues a run from the current checkpoint of its thread, which is `tuple`: with answers,
    /// past a breakpoint, after a crash or as a fork.
    async fn continue_at(
        &self,
        mut slot: ThreadClaim,
        head: ThreadHead,
        mut tuple: CheckpointTuple,
        mut run: RunRecord,
        reason: RunReason,
        answers: Vec<(Namespace, EventKind)>,
    ) -> Result<RunRef, Failure> {
        let (app, graph_version) = self.pinned_code(&head.record).await?;
        options::check(&run.options, &graph_version.graph)?;
        // The start of a fork is written already, and has counted the state and the events.
        if reason != RunReason::Fork {
            let events = tuple.events.iter().map(|event| &event.kind);
            slot.count_state(&tuple.checkpoint, events)?;
        }
        run.first_step.get_or_insert(tuple.checkpoint.meta.step);
        let logged_tasks = view::logged_tasks(&tuple.events);
        let reusable_results = self.find_reusable_results(&head, &run.id, &logged_tasks).await;
        let mut record = head.record.clone();
        record.status = ThreadStatus::Running;
        record.stopped = false;
        record.failure = None;
        record.run = Some(run.id.clone());
        record.updated_ms = self.0.ports.clock.now_ms();
        record.expires_ms = None;
        let log = self.run_log(&run, &head, &slot);
        // The log counts the usage. The record has it only after the end of the run.
        run.usage = ModelUsage::default();
        log.reserve_checkpoint_ids(unpersisted_events::highest_checkpoint_id(&tuple)).await;
        // The log of a fork already has `run_started`, before the events that were carried over.
        if reason != RunReason::Fork {
            let started = self.run_started(&graph_version, &record, reason, &slot);
            tuple.events.push(log.push_and_copy(started));
        }
        for (graph, answer) in answers {
            tuple.events.push(log.for_namespace(graph).push_and_copy(answer));
        }
        let tasks = TaskCount::new(
            graph_version.graph.limits().run_tasks,
            finished_in_log(&tuple, &run.id),
        );
        let (unpersisted, breakpoints_passed_seq) =
            (unpersisted_events::unpersisted_since(&tuple), view::breakpoints_passed_seq(&tuple));
        let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
        log.set_pending_interrupts(&view::pending_with_graphs(&lineage, &subgraphs));
        let commit = Commit {
            record: Some(record.clone()),
            run: Some(run.clone()),
            queue_condition: slot.request.take_queue_condition(),
            ..Commit::default()
        };
        let first = log.commit_with_ticket(commit).await;
        let context = self.graph_context(app, graph_version, &record, &run, log, &slot);
        let root_superstep =
            Arc::new(RootSuperstep::new(logged_tasks, subgraphs, breakpoints_passed_seq));
        let context =
            GraphContext { reusable_results, root_superstep, tasks: Arc::new(tasks), ..context };
        let memory = std::mem::take(&mut slot.state_memory);
        let driver = Driver::new(context, record, run, lineage, unpersisted, memory);
        self.execute_run(slot, driver, reason, first).await
    }

    pub(super) fn new_run(
        &self,
        slot: &mut ThreadClaim,
        head: &ThreadHead,
        reopen: Option<CheckpointId>,
    ) -> RunRecord {
        let now_ms = self.now_ms();
        RunRecord {
            id: slot.run.clone(),
            thread: head.record.id.clone(),
            first_seq: head.last_seq + 1,
            status: RunStatus::Running,
            failure: None,
            created_ms: slot.request.created_ms.or(Some(now_ms)),
            started_ms: now_ms,
            ended_ms: None,
            last_checkpoint: None,
            reopen,
            options: RunOptions::default(),
            first_step: None,
            origin: None,
            usage: ModelUsage::default(),
            recovery_count: RecoveryCount::default(),
            spec: slot.request.spec.take(),
        }
    }

    /// Creates the log for a change that a principal makes to a thread.
    pub(super) fn thread_log(
        &self,
        head: &ThreadHead,
        slot: &ThreadClaim,
        principal: Option<&Principal>,
    ) -> Arc<ThreadLog> {
        let caller = CallerId::of_run(principal, &head.record.app);
        Arc::new(self.new_log(head, slot).with_caller(caller))
    }

    /// Creates the log of a run, with the durability of the run. Adds the log and the caller of the
    /// run to the thread's entry in `active`.
    fn run_log(&self, run: &RunRecord, head: &ThreadHead, slot: &ThreadClaim) -> Arc<ThreadLog> {
        let caller = caller_of(run, &head.record.app, slot);
        let log = self.new_log(head, slot).with_durability(run.options.durability);
        let log = log.with_caller(caller).with_memory(slot.memory.clone());
        let log = Arc::new(log.with_usage(run.usage.clone()));
        if let Some(active) = self.active().get_mut(&slot.thread) {
            active.log = Arc::downgrade(&log);
            active.caller = caller;
        }
        log
    }

    fn new_log(&self, head: &ThreadHead, slot: &ThreadClaim) -> ThreadLog {
        let (states, clock) = (self.0.states.clone(), self.0.ports.clock.clone());
        let log = ThreadLog::new(states, clock, head, slot.epoch, slot.run.clone());
        let quotas = &self.0.quotas;
        let tenant = quotas.byte_meter(head.record.tenant.as_deref());
        let log = log.with_size_limit(quotas.caps().thread_log_bytes, head.log_bytes, tenant);
        let log = log.with_interrupt_limit(quotas.caps().thread_questions);
        match &slot.lease {
            Some(lease) => log.with_lease(lease.clone()),
            None => log,
        }
    }

    #[expect(clippy::unused_self, reason = "called like its sibling methods")]
    pub(super) fn run_started(
        &self,
        graph_version: &GraphVersion,
        record: &ThreadRecord,
        reason: RunReason,
        slot: &ThreadClaim,
    ) -> EventKind {
        EventKind::RunStarted(RunStarted {
            graph: graph_version.graph.name.clone(),
            digest: graph_version.version,
            reason,
            context: record.context.clone(),
            principal: slot.request.principal.clone(),
        })
    }

    fn graph_context(
        &self,
        app: Arc<App>,
        graph_version: Arc<GraphVersion>,
        record: &ThreadRecord,
        run: &RunRecord,
        log: Arc<ThreadLog>,
        slot: &ThreadClaim,
    ) -> GraphContext {
        let run_tasks = graph_version.graph.limits().run_tasks;
        GraphContext {
            app,
            graph_version,
            parent_graph: None,
            log,
            record: Arc::new(record.clone()),
            run_context: Arc::new(record.context.clone().into()),
            run: run.id.clone(),
            caller: caller_of(run, &record.app, slot),
            options: Arc::new(run.options.clone()),
            ports: Arc::new(self.0.ports.clone()),
            quotas: self.0.quotas.clone(),
            schemas: self.0.schemas.clone(),
            cancel: slot.cancel.clone(),
            drain: slot.drain.clone(),
            handover: slot.handover.clone(),
            tasks: Arc::new(TaskCount::new(run_tasks, 0)),
            memory: slot.memory.clone(),
            parents: Arc::default(),
            reusable_results: Arc::default(),
            root_superstep: Arc::default(),
            parent_heartbeat: None,
            is_awaited_by_guest: false,
            error: None,
            subgraph_runner: &SubgraphDriver,
        }
    }

    /// Collects unused results of cancelled runs that the new run may reuse. Tasks of `past` with a
    /// journal are excluded, because they get the results of their journals. Reuse only saves cost,
    /// so a read error is logged and ignored.
    async fn find_reusable_results(
        &self,
        head: &ThreadHead,
        run: &RunId,
        past: &BTreeMap<TaskId, LoggedTask>,
    ) -> Arc<ReusableResults> {
        let found = result_reuse::scan(self.0.ports.store.as_ref(), head, run).await;
        match found {
            Ok(search) => Arc::new(
                search.into_reusable(|task| past.get(task).is_some_and(LoggedTask::has_events)),
            ),
            Err(error) => {
                let thread = &head.record.id;
                tracing::warn!(
                    %thread, %error,
                    "cannot read results of cancelled runs; calls are executed again"
                );
                Arc::default()
            }
        }
    }
}

/// Returns the caller for which a run counts. A recovered run has no request: it counts for the
/// principal in its record, if the record has one, or else for its app.
fn caller_of(run: &RunRecord, app: &AppName, slot: &ThreadClaim) -> CallerId {
    let in_record = run.spec.as_ref().and_then(|spec| spec.principal.as_ref());
    CallerId::of_run(slot.request.principal.as_ref().or(in_record), app)
}

/// Returns true if an event answers an interrupt.
fn is_answer_to(kind: &EventKind, question: &InterruptId) -> bool {
    matches!(kind, EventKind::Answered(answered) if answered.interrupt == *question)
}
