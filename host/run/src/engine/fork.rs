//! Forks: runs that continue from an earlier checkpoint, or from a host call with an overridden
//! result.
//!
//! A fork is a new checkpoint, so its tasks have new ids and none of the events since the old
//! checkpoint. It is written in one batch with the start of its run and the events that it carries
//! over: after a crash it is complete and continues, or it does not exist. Only copies of
//! checkpoints of subgraphs are written before, and have no effect without it.

mod command;
mod copy;
mod order;
mod replaced;
mod reuse;
mod site;
mod survey;
mod unclear;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, CheckpointSource};
use wattle_graph::event::{Called, Checkpointed, Event, EventKind, Forked, ForkedCall, RunReason};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, ThreadId};
use wattle_graph::step::{self, CheckpointStamp, accept_input, input_reductions};

use self::replaced::Replaced;
use self::reuse::{TakenOver, taken_over};
use self::site::Known;
use self::survey::Survey;
use super::asked::Asked;
use super::owner::check_owner;
use super::{Engine, Slot, no_thread};
use crate::app::{App, GraphPack};
use crate::driver::reduce;
use crate::hostcall::replace::check_replacement;
use crate::hostcall::runs::RunRef;
use crate::json::check_depth;
use crate::log::Commit;
use crate::ports::store::{
    CheckpointQuery, CheckpointTuple, RunRecord, ThreadHead, ThreadRecord, ThreadStatus,
};
use crate::task::options;
use crate::travel::{CallRef, ForkFrom, ForkInto, ForkThread};
use crate::view::store_failure;

/// Page size of the search for a call, from the newest checkpoint backwards. Most forks start at
/// recent calls.
const PAGE_CHECKPOINTS: usize = 16;

/// A fork that is not yet written.
struct Fork {
    /// The forked checkpoint; `None` for the first checkpoint of a thread.
    from: Option<CheckpointId>,
    checkpoint: Checkpoint,
    call: Option<ForkedCall>,
    /// The events and checkpoints that are carried over.
    taken_over: TakenOver,
}

/// The thread and the forked checkpoint, with the code that made it.
struct Ground {
    head: ThreadHead,
    app: Arc<App>,
    pack: Arc<GraphPack>,
    tuple: CheckpointTuple,
}

impl Ground {
    /// Returns the error handlers of all graphs of the app.
    fn handlers(&self) -> BTreeSet<NodeName> {
        let nodes = self.app.graphs.values().flat_map(|pack| pack.graph.nodes().values());
        nodes.filter_map(|node| node.on_error.clone()).collect()
    }
}

