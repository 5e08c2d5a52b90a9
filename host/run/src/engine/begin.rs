//! Starts and continues runs: with an input, with answers, or from the current checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Answered, Checkpointed, EventKind, RunReason, RunStarted, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{
    AppName, CheckpointId, GraphName, InterruptId, Namespace, RunId, TaskId, ThreadId,
};
use wattle_graph::interrupt::{AnswerError, Interrupt, match_answers};
use wattle_graph::lineage::Lineage;
use wattle_graph::principal::Principal;
use wattle_graph::step::{CheckpointStamp, accept_input, input_reductions};

use super::asked::Asked;
use super::blank::bound;
use super::held::left_to;
use super::owner::check_owner;
use super::{Engine, Slot, new_run_id, new_thread_id, no_thread};
use crate::app::{App, GraphPack};
use crate::bulk::{are_large, in_bulk};
use crate::driver::{Driver, Left, NestedLoop, Past, PastTask, reduce};
use crate::facts;
use crate::hostcall::runs::{OnFailure, ResumeRun, RunRef, StartRun};
use crate::json::check_depth;
use crate::log::{Commit, ThreadLog};
use crate::ports::store::{RunOptions, RunRecord, ThreadHead, ThreadRecord, ThreadStatus, Turn};
use crate::replay::{self, Unstored};
use crate::salvage::{self, Salvage};
use crate::task::count::{TaskCount, finished};
use crate::task::{RunContext, options};
use crate::view::{self, store_failure};

impl Engine {
    pub(super) async fn start_run(
        &self,
        request: StartRun,
        asked: Asked,
    ) -> Result<RunRef, Failure> {
        check_documents(&request.input, &request.context, &request.metadata)?;
        self.app(&request.app)?;
        let thread = match request.thread.clone() {
            Some(thread) => thread,
            None => new_thread_id(),
        };
        let mut slot = self.claim_new(&thread, asked).await?;
        let run_id = slot.run.clone();
        let head = self.live_thread(&thread).await?;
        if let Some(head) = &head {
            let app = (!head.record.is_blank()).then_some(&request.app);
            check_owner(head, app, request.tenant.as_ref())?;
            self.admit(head).await?;
        }
        let (app, pack) = self.code_for(head.as_ref(), &request.app, request.graph.as_ref())?;
        let head = match head {
            Some(head) if !head.record.is_blank() => head,
            Some(head) => bound(head, &app, &pack),
            None => {
                self.admit_new(request.tenant.as_deref()).await?;
                self.new_thread(&thread, &app, &pack, &request)
            }
        };
        options::check(&request.options, &pack.graph)?;
        pack.graph.check_context(&request.context)?;
        let checkpoint = self.input_checkpoint(&app, &pack, &head, &request, &run_id).await?;
        let first_step = Some(checkpoint.meta.step);
        let options = request.options;
        let run = RunRecord { options, first_step, ..self.new_run(&mut slot, &head, None) };
        let salvage = self.salvage(&head, &run.id, &BTreeMap::new()).await;
        let mut record = head.record.clone();
        facts::check_added(&record.metadata, &request.metadata)?;
        record.status = ThreadStatus::Running;
        record.run = Some(run.id.clone());
        record.updated_ms = run.started_ms;
        record.expires_ms = None;
        if !request.context.is_null() {
            record.context = request.context;
        }
        record.metadata.extend(request.metadata);
        record.ttl = request.ttl.or(record.ttl);
        let log = self.log_of(&run, &head, &slot);
        log.push(self.run_started(&pack, &record, RunReason::Input, &slot));
        log.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        log.commit(Commit {
            record: Some(record.clone()),
            run: Some(run.clone()),
            checkpoint: Some(checkpoint.clone()),
            turn: slot.take_turn(),
            ..Commit::default()
        })
        .await;
        log.barrier().await.map_err(|error| self.not_written(error))?;
        let context = self.context(app, pack, &record, &run, log, &slot, &checkpoint);
        let context = RunContext { salvage, ..context };
        let lineage = Lineage::new(checkpoint);
        let driver = Driver::new(context, record, run, lineage, Unstored::default());
        Ok(self.spawn(slot, driver))
    }

