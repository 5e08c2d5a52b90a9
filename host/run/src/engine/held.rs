//! Calls that servers of tools hold open on this host until a person has answered.
//!
//! Much ends such a wait: an input, an edit, a fork, a decision, a cancel, the end of the thread, on this host or on
//! another one. None of these names calls. Instead, what is held for a thread is compared with what the thread waits
//! for, whenever this host has done something with it, and now and then.
//!
//! # Where a call goes on
//!
//! Of hosts that share a store only the one that holds a call can go on with it, and an answer may come to any of them.
//! A host that does not hold the call leaves the run to the one that does. The run is pending then, and names the
//! questions that it answers.
//!
//! It is left to that host for as long as the host lives and does not stop, and no time is compared. A host that is
//! full begins the run when it has room. A host that was not notified finds the run in its next list of pending runs. A
//! host whose clock is behind sees that the run is due, since it is due from the last change of its thread on.
//!
//! The other hosts look again and again. The store says which hosts live, by its own clock, so a host that died is
//! waited for no longer than its lease. Then any host begins the run, and the call is in doubt. So it is if its own
//! host begins the run and finds that the call is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wattle_graph::elicitation::Elicited;
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, ThreadId};
use wattle_graph::interrupt::Question;

use super::{Engine, Slot};
use crate::hostcall::runs::{ResumeRun, RunRef};
use crate::ports::store::{
    Answer, Holder, RunKind, RunRecord, RunSpec, StoreError, ThreadHead, ThreadStatus,
};
use crate::view::{self, store_failure};

impl Engine {
    /// Lets go of calls that are held for a thread now and that it does not wait for. Nothing may be at work on the
    /// thread in this process: a call is held before its question is in the log.
    pub(super) fn let_go(&self, thread: &ThreadId) {
        let held = self.0.ports.tools.held(Some(thread));
        if !held.is_empty() {
            let engine = self.clone();
            self.0.runtime.spawn(async move { engine.release_unwanted(held).await });
        }
    }

    /// The same for all threads on which nothing is at work here. Other hosts may have done something with them.
    pub(super) async fn sweep_held(&self) {
        let held = self.0.ports.tools.held(None).into_iter();
        self.release_unwanted(held.filter(|(thread, _)| !self.is_active(thread)).collect()).await;
    }

    /// Lets go of those of some calls that no thread waits for.
    async fn release_unwanted(&self, held: Vec<(ThreadId, String)>) {
        let mut by_thread: BTreeMap<ThreadId, BTreeSet<String>> = BTreeMap::new();
        for (thread, name) in held {
            by_thread.entry(thread).or_default().insert(name);
        }
        for (thread, held) in by_thread {
            match self.waited_for(&thread).await {
                Ok(wanted) => {
                    for name in held.difference(&wanted) {
                        tracing::debug!(%thread, "nobody waits for a call that is held open");
                        self.0.ports.tools.release(&thread, name);
                    }
                }
                Err(error) => {
                    tracing::debug!(%thread, %error, "calls that are held open stay so for now");
                }
            }
        }
    }

    /// The names of the calls with which a thread goes on.
    async fn waited_for(&self, thread: &ThreadId) -> Result<BTreeSet<String>, StoreError> {
        let store = self.0.ports.store.as_ref();
        let head = store.thread(thread).await?;
        // One that is idle was cancelled, or is at its end.
        let Some(head) = head.filter(|head| head.record.status != ThreadStatus::Idle) else {
            return Ok(BTreeSet::new());
        };
        let Some(tuple) = view::current(store, &head).await? else { return Ok(BTreeSet::new()) };
        let past = view::past_tasks(&tuple.events);
        let (lineage, nest) = view::open(tuple);
        let held = view::held(&past, &lineage, &nest).into_iter();
        let elicited = held.filter_map(|question| question.asked.elicited);
        Ok(elicited.filter_map(|it| it.asked.held).collect())
    }