impl Engine {
    /// Starts a run that continues from an earlier state of a thread, in the thread or in a copy of
    /// it. Returns once the start is durable.
    ///
    /// A thread that was migrated since returns to the version that made the checkpoint.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread, checkpoint or call does not exist or was pruned; `busy` while a
    /// run is active; `conflict` if no node is triggered at the checkpoint; `invalid` and
    /// `unsupported` if the given result cannot override that of the call.
    pub async fn fork(&self, request: ForkThread) -> Result<RunRef, Failure> {
        match &request.from {
            ForkFrom::Checkpoint { input, .. } => {
                input.as_ref().map_or(Ok(()), |input| check_depth("the input", input))?;
            }
            ForkFrom::Input { input, .. } => check_depth("the input", input)?,
            ForkFrom::Call { result, .. } => {
                result.as_ref().map_or(Ok(()), |answer| check_depth("the answer", answer))?;
            }
        }
        let head = self.live_thread(&request.thread).await?;
        let head = head.ok_or_else(|| no_thread(&request.thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let asked = Asked::now(request.run.clone(), request.principal.clone());
        match &request.into {
            ForkInto::Same => Box::pin(self.fork_thread(&request.thread, &request, asked)).await,
            ForkInto::New { thread } => {
                let copy = self.copy_thread(&request.thread, thread.clone()).await?;
                let forked = Box::pin(self.fork_thread(&copy, &request, asked)).await;
                if forked.is_err() {
                    self.0.ports.store.delete_thread(&copy).await.map_err(store_failure)?;
                }
                forked
            }
        }
    }

    pub(super) async fn fork_thread(
        &self,
        thread: &ThreadId,
        request: &ForkThread,
        asked: Asked,
    ) -> Result<RunRef, Failure> {
        let mut slot = self.claim_new(thread, asked).await?;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        self.admit(&head).await?;
        let fork = match &request.from {
            ForkFrom::Checkpoint { checkpoint, input } => {
                let tuple = self.root_tuple(thread, *checkpoint).await?;
                let ground = self.ground(head.clone(), tuple)?;
                self.at_checkpoint(&ground, &slot, input.as_ref()).await?
            }
            ForkFrom::Input { checkpoint, input } => {
                let made = self.root_tuple(thread, *checkpoint).await?;
                self.at_input(&head, &slot, made, input).await?
            }
            ForkFrom::Call { call, result } => {
                self.at_call(&head, &slot, call, result.clone()).await?
            }
        };
        let options = request.options.clone();
        let run = RunRecord { options, ..self.new_run(&mut slot, &head, None) };
        let head = self.write_fork(&mut slot, head, &run, fork).await?;
        self.go_on(slot, head, run, RunReason::Fork, Vec::new()).await
    }

    /// Returns a checkpoint with the code that made it.
    fn ground(&self, head: ThreadHead, tuple: CheckpointTuple) -> Result<Ground, Failure> {
        let version = tuple.checkpoint.meta.version.unwrap_or(head.record.version);
        let record = ThreadRecord { version, ..head.record.clone() };
        let (app, pack) = self.pinned(&record)?;
        Ok(Ground { head, app, pack, tuple })
    }

    async fn at_checkpoint(
        &self,
        ground: &Ground,
        slot: &Slot,
        input: Option<&Value>,
    ) -> Result<Fork, Failure> {
        let base = &ground.tuple.checkpoint;
        let at = self.position(&ground.head, &ground.pack, slot).await?;
        let checkpoint = match input {
            Some(input) => accepted(ground, Some(base), input, at).await?,
            None if base.meta.next.is_empty() => {
                return Err(Failure::new(
                    code::CONFLICT,
                    format!(
                        "nothing is left to run at checkpoint {} of thread `{}`; give an input, or \
                         fork from an earlier one",
                        base.meta.id, ground.head.record.id
                    ),
                ));
            }
            None => step::fork(base, at),
        };
        let from = Some(base.meta.id);
        Ok(Fork { from, checkpoint, call: None, taken_over: TakenOver::default() })
    }

    /// Forks before an earlier input: another input is applied to the state of that time, or to no
    /// state if the input was the first.
    async fn at_input(
        &self,
        head: &ThreadHead,
        slot: &Slot,
        made: CheckpointTuple,
        input: &Value,
    ) -> Result<Fork, Failure> {
        let meta = &made.checkpoint.meta;
        if meta.source != CheckpointSource::Input {
            let text = format!("no input made checkpoint {} of thread `{}`", meta.id, slot.thread);
            return Err(Failure::new(code::INVALID, text));
        }
        let before = match meta.parent {
            Some(parent) => Some(self.root_tuple(&slot.thread, parent).await?),
            None => None,
        };
        let base = before.as_ref().map(|tuple| &tuple.checkpoint);
        let ground = self.ground(head.clone(), made)?;
        let at = self.position(&ground.head, &ground.pack, slot).await?;
        let checkpoint = accepted(&ground, base, input, at).await?;
        let from = base.map(|base| base.meta.id);
        Ok(Fork { from, checkpoint, call: None, taken_over: TakenOver::default() })
    }

    async fn at_call(
        &self,
        head: &ThreadHead,
        slot: &Slot,
        call: &CallRef,
        result: Result<Value, Failure>,
    ) -> Result<Fork, Failure> {
        let (tuple, replaced) = self.find_call(head, call, result).await?;
        check_replacement(&replaced.called, &replaced.result)?;
        let ground = self.ground(head.clone(), tuple.clone())?;
        let whole = Known::new(tuple);
        let survey = Survey {
            store: self.0.ports.store.as_ref(),
            thread: &head.record.id,
            origin: head.record.origin(),
            handlers: ground.handlers(),
            then: &whole.before_undone(replaced.seq),
            whole: &whole,
            replaced: Some(&replaced),
            afresh: BTreeSet::new(),
        };
        let found = survey.make().await?;
        let at = self.position(&ground.head, &ground.pack, slot).await?;
        let id = CheckpointId(at.id.0 + found.copies());
        let base = &ground.tuple.checkpoint;
        let checkpoint = step::fork(base, CheckpointStamp { id, ..at });
        let taken_over = taken_over(&found, head.record.origin(), &checkpoint, Some(&replaced));
        let Called { task, scope, call, .. } = &replaced.called;
        let (task, scope, call) = (task.clone(), scope.clone(), *call);
        let call = Some(ForkedCall { task, scope, call, seq: replaced.seq });
        Ok(Fork { from: Some(base.meta.id), checkpoint, call, taken_over })
    }

    async fn position(
        &self,
        head: &ThreadHead,
        pack: &GraphPack,
        slot: &Slot,
    ) -> Result<CheckpointStamp, Failure> {
        Ok(CheckpointStamp {
            id: self.free_number(head).await?,
            run: slot.run.clone(),
            at_ms: self.now_ms(),
            version: pack.version,
            parents: BTreeMap::new(),
            tasks: None,
        })
    }

    /// Returns the newest host call that `call` refers to, with the checkpoint at which the task of
    /// the call started. `result` overrides the result of the call.
    async fn find_call(
        &self,
        head: &ThreadHead,
        call: &CallRef,
        result: Result<Value, Failure>,
    ) -> Result<(CheckpointTuple, Replaced), Failure> {
        let mut query = CheckpointQuery {
            namespace: Some(Namespace::root()),
            limit: Some(PAGE_CHECKPOINTS),
            ..CheckpointQuery::default()
        };
        loop {
            let store = &self.0.ports.store;
            let page = store.checkpoints(&head.record.id, &query).await.map_err(store_failure)?;
            query.before = page.last().map(|tuple| tuple.checkpoint.meta.id);
            let is_last = page.len() < PAGE_CHECKPOINTS;
            for tuple in page {
                if let Some((event, called)) = call_among(&tuple, call)? {
                    let (seq, namespace, called) =
                        (event.seq, event.namespace.clone(), called.clone());
                    let at_ms = self.now_ms();
                    return Ok((tuple, Replaced { seq, namespace, called, result, at_ms }));
                }
            }
            if is_last {
                return Err(no_call(head, call));
            }
        }
    }

    /// Writes the fork with the start of its run. Returns the head of the thread after that.
    async fn write_fork(
        &self,
        slot: &mut Slot,
        head: ThreadHead,
        run: &RunRecord,
        fork: Fork,
    ) -> Result<ThreadHead, Failure> {
        let Fork { from, checkpoint, call, taken_over, .. } = fork;
        let record = ThreadRecord {
            version: checkpoint.meta.version.unwrap_or(head.record.version),
            status: ThreadStatus::Running,
            run: Some(run.id.clone()),
            updated_ms: run.started_ms,
            expires_ms: None,
            ..head.record.clone()
        };
        let (_, pack) = self.pinned(&record)?;
        options::check(&run.options, &pack.graph)?;
        self.write_copies(slot, &head, taken_over.checkpoints).await?;
        // The events of the fork belong to its own checkpoint, not to the former current one.
        let head = ThreadHead { current: Some(checkpoint.meta.id), ..head };
        let log = self.log(&head, slot);
        log.push(self.run_started(&pack, &record, RunReason::Fork, slot));
        if let Some(from) = from {
            let principal = slot.asked.principal.clone();
            log.push(EventKind::Forked(Forked { from, call, principal }));
        }
        log.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        for (namespace, kind) in taken_over.events {
            log.within(namespace).push(kind);
        }
        log.commit(Commit {
            record: Some(record),
            run: Some(run.clone()),
            checkpoint: Some(checkpoint),
            turn: slot.take_turn(),
            ..Commit::default()
        })
        .await;
        log.barrier().await.map_err(|error| self.not_written(error))?;
        let thread = &head.record.id;
        let head = self.0.ports.store.thread(thread).await.map_err(store_failure)?;
        head.ok_or_else(|| no_thread(thread))
    }

    /// Writes the copied checkpoints of subgraphs, which the log does not mention yet.
    async fn write_copies(
        &self,
        slot: &Slot,
        head: &ThreadHead,
        checkpoints: Vec<Checkpoint>,
    ) -> Result<(), Failure> {
        let log = self.log(head, slot);
        for checkpoint in checkpoints {
            let checkpoint = Some(checkpoint);
            log.commit(Commit { checkpoint, ..Commit::default() }).await;
        }
        log.barrier().await.map_err(store_failure)
    }
}

/// Returns the checkpoint after an input on a state, or on no state.
async fn accepted(
    ground: &Ground,
    base: Option<&Checkpoint>,
    input: &Value,
    at: CheckpointStamp,
) -> Result<Checkpoint, Failure> {
    let graph = &ground.pack.graph;
    let reduced = reduce(&ground.app, input_reductions(graph, base, input)).await?;
    accept_input(graph, base, &Namespace::root(), input, &reduced, at)
        .map_err(|error| error.to_failure())
}

/// Returns the journal entry that `call` refers to, if the entry is among the events since a
/// checkpoint.
fn call_among<'t>(
    tuple: &'t CheckpointTuple,
    call: &CallRef,
) -> Result<Option<(&'t Event, &'t Called)>, Failure> {
    let found = tuple.events.iter().rev().find(|event| match (call, &event.kind) {
        (CallRef::Entry(seq), _) => event.seq == *seq,
        (CallRef::Place { task, scope, call }, EventKind::Called(called)) => {
            called.task == *task && called.scope == *scope && called.call == *call
        }
        _ => false,
    });
    let Some(event) = found else { return Ok(None) };
    match &event.kind {
        EventKind::Called(called) => Ok(Some((event, called))),
        _ => Err(Failure::new(
            code::INVALID,
            format!("event {} is no result of a host call; name one of type `called`", event.seq),
        )),
    }
}

fn no_call(head: &ThreadHead, call: &CallRef) -> Failure {
    let thread = &head.record.id;
    let text = match call {
        CallRef::Entry(seq) if *seq <= head.pruned_seq => {
            format!("the events of thread `{thread}` up to {} were pruned", head.pruned_seq)
        }
        CallRef::Entry(seq) => format!("thread `{thread}` has no event {seq} after a checkpoint"),
        CallRef::Place { task, scope, call } => format!(
            "thread `{thread}` has no call {call} of task `{task}` in scope {scope:?}; its trace \
             lists the calls"
        ),
    };
    Failure::new(code::NOT_FOUND, text)
}
