//! Forks: runs that continue from an earlier checkpoint, or from a host call with an overridden
//! result.
//!
//! A fork is a new checkpoint, so its tasks have new ids and none of the events since the old
//! checkpoint. The engine writes the fork in one batch with the start of its run and the
//! carried-over events: after a crash, the fork is complete and its run continues, or the fork does
//! not exist. Only copied checkpoints of subgraphs are written before this batch. Without the fork,
//! these copies have no effect.

mod carry_over;
mod command;
mod forked_graph;
mod in_doubt;
mod journal_prefix;
mod overridden_call;
mod scan;
mod task_copier;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, CheckpointSource};
use wattle_graph::event::{Called, Checkpointed, Event, EventKind, Forked, ForkedCall, RunReason};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, ThreadId};
use wattle_graph::step::{self, CheckpointStamp, accept_input, input_reductions};

use self::carry_over::{CarriedOver, carry_over};
pub(super) use self::command::CommandRun;
use self::forked_graph::SuperstepEvents;
use self::overridden_call::OverriddenCall;
use self::scan::ForkScan;
use super::owner::check_owner;
use super::request::RunRequest;
use super::{Engine, ThreadClaim, thread_not_found};
use crate::app::{App, GraphVersion};
use crate::blocking::{block_in_place_in_turn, is_long_input};
use crate::driver::reduce;
use crate::hostcall::result_override::check_override;
use crate::hostcall::runs::RunRef;
use crate::json::check_depth;
use crate::log::Commit;
use crate::ports::store::{
    CheckpointQuery, CheckpointTuple, RunOptions, RunRecord, ThreadHead, ThreadRecord, ThreadStatus,
};
use crate::task::options;
use crate::time_travel::{CallRef, ForkFrom, ForkInto, ForkThread};

/// Page size of the search for a call, which begins at the newest checkpoint and goes backwards.
/// Most forks start at recent calls.
const PAGE_CHECKPOINTS: usize = 16;

/// A fork that is not yet written.
struct PreparedFork {
    /// The forked checkpoint; `None` for the first checkpoint of a thread.
    from: Option<CheckpointId>,
    checkpoint: Checkpoint,
    call: Option<ForkedCall>,
    /// The events and checkpoints that are carried over.
    carried_over: CarriedOver,
}

/// The thread and the forked checkpoint, with the code that made the checkpoint.
struct ForkBase {
    head: ThreadHead,
    app: Arc<App>,
    graph_version: Arc<GraphVersion>,
    tuple: CheckpointTuple,
}

impl ForkBase {
    /// Returns the error handlers of all graphs of the app.
    fn error_handlers(&self) -> BTreeSet<NodeName> {
        let nodes =
            self.app.graphs.values().flat_map(|graph_version| graph_version.graph.nodes().values());
        nodes.filter_map(|node| node.on_error.clone()).collect()
    }
}

