//! Starts runs from their stored specifications.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, ThreadId};

use super::request::{RunRequest, answers_by_interrupt};
use super::{Engine, ThreadClaim};
use crate::hostcall::runs::{OnFailure, ResumeRun, RunRef, RunService as _, StartRun};
use crate::ports::store::{QueueCondition, RunAnswers, RunKind, RunRecord, StaleAnswers};
use crate::time_travel::{CommandThread, ForkFrom, ForkInto, ForkThread};

impl ThreadClaim {
    /// Takes the [`QueueCondition`] of the run for the batch that starts it.
    pub(super) fn take_queue_condition(&mut self) -> QueueCondition {
        std::mem::take(&mut self.request.queue_condition)
    }
}

impl Engine {
    /// Starts the run of `record` as its specification says, on a thread of `tenant`.
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
    ) -> Result<RunRef, Failure> {
        let Some(spec) = record.spec.as_deref() else {
            return Err(Failure::internal(format!("run `{}` has no specification", record.id)));
        };
        let thread = &record.thread;
        let run_request = RunRequest::from_record(record, turn);
        let (app, options) = (spec.app.clone(), record.options.clone());
        match &spec.kind {
            RunKind::Start { input } => {
                let start = StartRun {
                    app,
                    graph: spec.graph.clone(),
                    input: input.clone(),
                    thread: Some(thread.clone()),
                    run: None,
                    context: spec.context.clone(),
                    metadata: spec.metadata.clone(),
                    tenant,
                    options,
                    ttl: spec.ttl,
                    principal: None,
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
                let command = CommandThread {
                    thread: thread.clone(),
                    run: None,
                    app,
                    graph: spec.graph.clone(),
                    tenant,
                    checkpoint: *checkpoint,
                    command: command.clone(),
                    answers,
                    context: spec.context.clone(),
                    metadata: spec.metadata.clone(),
                    options,
                    principal: None,
                };
                Box::pin(self.command_thread(command, run_request)).await
            }
            RunKind::Fork { checkpoint, input } => {
                let from = ForkFrom::Checkpoint { checkpoint: *checkpoint, input: input.clone() };
                self.start_fork(record, from, (app, tenant), run_request).await
            }
            RunKind::Redo { checkpoint, input } => {
                let from = ForkFrom::Input { checkpoint: *checkpoint, input: input.clone() };
                self.start_fork(record, from, (app, tenant), run_request).await
            }
        }
    }

    async fn start_fork(
        &self,
        record: &RunRecord,
        from: ForkFrom,
        (app, tenant): (AppName, Option<String>),
        run_request: RunRequest,
    ) -> Result<RunRef, Failure> {
        let fork = ForkThread {
            thread: record.thread.clone(),
            run: None,
            from,
            into: ForkInto::InPlace,
            app: Some(app),
            tenant,
            options: record.options.clone(),
            principal: None,
        };
        Box::pin(self.fork_thread(&record.thread, &fork, run_request)).await
    }

    /// Replaces the answers of a run by answers with interrupt ids, if they match the pending
    /// interrupts. A client answers the interrupts that it sees; others may be pending when the run
    /// starts.
    pub(super) async fn resolve_answers(&self, record: &mut RunRecord) {
        let RunRecord { thread, spec, .. } = record;
        let Some(spec) = spec.as_deref_mut() else { return };
        let stale = spec.stale_answers;
        let (RunKind::Answer { answer } | RunKind::Command { answer: Some(answer), .. }) =
            &mut spec.kind
        else {
            return;
        };
        // If the answers do not match, the start of the run reports the reason. If they answer
        // nothing yet, they may be for interrupts that a pending run raises.
        if let Ok(answers) = self.answers_by_id(thread, answer, stale).await
            && !answers.is_empty()
        {
            *answer = RunAnswers::ById(answers);
        }
    }

    async fn answers_by_id(
        &self,
        thread: &ThreadId,
        answer: &RunAnswers,
        stale: StaleAnswers,
    ) -> Result<BTreeMap<String, Value>, Failure> {
        match answer {
            RunAnswers::ById(answers) => Ok(answers.clone()),
            RunAnswers::Matched(value) => {
                let view = self.thread(thread).await?;
                let open = view.map(|view| view.interrupts).unwrap_or_default();
                answers_by_interrupt(&open, value, stale)
            }
        }
    }
}