    /// Returns the code of a run on a thread: the version that the thread is pinned to, or the
    /// newest version of the app if the thread is new or unbound.
    ///
    /// # Errors
    ///
    /// `conflict` if the thread is bound to a graph other than `graph`; `not-found` if the app or
    /// the graph is not loaded; `unavailable` if the pinned version is not loaded; `invalid` if no
    /// graph is named and the app has several.
    pub(super) fn code_for(
        &self,
        head: Option<&ThreadHead>,
        app: &AppName,
        graph: Option<&GraphName>,
    ) -> Result<(Arc<App>, Arc<GraphPack>), Failure> {
        let Some(record) = head.map(|head| &head.record).filter(|record| !record.is_blank()) else {
            let app = self.app(app)?;
            let pack = graph_of(&app, graph)?;
            return Ok((app, pack));
        };
        if let Some(graph) = graph.filter(|graph| **graph != record.graph) {
            let (thread, own) = (&record.id, &record.graph);
            let text = format!(
                "thread `{thread}` is bound to graph `{own}`; run `{graph}` on another thread"
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
        self.pinned(record)
    }

    pub(super) fn app(&self, name: &AppName) -> Result<Arc<App>, Failure> {
        self.0.catalog.app(name).ok_or_else(|| {
            let known: Vec<String> =
                self.0.catalog.apps().iter().map(|app| format!("`{}`", app.name)).collect();
            Failure::new(
                code::NOT_FOUND,
                format!("there is no app `{name}`; loaded apps: {}", known.join(", ")),
            )
        })
    }

    pub(super) fn new_thread(
        &self,
        thread: &ThreadId,
        app: &App,
        pack: &GraphPack,
        request: &StartRun,
    ) -> ThreadHead {
        let now = self.0.ports.clock.now_ms();
        let record = ThreadRecord {
            id: thread.clone(),
            app: app.name.clone(),
            graph: pack.graph.name.clone(),
            version: pack.version,
            status: ThreadStatus::Idle,
            run: None,
            created_ms: now,
            updated_ms: now,
            expires_ms: None,
            tenant: request.tenant.clone(),
            context: request.context.clone(),
            metadata: Default::default(),
            born: Some(new_run_id()),
            origin: None,
            ttl: request.ttl.or(self.0.thread_ttl),
            pruned_ms: None,
        };
        ThreadHead::new(record)
    }

    async fn input_checkpoint(
        &self,
        app: &App,
        pack: &GraphPack,
        head: &ThreadHead,
        request: &StartRun,
        run: &RunId,
    ) -> Result<Checkpoint, Failure> {
        let store = self.0.ports.store.as_ref();
        let tuple = view::current(store, head).await.map_err(store_failure)?;
        let id = replay::free_number(head, tuple.as_ref());
        let base = tuple.map(|tuple| tuple.checkpoint);
        let reductions = input_reductions(&pack.graph, base.as_ref(), &request.input);
        let reduced = reduce(app, reductions).await?;
        let at = CheckpointStamp {
            id,
            run: run.clone(),
            at_ms: self.0.ports.clock.now_ms(),
            version: pack.version,
            parents: BTreeMap::new(),
            tasks: None,
        };
        let root = Namespace::root();
        let made = in_bulk(are_large([&request.input]), || {
            accept_input(&pack.graph, base.as_ref(), &root, &request.input, &reduced, at)
        });
        made.map_err(|error| error.to_failure())
    }

    pub(super) async fn resume_run(
        &self,
        request: ResumeRun,
        asked: Asked,
    ) -> Result<RunRef, Failure> {
        let thread = &request.thread;
        let mut slot = self.claim_new(thread, asked).await?;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        self.admit(&head).await?;
        let store = self.0.ports.store.as_ref();
        let tuple = view::current(store, &head).await.map_err(store_failure)?;
        let tuple = tuple.ok_or_else(|| no_thread(thread))?;
        let past = self.is_shared().then(|| view::past_tasks(&tuple.events));
        let (lineage, nest) = view::open(tuple);
        let open = view::questions(&lineage, &nest);
        for answer in request.answers.values() {
            check_depth("an answer", answer)?;
        }
        let (answers, reason) = if request.answers.is_empty() {
            check_can_continue(&head, &lineage, &open)?;
            let failed = head.record.status == ThreadStatus::Error;
            (Vec::new(), if failed { RunReason::Retry } else { RunReason::Resume })
        } else {
            let asked: Vec<&Interrupt> = open.iter().map(|(_, question)| question).collect();
            let is_much = are_large(request.answers.values());
            let answers = in_bulk(is_much, || match_answers(&asked, &request.answers))
                .map_err(|error| answer_failure(&error, thread))?;
            (in_their_graphs(&open, answers, slot.asked.principal.as_ref()), RunReason::Resume)
        };
        let reopen = (request.on_failure == OnFailure::Reopen && !answers.is_empty())
            .then_some(lineage.checkpoint.meta.id);
        if let Some(past) = past {
            let held = view::held(&past, &lineage, &nest);
            let is_answered =
                |id: &InterruptId| answers.iter().any(|(_, kind)| answers_it(kind, id));
            let host = self.goes_on_at(thread, held, is_answered).await?;
            if let Some(host) = host.filter(|host| host != self.holder()) {
                if slot.asked.turn == Turn::Own {
                    return Err(left_to(&host));
                }
                return self.leave_to(host, slot, &head, request, reopen, answers).await;
            }
        }
        let run = RunRecord { options: request.options, ..self.new_run(&mut slot, &head, reopen) };
        self.go_on(slot, head, run, reason, answers).await
    }

    /// Continues a run from the current checkpoint of its thread: with answers, past a breakpoint,
    /// after a crash or as a fork.
    pub(super) async fn go_on(
        &self,
        mut slot: Slot,
        head: ThreadHead,
        mut run: RunRecord,
        reason: RunReason,
        answers: Vec<(Namespace, EventKind)>,
    ) -> Result<RunRef, Failure> {
        let (app, pack) = self.pinned(&head.record)?;
        options::check(&run.options, &pack.graph)?;
        let store = self.0.ports.store.as_ref();
        let Some(mut tuple) = view::current(store, &head).await.map_err(store_failure)? else {
            return Err(Failure::internal(format!(
                "thread `{}` has no checkpoint",
                head.record.id
            )));
        };
        run.first_step.get_or_insert(tuple.checkpoint.meta.step);
        let past = view::past_tasks(&tuple.events);
        let salvage = self.salvage(&head, &run.id, &past).await;
        let mut record = head.record.clone();
        record.status = ThreadStatus::Running;
        record.run = Some(run.id.clone());
        record.updated_ms = self.0.ports.clock.now_ms();
        record.expires_ms = None;
        let log = self.log_of(&run, &head, &slot);
        log.skip_numbers(replay::newest(&tuple)).await;
        // The log of a fork already has `run_started`, before the events that were carried over.
        if reason != RunReason::Fork {
            tuple.events.push(log.push(self.run_started(&pack, &record, reason, &slot)));
        }
        for (graph, answer) in answers {
            tuple.events.push(log.within(graph).push(answer));
        }
        let tasks = TaskCount::new(pack.graph.task_limits().run_tasks, finished(&tuple, &run.id));
        let (unstored, passed) = (replay::since(&tuple), view::passed(&tuple));
        let (lineage, nest) = view::open(tuple);
        log.set_open_questions(view::questions(&lineage, &nest).len());
        let commit = Commit {
            record: Some(record.clone()),
            run: Some(run.clone()),
            turn: slot.take_turn(),
            ..Commit::default()
        };
        log.commit(commit).await;
        log.barrier().await.map_err(|error| self.not_written(error))?;
        let context = self.context(app, pack, &record, &run, log, &slot, &lineage.checkpoint);
        let past = Arc::new(Past::new(past, nest, passed));
        let context = RunContext { salvage, past, tasks: Arc::new(tasks), ..context };
        let driver = Driver::new(context, record, run, lineage, unstored);
        Ok(self.spawn(slot, driver))
    }

    /// Returns the code that a thread is pinned to.
    pub(super) fn pinned(
        &self,
        record: &ThreadRecord,
    ) -> Result<(Arc<App>, Arc<GraphPack>), Failure> {
        self.0.catalog.version(&record.app, &record.graph, record.version).ok_or_else(|| {
            Failure::new(
                code::UNAVAILABLE,
                format!(
                    "thread `{}` is pinned to version {} of graph `{}` in app `{}`, which is not \
                     loaded; put that version back or start a new thread",
                    record.id,
                    &record.version.to_hex()[..12],
                    record.graph,
                    record.app
                ),
            )
            .with_details(json!({ "version": record.version }))
        })
    }

    pub(super) fn new_run(
        &self,
        slot: &mut Slot,
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
            created_ms: slot.asked.created_ms.or(Some(now_ms)),
            started_ms: now_ms,
            ended_ms: None,
            reopen,
            options: RunOptions::default(),
            first_step: None,
            origin: None,
            spec: slot.asked.spec.take(),
        }
    }

    pub(super) fn log(&self, head: &ThreadHead, slot: &Slot) -> Arc<ThreadLog> {
        Arc::new(self.writer(head, slot))
    }

    /// Creates the log of a run, with the durability of the run, and adds it to the thread's entry.
    fn log_of(&self, run: &RunRecord, head: &ThreadHead, slot: &Slot) -> Arc<ThreadLog> {
        let log = Arc::new(self.writer(head, slot).with_durability(run.options.durability));
        if let Some(active) = self.active().get_mut(&slot.thread) {
            active.log = Arc::downgrade(&log);
        }
        log
    }

    fn writer(&self, head: &ThreadHead, slot: &Slot) -> ThreadLog {
        let (store, clock) = (self.0.ports.store.clone(), self.0.ports.clock.clone());
        let log = ThreadLog::new(store, clock, head, slot.epoch, slot.run.clone());
        let quotas = &self.0.quotas;
        let tenant = quotas.bytes_of(head.record.tenant.as_deref());
        let log = log.with_room(quotas.caps().thread_log_bytes, head.log_bytes, tenant);
        let log = log.with_questions(quotas.caps().thread_questions);
        match &slot.tenure {
            Some(tenure) => log.for_tenure(tenure.clone()),
            None => log,
        }
    }

    #[expect(clippy::unused_self, reason = "called like its sibling methods")]
    pub(super) fn run_started(
        &self,
        pack: &GraphPack,
        record: &ThreadRecord,
        reason: RunReason,
        slot: &Slot,
    ) -> EventKind {
        EventKind::RunStarted(RunStarted {
            graph: pack.graph.name.clone(),
            digest: pack.version,
            reason,
            context: record.context.clone(),
            principal: slot.asked.principal.clone(),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "collects the parts of a run context")]
    fn context(
        &self,
        app: Arc<App>,
        pack: Arc<GraphPack>,
        record: &ThreadRecord,
        run: &RunRecord,
        log: Arc<ThreadLog>,
        slot: &Slot,
        checkpoint: &Checkpoint,
    ) -> RunContext {
        let run_tasks = pack.graph.task_limits().run_tasks;
        RunContext {
            app,
            pack,
            above: None,
            log,
            record: Arc::new(record.clone()),
            run: run.id.clone(),
            options: Arc::new(run.options.clone()),
            ports: self.0.ports.clone(),
            quotas: self.0.quotas.clone(),
            cancel: slot.cancel.clone(),
            drain: slot.drain.clone(),
            halt: slot.halt.clone(),
            remaining_steps: 0,
            tasks: Arc::new(TaskCount::new(run_tasks, 0)),
            base: checkpoint.meta.id,
            children: Arc::default(),
            parents: Arc::default(),
            salvage: Arc::default(),
            past: Arc::default(),
            alive: None,
            error: None,
            subgraphs: &NestedLoop,
        }
    }

    /// Collects unused results of cancelled runs that the new run may reuse. Tasks of `past` with a
    /// journal are excluded, because they replay it. Reuse only saves cost, so a read error is
    /// logged and ignored.
    async fn salvage(
        &self,
        head: &ThreadHead,
        run: &RunId,
        past: &BTreeMap<TaskId, PastTask>,
    ) -> Arc<Salvage> {
        let found = salvage::search(self.0.ports.store.as_ref(), head, run).await;
        match found {
            Ok(search) => {
                Arc::new(search.found(|task| past.get(task).is_some_and(PastTask::is_known)))
            }
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

    fn spawn(&self, mut slot: Slot, driver: Driver) -> RunRef {
        let run = RunRef { thread: slot.thread.clone(), run: slot.run.clone() };
        let closing = self.0.closing.clone();
        // The run may last long, and an input or a fork may have discarded interrupts of held
        // calls.
        self.let_go(&slot.thread);
        self.0.ports.observer.run_started(&driver.record().app, &driver.record().graph);
        self.0.runtime.spawn(async move {
            let left = tokio::select! {
                biased;
                () = closing.cancelled() => Left::Still,
                left = Box::pin(driver.drive()) => left,
            };
            let ended = match left {
                Left::Ended(ended) => ended,
                Left::Still => return slot.hand_over().await,
                Left::Lost(failure) => return slot.lose(failure).await,
            };
            let done = slot.done.clone();
            slot.release().await;
            // The thread is free before the end of the run is announced, so that receivers can
            // start the next run.
            let (engine, thread) = (slot.engine.clone(), slot.thread.clone());
            drop(slot);
            engine.0.dispatch.ended(&thread, engine.now_ms());
            done.send_replace(Some(Arc::new(ended)));
        });
        run
    }
}

/// Rejects an input, a context or metadata that is nested too deeply.
pub(super) fn check_documents(
    input: &Value,
    context: &Value,
    metadata: &BTreeMap<String, Value>,
) -> Result<(), Failure> {
    check_depth("the input", input)?;
    check_depth("the context", context)?;
    metadata.values().try_for_each(|value| check_depth("the metadata", value))
}

pub(super) fn graph_of(app: &App, name: Option<&GraphName>) -> Result<Arc<GraphPack>, Failure> {
    let names = || app.graphs.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let found = match name {
        Some(name) => app.graphs.get(name),
        None if app.graphs.len() == 1 => app.graphs.values().next(),
        None => {
            return Err(Failure::new(
                code::INVALID,
                format!("app `{}` has several graphs, name one of {}", app.name, names()),
            ));
        }
    };
    found.cloned().ok_or_else(|| {
        let wanted = name.map_or_else(String::new, |name| format!(" `{name}`"));
        Failure::new(
            code::NOT_FOUND,
            format!("app `{}` has no graph{wanted}; it has: {}", app.name, names()),
        )
    })
}

/// Returns the answers of a principal as events, each with the graph that raised the interrupt.
pub(super) fn in_their_graphs(
    open: &[(Namespace, Interrupt)],
    answers: Vec<Answered>,
    principal: Option<&Principal>,
) -> Vec<(Namespace, EventKind)> {
    let graph_of = |answered: &Answered| {
        open.iter().find(|(_, question)| question.asked.interrupt == answered.interrupt)
    };
    let placed = answers.into_iter().filter_map(|answered| {
        let graph = graph_of(&answered)?.0.clone();
        let answered = Answered { principal: principal.cloned(), ..answered };
        Some((graph, EventKind::Answered(answered)))
    });
    placed.collect()
}

/// Returns true if an event answers an interrupt.
fn answers_it(kind: &EventKind, question: &InterruptId) -> bool {
    matches!(kind, EventKind::Answered(answered) if answered.interrupt == *question)
}

/// Checks that a thread can continue without answers: no interrupt is pending, and a node is
/// triggered.
fn check_can_continue(
    head: &ThreadHead,
    lineage: &Lineage,
    open: &[(Namespace, Interrupt)],
) -> Result<(), Failure> {
    if let Some((_, question)) = open.first() {
        return Err(Failure::new(
            code::INVALID,
            format!(
                "thread `{}` waits for {} answer(s), the first to interrupt `{}`; give answers by \
                 interrupt id",
                head.record.id,
                open.len(),
                question.asked.interrupt
            ),
        ));
    }
    if lineage.checkpoint.meta.next.is_empty() {
        return Err(Failure::new(
            code::CONFLICT,
            format!("thread `{}` has reached its end, nothing is left to run", head.record.id),
        ));
    }
    Ok(())
}

pub(super) fn answer_failure(error: &AnswerError, thread: &ThreadId) -> Failure {
    if let AnswerError::Limit(exceeded) = error {
        return exceeded.to_failure();
    }
    let word = match error {
        AnswerError::SchemaMismatch { .. } | AnswerError::Ambiguous { .. } => code::INVALID,
        _ => code::CONFLICT,
    };
    Failure::new(word, format!("thread `{thread}`: {error}"))
}
