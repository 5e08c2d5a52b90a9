//! Calls that MCP servers hold open on this host until a person has answered.
//!
//! An input, an edit, a fork, a decision, a cancel or the end of the thread can end the wait, on
//! this host or on another host. These operations do not name held calls. Therefore, the host
//! compares the calls that are held for a thread with the calls that the thread waits for: after
//! each of its own operations on the thread, and periodically.
//!
//! # Where a call continues
//!
//! Of the hosts that share a store, only the host that holds a call can continue it, but any host
//! may receive the answer. A host that does not hold the call leaves the run to the host that does.
//! The run is then pending and names the interrupts that it answers.
//!
//! The run is left to that host as long as the host is live and not shutting down, without a
//! timeout. A host at its maximum number of runs starts the run when it has capacity. A host that
//! was not notified finds the run in its next list of pending runs. The run is due from the last
//! change of its thread on, so a host whose clock is behind also sees it as due.
//!
//! The other hosts check the run periodically. The store decides by its own clock which hosts are
//! live, so the lease of a dead host bounds the wait for that host. After the wait, any host starts
//! the run, and the call is in doubt. The call is also in doubt if its own host starts the run and
//! no longer holds the call.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wattle_graph::elicitation::Elicited;
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, ThreadId};
use wattle_graph::interrupt::Interrupt;

use super::{Engine, ThreadClaim};
use crate::hostcall::runs::{ResumeRun, RunRef};
use crate::ports::store::{
    LeaseHolder, RunAnswers, RunKind, RunRecord, RunSpec, StoreError, ThreadHead, ThreadStatus,
};
use crate::view;

impl Engine {
    /// Releases the calls that are held for a thread and that the thread does not wait for. No run
    /// may be active on the thread in this process, because a call is held before its interrupt is
    /// in the log.
    pub(super) fn release_unneeded(&self, thread: &ThreadId) {
        self.release_held(self.0.ports.tools.held_calls(Some(thread)));
    }

    /// Releases, in the background, each of the given held calls that no thread waits for. If a run
    /// is active on the thread in this process, the calls were held before it started.
    pub(super) fn release_held(&self, held: Vec<(ThreadId, String)>) {
        if !held.is_empty() {
            let engine = self.clone();
            self.0.runtime.spawn(async move { engine.release_if_unneeded(held).await });
        }
    }

    /// Releases held calls that no thread waits for. Threads in use in this process are skipped.
    /// Other hosts may have changed the threads.
    pub(super) async fn sweep_held_calls(&self) {
        let held = self.0.ports.tools.held_calls(None).into_iter();
        self.release_if_unneeded(held.filter(|(thread, _)| !self.is_active(thread)).collect())
            .await;
    }

    /// Releases each of the given held calls that no thread waits for.
    async fn release_if_unneeded(&self, held: Vec<(ThreadId, String)>) {
        let mut by_thread: BTreeMap<ThreadId, BTreeSet<String>> = BTreeMap::new();
        for (thread, name) in held {
            by_thread.entry(thread).or_default().insert(name);
        }
        for (thread, held) in by_thread {
            match self.needed_calls(&thread).await {
                Ok(wanted) => {
                    for name in held.difference(&wanted) {
                        tracing::debug!(
                            %thread,
                            "releasing a held tool call that no thread waits for"
                        );
                        self.0.ports.tools.release_call(&thread, name);
                    }
                }
                Err(error) => {
                    tracing::debug!(
                        %thread, %error,
                        "cannot check which held tool calls the thread needs; they stay open"
                    );
                }
            }
        }
    }

    /// Returns the names of the held calls that a thread waits for.
    async fn needed_calls(&self, thread: &ThreadId) -> Result<BTreeSet<String>, StoreError> {
        let head = self.0.ports.store.thread(thread).await?;
        // An idle thread was cancelled or has finished.
        let Some(head) = head.filter(|head| head.record.status != ThreadStatus::Idle) else {
            return Ok(BTreeSet::new());
        };
        let Some(tuple) = view::current_checkpoint(&self.0.states, &head).await? else {
            return Ok(BTreeSet::new());
        };
        let past = view::logged_tasks(&tuple.events);
        let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
        let held = view::held_elicitations(&past, &lineage, &subgraphs).into_iter();
        let elicited = held.filter_map(|question| question.raised.elicited);
        Ok(elicited.filter_map(|it| it.elicitation.held).collect())
    }