impl Engine {
    /// Starts a run that continues from an earlier state of a thread, in the thread or in a copy of
    /// it. Returns once the start is durable.
    ///
    /// If the thread was migrated after the checkpoint, it returns to the version that made the
    /// checkpoint.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread, checkpoint or call does not exist or was pruned; `busy` while a
    /// run is active; `conflict` if no node is triggered at the checkpoint; `invalid` and
    /// `unsupported` if the given result cannot override the result of the call.
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
        let head = self.visible_thread(&request.thread).await?;
        let head = head.ok_or_else(|| thread_not_found(&request.thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let ForkThread { thread, run, from, into, options, principal, .. } = request;
        let run_request = RunRequest::immediate(run, principal);
        match into {
            ForkInto::InPlace => {
                Box::pin(self.start_fork(&thread, &from, options, run_request)).await
            }
            ForkInto::Copy { thread: copy } => {
                let copy = self.copy_thread(&thread, copy).await?;
                let forked = Box::pin(self.start_fork(&copy, &from, options, run_request)).await;
                if forked.is_err() {
                    self.delete_stored(&copy).await?;
                }
                forked
            }
        }
    }

    /// Starts a run that continues in a thread from an earlier state of the thread. Returns once
    /// the start is durable.
    ///
    /// # Errors
    ///
    /// See [`Self::fork`].
    pub(super) async fn start_fork(
        &self,
        thread: &ThreadId,
        from: &ForkFrom,
        options: RunOptions,
        run_request: RunRequest,
    ) -> Result<RunRef, Failure> {
        let mut slot = self.claim_for_run(thread, run_request).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        self.admit(&head).await?;
        let caller = slot.request.caller(&head.record.app);
        self.take_memory(&mut slot, caller).await?;
        let fork = match from {
            ForkFrom::Checkpoint { checkpoint, input } => {
                let tuple = self.root_checkpoint(thread, *checkpoint).await?;
                let fork_base = self.fork_base(head.clone(), tuple).await?;
                self.fork_at_checkpoint(&fork_base, &slot, input.as_ref()).await?
            }
            ForkFrom::Input { checkpoint, input } => {
                let made = self.root_checkpoint(thread, *checkpoint).await?;
                self.fork_at_input(&head, &slot, made, input).await?
            }
            ForkFrom::Call { call, result } => {
                self.fork_at_call(&head, &slot, call, result.clone()).await?
            }
        };
        let run = RunRecord { options, ..self.new_run(&mut slot, &head, None) };
        let head = self.write_fork(&mut slot, head, &run, fork).await?;
        self.continue_fork(slot, head, run).await
    }

    /// Returns a checkpoint with the code that made it.
    async fn fork_base(
        &self,
        head: ThreadHead,
        tuple: CheckpointTuple,
    ) -> Result<ForkBase, Failure> {
        let version = tuple.checkpoint.meta.version.unwrap_or(head.record.version);
        let record = ThreadRecord { version, ..head.record.clone() };
        let (app, graph_version) = self.pinned_code(&record).await?;
        Ok(ForkBase { head, app, graph_version, tuple })
    }

    async fn fork_at_checkpoint(
        &self,
        fork_base: &ForkBase,
        slot: &ThreadClaim,
        input: Option<&Value>,
    ) -> Result<PreparedFork, Failure> {
        let base = &fork_base.tuple.checkpoint;
        let at = self.root_stamp(&fork_base.head, &fork_base.graph_version, slot).await?;
        let checkpoint = match input {
            Some(input) => input_checkpoint(fork_base, slot, Some(base), input, at).await?,
            None if base.meta.next.is_empty() => {
                return Err(Failure::new(
                    code::CONFLICT,
                    format!(
                        "nothing is left to run at checkpoint {} of thread `{}`; give an input, or \
                         fork from an earlier one",
                        base.meta.id, fork_base.head.record.id
                    ),
                ));
            }
            None => step::fork(base, at),
        };
        let from = Some(base.meta.id);
        Ok(PreparedFork { from, checkpoint, call: None, carried_over: CarriedOver::default() })
    }

    /// Forks before an earlier input. Applies another input to the state before the earlier input,
    /// or to the empty state if the earlier input was the first.
    async fn fork_at_input(
        &self,
        head: &ThreadHead,
        slot: &ThreadClaim,
        made: CheckpointTuple,
        input: &Value,
    ) -> Result<PreparedFork, Failure> {
        let meta = &made.checkpoint.meta;
        if meta.source != CheckpointSource::Input {
            let text = format!("no input made checkpoint {} of thread `{}`", meta.id, slot.thread);
            return Err(Failure::new(code::INVALID, text));
        }
        let before = match meta.parent {
            Some(parent) => Some(self.root_checkpoint(&slot.thread, parent).await?),
            None => None,
        };
        let base = before.as_ref().map(|tuple| &tuple.checkpoint);
        let fork_base = self.fork_base(head.clone(), made).await?;
        let at = self.root_stamp(&fork_base.head, &fork_base.graph_version, slot).await?;
        let checkpoint = input_checkpoint(&fork_base, slot, base, input, at).await?;
        let from = base.map(|base| base.meta.id);
        Ok(PreparedFork { from, checkpoint, call: None, carried_over: CarriedOver::default() })
    }

    async fn fork_at_call(
        &self,
        head: &ThreadHead,
        slot: &ThreadClaim,
        call: &CallRef,
        result: Result<Value, Failure>,
    ) -> Result<PreparedFork, Failure> {
        let (tuple, replaced) = self.find_call(head, call, result).await?;
        check_override(&replaced.called, &replaced.result)?;
        let fork_base = self.fork_base(head.clone(), tuple.clone()).await?;
        let all_events = SuperstepEvents::new(tuple);
        let survey = ForkScan {
            store: self.0.ports.store.as_ref(),
            thread: &head.record.id,
            origin: head.record.origin(),
            error_handlers: fork_base.error_handlers(),
            events_before_reopen: &all_events.before_reopen(replaced.seq),
            all_events: &all_events,
            overridden: Some(&replaced),
            restarted: BTreeSet::new(),
        };
        let found = survey.run().await?;
        let at = self.root_stamp(&fork_base.head, &fork_base.graph_version, slot).await?;
        let id = CheckpointId(at.id.0 + found.copied_checkpoint_count());
        let base = &fork_base.tuple.checkpoint;
        let checkpoint = step::fork(base, CheckpointStamp { id, ..at });
        let carried_over = carry_over(&found, head.record.origin(), &checkpoint, Some(&replaced));
        let Called { task, scope, call, .. } = &replaced.called;
        let (task, scope, call) = (task.clone(), scope.clone(), *call);
        let call = Some(ForkedCall { task, scope, call, seq: replaced.seq });
        Ok(PreparedFork { from: Some(base.meta.id), checkpoint, call, carried_over })
    }

    async fn root_stamp(
        &self,
        head: &ThreadHead,
        graph_version: &GraphVersion,
        slot: &ThreadClaim,
    ) -> Result<CheckpointStamp, Failure> {
        Ok(CheckpointStamp {
            id: self.next_checkpoint_id(head).await?,
            run: slot.run.clone(),
            at_ms: self.now_ms(),
            version: graph_version.version,
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
    ) -> Result<(CheckpointTuple, OverriddenCall), Failure> {
        let mut query = CheckpointQuery {
            namespace: Some(Namespace::root()),
            limit: Some(PAGE_CHECKPOINTS),
            ..CheckpointQuery::default()
        };
        loop {
            let store = &self.0.ports.store;
            let page = store.checkpoints(&head.record.id, &query).await?;
            query.before = page.items.last().map(|tuple| tuple.checkpoint.meta.id);
            for tuple in page.items {
                if let Some((event, called)) = find_call_event(&tuple, call)? {
                    let (seq, namespace, called) =
                        (event.seq, event.namespace.clone(), called.clone());
                    let at_ms = self.now_ms();
                    return Ok((tuple, OverriddenCall { seq, namespace, called, result, at_ms }));
                }
            }
            if page.is_last {
                return Err(call_not_found(head, call));
            }
        }
    }

    /// Writes the fork with the start of its run. Returns the head of the thread after that.
    async fn write_fork(
        &self,
        slot: &mut ThreadClaim,
        head: ThreadHead,
        run: &RunRecord,
        fork: PreparedFork,
    ) -> Result<ThreadHead, Failure> {
        let PreparedFork { from, checkpoint, call, carried_over, .. } = fork;
        let record = ThreadRecord {
            version: checkpoint.meta.version.unwrap_or(head.record.version),
            status: ThreadStatus::Running,
            stopped: false,
            failure: None,
            run: Some(run.id.clone()),
            updated_ms: run.started_ms,
            expires_ms: None,
            ..head.record.clone()
        };
        let (_, graph_version) = self.pinned_code(&record).await?;
        options::check(&run.options, &graph_version.graph)?;
        slot.count_state(&checkpoint, carried_over.events.iter().map(|(_, kind)| kind))?;
        self.write_copied_checkpoints(slot, &head, carried_over.checkpoints).await?;
        // The events of the fork belong to its own checkpoint, not to the former current one.
        let head = ThreadHead { current: Some(checkpoint.meta.id), ..head };
        let log = self.thread_log(&head, slot, slot.request.principal.as_ref());
        log.push(self.run_started(&graph_version, &record, RunReason::Fork, slot));
        if let Some(from) = from {
            let principal = slot.request.principal.clone();
            log.push(EventKind::Forked(Forked { from, call, principal }));
        }
        log.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        for (namespace, kind) in carried_over.events {
            log.for_namespace(namespace).push(kind);
        }
        log.commit(Commit {
            record: Some(record),
            run: Some(run.clone()),
            checkpoint: Some(checkpoint),
            queue_condition: slot.request.take_queue_condition(),
            ..Commit::default()
        })
        .await;
        log.wait_durable().await.map_err(|error| self.write_failure(error))?;
        let thread = &head.record.id;
        let head = self.0.ports.store.thread(thread).await?;
        head.ok_or_else(|| thread_not_found(thread))
    }

    /// Writes the copied checkpoints of subgraphs, which the log does not mention yet.
    async fn write_copied_checkpoints(
        &self,
        slot: &ThreadClaim,
        head: &ThreadHead,
        checkpoints: Vec<Checkpoint>,
    ) -> Result<(), Failure> {
        let log = self.thread_log(head, slot, slot.request.principal.as_ref());
        let mut copies = Vec::with_capacity(checkpoints.len());
        for checkpoint in checkpoints {
            let commit = Commit { checkpoint: Some(checkpoint), ..Commit::default() };
            copies.push(log.commit_with_ticket(commit).await);
        }
        // No event links these batches, so the store may refuse one and accept the next.
        try_join_all(copies).await?;
        Ok(())
    }
}

/// Returns the checkpoint after an input to the state of `base`, or to the empty state without
/// `base`.
async fn input_checkpoint(
    fork_base: &ForkBase,
    slot: &ThreadClaim,
    base: Option<&Checkpoint>,
    input: &Value,
    at: CheckpointStamp,
) -> Result<Checkpoint, Failure> {
    let graph = &fork_base.graph_version.graph;
    let reduced = reduce(&fork_base.app, input_reductions(graph, base, input)).await?;
    let (root, caller) = (Namespace::root(), slot.request.caller(&fork_base.app.name));
    let made = block_in_place_in_turn(caller, is_long_input(graph, base, input), || {
        accept_input(graph, base, &root, input, &reduced, at)
    });
    made.await.map_err(|error| error.to_failure())
}

/// Returns the journal entry that `call` refers to, if the entry is among the events since a
/// checkpoint.
fn find_call_event<'t>(
    tuple: &'t CheckpointTuple,
    call: &CallRef,
) -> Result<Option<(&'t Event, &'t Called)>, Failure> {
    let found = tuple.events.iter().rev().find(|event| match (call, &event.kind) {
        (CallRef::Seq(seq), _) => event.seq == *seq,
        (CallRef::Path { task, scope, call }, EventKind::Called(called)) => {
            called.task == *task && called.scope == *scope && called.call == *call
        }
        _ => false,
    });
    let Some(event) = found else { return Ok(None) };
    match &event.kind {
        EventKind::Called(called) => Ok(Some((event, called))),
        _ => Err(Failure::new(
            code::INVALID,
            format!(
                "event {} is not a result of a host call; name an event of type `called`",
                event.seq
            ),
        )),
    }
}

fn call_not_found(head: &ThreadHead, call: &CallRef) -> Failure {
    let thread = &head.record.id;
    let text = match call {
        CallRef::Seq(seq) if *seq <= head.pruned_seq => {
            format!("the events of thread `{thread}` up to {} were pruned", head.pruned_seq)
        }
        CallRef::Seq(seq) => format!("thread `{thread}` has no event {seq} after a checkpoint"),
        CallRef::Path { task, scope, call } => format!(
            "thread `{thread}` has no call {call} of task `{task}` in scope {scope:?}; the \
             trace of the thread lists the calls"
        ),
    };
    Failure::new(code::NOT_FOUND, text)
}