    /// The host on which a thread goes on with what was asked in calls that are held open: this one, or another one
    /// that lives and does not stop. `None` if nobody holds any of the calls. Of several hosts, the one counts first
    /// whose questions are answered.
    pub(super) async fn goes_on_at(
        &self,
        thread: &ThreadId,
        mut held: Vec<Question>,
        is_answered: impl Fn(&InterruptId) -> bool,
    ) -> Result<Option<Holder>, Failure> {
        if held.is_empty() {
            return Ok(None);
        }
        held.sort_by_key(|it| it.answer.is_none() && !is_answered(&it.asked.interrupt));
        let names = self.0.ports.tools.held(Some(thread)).into_iter();
        let names: BTreeSet<String> = names.map(|(_, name)| name).collect();
        let mut others = self.hosts().await?;
        others.retain(|host| host.holder != *self.holder() && !host.report.is_stopping);
        let place = |question: &Question| {
            let Elicited { host, asked, .. } = question.asked.elicited.as_deref()?;
            // The name of a host says nothing of what it holds: it may have started again.
            if asked.held.as_ref().is_some_and(|name| names.contains(name)) {
                return Some(self.holder().clone());
            }
            let other = others.iter().find(|other| Some(&other.holder.0) == host.as_ref())?;
            Some(other.holder.clone())
        };
        Ok(held.iter().find_map(place))
    }

    /// The same for a run that is asked for.
    pub(super) async fn would_go_on_at(
        &self,
        head: &ThreadHead,
        record: &RunRecord,
    ) -> Result<Option<Holder>, Failure> {
        let answers = match record.spec.as_deref().map(|spec| &spec.kind) {
            Some(RunKind::Answer { answer } | RunKind::Command { answer: Some(answer), .. }) => {
                Some(answer)
            }
            Some(RunKind::Continue | RunKind::Command { answer: None, .. }) => None,
            _ => return Ok(None),
        };
        let store = self.0.ports.store.as_ref();
        let tuple = view::current(store, head).await.map_err(store_failure)?;
        let Some(tuple) = tuple else { return Ok(None) };
        let past = view::past_tasks(&tuple.events);
        let (lineage, nest) = view::open(tuple);
        let is_answered = |id: &InterruptId| match answers {
            Some(Answer::ById(answers)) => answers.contains_key(id.as_str()),
            Some(Answer::Matched(_)) | None => false,
        };
        let held = view::held(&past, &lineage, &nest);
        self.goes_on_at(&record.thread, held, is_answered).await
    }

    /// Leaves a run that would go on with a thread to another host: it is pending. Its answers name their questions:
    /// others may be open when it begins.
    pub(super) async fn leave_to(
        &self,
        host: Holder,
        mut slot: Slot,
        head: &ThreadHead,
        request: ResumeRun,
        reopen: Option<CheckpointId>,
        answers: Vec<(Namespace, EventKind)>,
    ) -> Result<RunRef, Failure> {
        let asked = std::mem::take(&mut slot.asked);
        let by_id = answers.into_iter().filter_map(|(_, kind)| match kind {
            EventKind::Answered(it) => Some((it.interrupt.to_string(), it.answer)),
            _ => None,
        });
        let by_id: BTreeMap<String, Value> = by_id.collect();
        let kind = if by_id.is_empty() {
            RunKind::Continue
        } else {
            RunKind::Answer { answer: Answer::ById(by_id) }
        };
        let spec = RunSpec {
            kind,
            app: head.record.app.clone(),
            graph: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            // By the clock of the host that changed the thread last, often the one with the call.
            due_ms: self.now_ms().min(head.record.updated_ms),
            ttl: None,
            client: asked.spec.map(|spec| spec.client).unwrap_or_default(),
            principal: asked.principal,
        };
        let new = self.asked_for(request.thread, Some(slot.run.clone()), request.options, spec);
        let created_ms = asked.created_ms.or(new.created_ms);
        let record = RunRecord { created_ms, reopen, ..new };
        slot.release().await;
        drop(slot);
        tracing::debug!(thread = %record.thread, host = %host.0, "a run is left to another host");
        self.enqueue(&record, Some(host)).await?;
        Ok(RunRef { thread: record.thread, run: record.id })
    }
}

/// Why a run does not begin here that is left to a host.
pub(super) fn left_to(host: &Holder) -> Failure {
    let text = format!("the run is left to host `{}`, which holds a call open for it", host.0);
    Failure::new(code::BUSY, text).with_details(json!({ "host": host.0 }))
}