    /// Returns the host on which a thread continues its held calls: this host, or another live host
    /// that is not shutting down. Returns `None` if no host holds any of the calls. If several
    /// hosts hold calls, a host with an answered interrupt takes precedence.
    pub(super) async fn held_call_host(
        &self,
        thread: &ThreadId,
        mut held: Vec<Interrupt>,
        is_answered: impl Fn(&InterruptId) -> bool,
    ) -> Result<Option<LeaseHolder>, Failure> {
        if held.is_empty() {
            return Ok(None);
        }
        held.sort_by_key(|it| it.answer.is_none() && !is_answered(&it.raised.interrupt));
        let names = self.0.ports.tools.held_calls(Some(thread)).into_iter();
        let names: BTreeSet<String> = names.map(|(_, name)| name).collect();
        let mut others = self.hosts().await?;
        others.retain(|host| host.holder != *self.holder() && !host.report.is_stopping);
        let place = |question: &Interrupt| {
            let Elicited { host, elicitation, .. } = question.raised.elicited.as_deref()?;
            // A host with this name does not necessarily hold the call: it may have restarted.
            if elicitation.held.as_ref().is_some_and(|name| names.contains(name)) {
                return Some(self.holder().clone());
            }
            let other = others.iter().find(|other| Some(&other.holder.0) == host.as_ref())?;
            Some(other.holder.clone())
        };
        Ok(held.iter().find_map(place))
    }

    /// Returns the host on which a requested run continues the held calls of its thread.
    pub(super) async fn held_call_host_for(
        &self,
        head: &ThreadHead,
        record: &RunRecord,
    ) -> Result<Option<LeaseHolder>, Failure> {
        let answers = match record.spec.as_deref().map(|spec| &spec.kind) {
            Some(RunKind::Answer { answer } | RunKind::Command { answer: Some(answer), .. }) => {
                Some(answer)
            }
            Some(RunKind::Continue | RunKind::Command { answer: None, .. }) => None,
            _ => return Ok(None),
        };
        let tuple = view::current_checkpoint(&self.0.states, head).await?;
        let Some(tuple) = tuple else { return Ok(None) };
        let past = view::logged_tasks(&tuple.events);
        let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
        let is_answered = |id: &InterruptId| match answers {
            Some(RunAnswers::ById(answers)) => answers.contains_key(id.as_str()),
            Some(RunAnswers::Matched(_)) | None => false,
        };
        let held = view::held_elicitations(&past, &lineage, &subgraphs);
        self.held_call_host(&record.thread, held, is_answered).await
    }

    /// Enqueues a run that would continue a thread as pending, for another host to start. The
    /// answers of the run name interrupt ids, because other interrupts may be pending when the run
    /// starts.
    pub(super) async fn enqueue_for_host(
        &self,
        host: LeaseHolder,
        mut slot: ThreadClaim,
        head: &ThreadHead,
        request: ResumeRun,
        reopen: Option<CheckpointId>,
        answers: Vec<(Namespace, EventKind)>,
    ) -> Result<RunRef, Failure> {
        let asked = std::mem::take(&mut slot.request);
        let by_id = answers.into_iter().filter_map(|(_, kind)| match kind {
            EventKind::Answered(it) => Some((it.interrupt.to_string(), it.answer)),
            _ => None,
        });
        let by_id: BTreeMap<String, Value> = by_id.collect();
        let kind = if by_id.is_empty() {
            RunKind::Continue
        } else {
            RunKind::Answer { answer: RunAnswers::ById(by_id) }
        };
        let spec = RunSpec {
            kind,
            stale_answers: asked.stale_answers.unwrap_or_default(),
            app: head.record.app.clone(),
            graph: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            // The time comes from the clock of the host that changed the thread last, which often
            // is the host that holds the call.
            due_ms: self.now_ms().min(head.record.updated_ms),
            ttl: None,
            client: asked.spec.map(|spec| spec.client).unwrap_or_default(),
            principal: asked.principal,
        };
        let new =
            self.pending_record(request.thread, Some(slot.run.clone()), request.options, spec);
        let created_ms = asked.created_ms.or(new.created_ms);
        let record = RunRecord { created_ms, reopen, ..new };
        slot.release().await;
        drop(slot);
        tracing::debug!(
            thread = %record.thread, host = %host.0,
            "a run is assigned to the host that holds a tool call for it"
        );
        self.enqueue(&record, Some(host), None).await?;
        Ok(RunRef { thread: record.thread, run: record.id })
    }
}

/// Returns the failure of a run that must start on another host.
pub(super) fn must_start_on(host: &LeaseHolder) -> Failure {
    let text =
        format!("the run must start on host `{}`, which holds a tool call open for it", host.0);
    Failure::new(code::BUSY, text).with_details(json!({ "host": host.0 }))
}
