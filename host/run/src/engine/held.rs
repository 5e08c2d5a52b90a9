//! Calls that servers of tools hold open on this host until a person has answered.
//!
//! Much ends such a wait: an input, an edit, a fork, a decision, a cancel, the end of the thread, on this host or on
//! another one. None of these names calls. Instead, what is held for a thread is compared with what the thread waits
//! for, whenever this host has done something with it, and now and then.
//!
//! Of hosts that share a store only one can go on with a call. A run that goes on with the thread is left to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::lineage::Lineage;

use super::asked::Asked;
use super::balance::LEFT_TO_OTHERS;
use super::{Engine, Slot};
use crate::hostcall::runs::{ResumeRun, RunRef};
use crate::ports::store::{
    Answer, Holder, RunKind, RunRecord, RunSpec, StoreError, ThreadHead, ThreadStatus,
};
use crate::view::{self, Nest};

impl Engine {
    /// Lets go of calls that are held for a thread now and that it does not wait for. Nothing may be at work on the
    /// thread in this process: a call is held before its question is in the log.
    pub(super) fn let_go(&self, thread: &ThreadId) {
        let held = self.0.ports.tools.held(Some(thread));
        if !held.is_empty() {
            let engine = self.clone();
            self.0.runtime.spawn(async move { engine.compare(held).await });
        }
    }

    /// The same for all threads on which nothing is at work here. Other hosts may have done something with them.
    pub(super) async fn sweep_held(&self) {
        let held = self.0.ports.tools.held(None).into_iter();
        self.compare(held.filter(|(thread, _)| !self.is_active(thread)).collect()).await;
    }

    /// Lets go of those of some calls that no thread waits for.
    async fn compare(&self, held: Vec<(ThreadId, String)>) {
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
        let tuple = view::current(store, &head).await?;
        let held = tuple.map(view::held).unwrap_or_default();
        Ok(held.into_iter().filter_map(|it| it.asked.held).collect())
    }

    /// The live host that holds calls open with which a thread goes on, unless this host holds one of them.
    pub(super) async fn holds_elsewhere(
        &self,
        lineage: &Lineage,
        nest: &Nest,
    ) -> Result<Option<Holder>, Failure> {
        let nested = nest.live_questions().map(|(_, question)| question);
        let questions = lineage.live_questions().cloned().chain(nested);
        let hosts: BTreeSet<String> =
            questions.filter_map(|it| it.asked.elicited.and_then(|it| it.host)).collect();
        if hosts.is_empty() || hosts.contains(&self.holder().0) {
            return Ok(None);
        }
        let live = self.hosts().await?.into_iter().filter(|host| !host.report.is_stopping);
        Ok(live.map(|host| host.holder).find(|holder| hosts.contains(&holder.0)))
    }

    /// Leaves a pending run to the host that holds a call for it. It begins on any host once that one had
    /// the time to begin it.
    ///
    /// # Errors
    ///
    /// `busy` until then.
    pub(super) fn check_left(&self, host: &Holder, asked: &Asked) -> Result<(), Failure> {
        let left_ms = self.now_ms().saturating_sub(asked.due_ms.unwrap_or(0));
        if left_ms >= LEFT_TO_OTHERS.as_millis() as i64 {
            return Ok(());
        }
        let text = format!("the run is left to host `{}`, which holds a call open for it", host.0);
        Err(Failure::new(code::BUSY, text).with_details(json!({ "host": host.0 })))
    }

    /// Leaves a run that would go on with a thread to another host: it is pending. If that host does not begin
    /// it, any host does. Its answers name their questions: others may be open when it begins.
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
            due_ms: self.now_ms(),
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
