//! Edits of subgraphs.
//!
//! An edit of an active subgraph makes a new checkpoint, from which the subgraph continues when the
//! thread is resumed. Pending work of its parent graphs stays. A subgraph that keeps its state and
//! is not active is edited at its last checkpoint. Copies of the checkpoints of its parent graphs
//! then name the new checkpoint, and become the current checkpoints of these graphs.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::step::{CheckpointStamp, Edit, EditAs, edit};

use super::{apply, edit_event};
use crate::app::{App, GraphVersion};
use crate::caller_id::CallerId;
use crate::engine::history::{checkpoint_not_found, graph_at};
use crate::engine::owner::check_owner;
use crate::engine::{Engine, ThreadClaim, thread_not_found};
use crate::hostcall::runs::EndedRun;
use crate::log::Commit;
use crate::ports::store::{CheckpointTuple, ThreadHead, ThreadRecord, ThreadStatus};
use crate::time_travel::EditThread;
use crate::view::{self, Subgraphs};

/// A thread with the subgraph to edit.
struct SubgraphEditTarget<'r> {
    request: &'r EditThread,
    head: ThreadHead,
    app: Arc<App>,
    graph_version: Arc<GraphVersion>,
    /// The current checkpoint of the root graph.
    root: CheckpointTuple,
    subgraphs: Subgraphs,
}

impl Engine {
    /// Edits a subgraph at its current checkpoint.
    ///
    /// # Errors
    ///
    /// See [`Self::edit`]; `conflict` if the subgraph has ended, if the request names an earlier
    /// checkpoint of the subgraph, or if the subgraph is not active while the thread is in the
    /// middle of a superstep; `unsupported` if the subgraph makes no checkpoints.
    pub(super) async fn edit_subgraph(
        &self,
        slot: &ThreadClaim,
        request: &EditThread,
    ) -> Result<(), Failure> {
        let target = self.subgraph_edit_target(request).await?;
        self.admit(&target.head).await?;
        let Some(base) = self.active_checkpoint(&target).await? else {
            return self.edit_idle_subgraph(slot, &target).await;
        };
        target.check_newest(&base)?;
        let first = self.next_checkpoint_id(&target.head).await?;
        let made = self.apply_edits(slot, &target, base, first).await?;
        let record = target.interrupted_record(self.now_ms());
        let log = self.thread_log(&target.head, slot, request.principal.as_ref());
        let nested = log.for_namespace(request.namespace.clone());
        for checkpoint in made {
            nested.push(edit_event(request.principal.as_ref(), &checkpoint));
            let (record, checkpoint) = (Some(record.clone()), Some(checkpoint));
            log.commit(Commit { record, checkpoint, ..Commit::default() }).await;
        }
        Ok(log.wait_durable().await?)
    }

    async fn subgraph_edit_target<'r>(
        &self,
        request: &'r EditThread,
    ) -> Result<SubgraphEditTarget<'r>, Failure> {
        let thread = &request.thread;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let root = view::current_checkpoint(&self.0.states, &head).await?;
        let root = root.ok_or_else(|| checkpoint_not_found(thread, &request.namespace, None))?;
        let version = root.checkpoint.meta.version.unwrap_or(head.record.version);
        let record = ThreadRecord { version, ..head.record.clone() };
        let (app, graph_version) = self.pinned_code(&record).await?;
        let subgraphs = Subgraphs::new(&root.events);
        Ok(SubgraphEditTarget { request, head, app, graph_version, root, subgraphs })
    }

    /// Returns the current checkpoint of the subgraph, if it is active.
    async fn active_checkpoint(
        &self,
        target: &SubgraphEditTarget<'_>,
    ) -> Result<Option<Checkpoint>, Failure> {
        let namespace = &target.request.namespace;
        let Some(subgraph_log) =
            target.subgraphs.get(namespace).filter(|subgraph_log| subgraph_log.is_active())
        else {
            return Ok(None);
        };
        let Some(at) = subgraph_log.checkpoint else { return Err(makes_no_checkpoints(namespace)) };
        let checkpoint = self.load_checkpoint(target, namespace, at).await?;
        let is_now = target.is_current_invocation(&checkpoint);
        if is_now && target.has_returned() {
            return Err(subgraph_ended(namespace));
        }
        Ok(Some(checkpoint).filter(|_| is_now))
    }

    /// Applies the edits to a checkpoint. The new checkpoints have ids from `first` on.
    async fn apply_edits(
        &self,
        slot: &ThreadClaim,
        target: &SubgraphEditTarget<'_>,
        base: Checkpoint,
        first: CheckpointId,
    ) -> Result<Vec<Checkpoint>, Failure> {
        let EditThread { namespace, supersteps, metadata, .. } = target.request;
        let graph_version = target.graph_at(namespace)?;
        let caller = CallerId::of_run(target.request.principal.as_ref(), &target.app.name);
        let mut made: Vec<Checkpoint> = Vec::with_capacity(supersteps.len());
        for (id, edits) in (first.0..).map(CheckpointId).zip(supersteps) {
            let before = made.last().unwrap_or(&base);
            let at = self.subgraph_stamp(slot, target, id, before.meta.parent_graphs.clone());
            let edited = apply(caller, &target.app, &graph_version.graph, before, edits, at);
            let mut edited = edited.await?;
            edited.meta.metadata.clone_from(metadata);
            made.push(edited);
        }
        Ok(made)
    }

    fn subgraph_stamp(
        &self,
        slot: &ThreadClaim,
        target: &SubgraphEditTarget<'_>,
        id: CheckpointId,
        parents: BTreeMap<Namespace, CheckpointId>,
    ) -> CheckpointStamp {
        let version = target.graph_version.version;
        CheckpointStamp {
            id,
            run: slot.run.clone(),
            at_ms: self.now_ms(),
            version,
            parents,
            tasks: None,
        }
    }

    /// Edits the state from which the next invocation of a subgraph continues.
    async fn edit_idle_subgraph(
        &self,
        slot: &ThreadClaim,
        target: &SubgraphEditTarget<'_>,
    ) -> Result<(), Failure> {
        let mut around = self.checkpoint_chain(target).await?;
        let base = around.pop().ok_or_else(|| Failure::internal("there is no subgraph to edit"))?;
        target.check_newest(&base)?;
        let first = self.next_checkpoint_id(&target.head).await?;
        let mut made = self.apply_edits(slot, target, base, first).await?;
        // The loop goes from the innermost graph outwards, because each copied checkpoint refers to
        // the new checkpoint of its subgraph.
        while let Some(old) = around.pop() {
            let Some(newest) = made.last().map(|newest| newest.meta.clone()) else { break };
            let graph_version = target.graph_at(&old.meta.namespace)?;
            let copy = [Edit { as_node: EditAs::Copy, writes: Vec::new() }];
            let id = CheckpointId(newest.id.0 + 1);
            let at = self.subgraph_stamp(slot, target, id, old.meta.parent_graphs.clone());
            let mut copied = edit(&graph_version.graph, &old, &copy, &BTreeMap::new(), at)
                .map_err(|error| error.to_failure())?;
            copied.meta.subgraph_checkpoints.insert(newest.namespace, newest.id);
            made.push(copied);
        }
        self.write_chain(slot, target, made).await
    }

    /// Returns the checkpoints from the root graph to the last one of a subgraph that keeps its
    /// state.
    async fn checkpoint_chain(
        &self,
        target: &SubgraphEditTarget<'_>,
    ) -> Result<Vec<Checkpoint>, Failure> {
        let EditThread { thread, namespace, .. } = target.request;
        let ended = namespace.ancestors().any(|around| around.task().is_some());
        if ended {
            let known = self.0.ports.store.checkpoint(thread, namespace, None).await?.is_some();
            let missing = || checkpoint_not_found(thread, namespace, None);
            return Err(if known { subgraph_ended(namespace) } else { missing() });
        }
        let mut chain = vec![target.root.checkpoint.clone()];
        for inside in namespace.path() {
            let id = chain.last().and_then(|around| around.meta.subgraph_checkpoints.get(&inside));
            let id = *id.ok_or_else(|| checkpoint_not_found(thread, &inside, None))?;
            chain.push(self.load_checkpoint(target, &inside, id).await?);
        }
        if target.root.events.iter().any(|it| matches!(it.kind, EventKind::TaskStarted(_))) {
            return Err(superstep_in_progress(target));
        }
        Ok(chain)
    }

    /// Writes the checkpoints, beginning with that of the innermost graph. All of them take effect
    /// when the last one, the checkpoint of the root graph, is written.
    async fn write_chain(
        &self,
        slot: &ThreadClaim,
        target: &SubgraphEditTarget<'_>,
        made: Vec<Checkpoint>,
    ) -> Result<(), Failure> {
        let log = self.thread_log(&target.head, slot, target.request.principal.as_ref());
        for checkpoint in made {
            let meta = &checkpoint.meta;
            let nested = log.for_namespace(meta.namespace.clone());
            nested.push(edit_event(target.request.principal.as_ref(), &checkpoint));
            let is_over = meta.next.is_empty();
            let record = meta.namespace.is_root().then(|| ThreadRecord {
                status: if is_over { ThreadStatus::Idle } else { ThreadStatus::Interrupted },
                stopped: false,
                failure: None,
                updated_ms: self.now_ms(),
                expires_ms: None,
                ..target.head.record.clone()
            });
            let checkpoint = Some(checkpoint);
            log.commit(Commit { record, checkpoint, ..Commit::default() }).await;
        }
        Ok(log.wait_durable().await?)
    }

    async fn load_checkpoint(
        &self,
        target: &SubgraphEditTarget<'_>,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Checkpoint, Failure> {
        let thread = &target.request.thread;
        let found = self.0.states.checkpoint(thread, namespace, id).await?;
        let found = found.map(|tuple| tuple.checkpoint);
        found.ok_or_else(|| checkpoint_not_found(thread, namespace, Some(id)))
    }
}

impl SubgraphEditTarget<'_> {
    fn graph_at(&self, namespace: &Namespace) -> Result<&GraphVersion, Failure> {
        let graph_version = graph_at(&self.app, &self.graph_version, &self.root.events, namespace);
        graph_version.ok_or_else(|| {
            let text = format!(
                "app `{}` has no graph that runs as the subgraph `{}`",
                self.app.name,
                namespace.as_str()
            );
            Failure::new(code::CONFLICT, text)
        })
    }

    /// Returns true if a checkpoint belongs to the invocation that the parent graphs wait for.
    fn is_current_invocation(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.meta.parent_graphs.iter().all(|(around, at)| match self.subgraphs.get(around) {
            None => around.is_root() && *at == self.root.checkpoint.meta.id,
            Some(subgraph_log) => subgraph_log.checkpoint.is_none_or(|newest| newest == *at),
        })
    }

    /// Returns true if the call that waits for the subgraph, or for one of its parent graphs, has a
    /// result. The subgraph does not continue then.
    fn has_returned(&self) -> bool {
        let past = view::logged_tasks(&self.root.events);
        self.request.namespace.path().iter().any(|started| {
            let (Some(task), Some(place)) = (started.task(), started.call_path()) else {
                return false;
            };
            let Some((start, scope)) = place.split_last() else { return false };
            let calls = past.get(&task).and_then(|task| task.calls_by_scope.get(scope));
            let answered = calls.map(|calls| &calls.results);
            let run = answered.and_then(|calls| calls.get(start));
            let run = run.and_then(|(_, start)| Some(start.result.as_ref().ok()?["run"].clone()));
            run.is_some_and(|run| {
                let mut calls = answered.into_iter().flat_map(BTreeMap::values);
                calls.any(|(_, it)| it.function == EndedRun::FUNCTION && it.request["run"] == run)
            })
        })
    }

    fn check_newest(&self, newest: &Checkpoint) -> Result<(), Failure> {
        let id = newest.meta.id;
        match self.request.checkpoint {
            Some(other) if other != id => Err(Failure::new(
                code::CONFLICT,
                format!(
                    "the subgraph `{}` can be edited only at its current checkpoint {id}; to edit \
                     an earlier state, fork the thread first",
                    self.request.namespace.as_str()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the record of the thread with the status `interrupted`. The thread still expires if
    /// interrupts outside of the subgraph are pending.
    fn interrupted_record(&self, now_ms: i64) -> ThreadRecord {
        let edited = &self.request.namespace;
        let open = view::pending_with_graphs(&view::lineage(&self.root), &self.subgraphs);
        let is_left =
            |(graph, _): &(Namespace, Interrupt)| graph != edited && !graph.is_nested_in(edited);
        let expires_ms = self.head.record.expires_ms.filter(|_| open.iter().any(is_left));
        ThreadRecord {
            status: ThreadStatus::Interrupted,
            stopped: false,
            failure: None,
            updated_ms: now_ms,
            expires_ms,
            ..self.head.record.clone()
        }
    }
}

fn makes_no_checkpoints(namespace: &Namespace) -> Failure {
    Failure::new(
        code::UNSUPPORTED,
        format!(
            "the subgraph `{}` makes no checkpoints (`state = \"none\"`, or durability `exit`), \
             so it cannot be edited; edit its parent graph",
            namespace.as_str()
        ),
    )
}

fn subgraph_ended(namespace: &Namespace) -> Failure {
    Failure::new(
        code::CONFLICT,
        format!(
            "the subgraph `{}` has ended and does not continue; edit its parent graph",
            namespace.as_str()
        ),
    )
}

fn superstep_in_progress(target: &SubgraphEditTarget<'_>) -> Failure {
    Failure::new(
        code::CONFLICT,
        format!(
            "cannot edit subgraph `{}`: a superstep of thread `{}` is in progress; resume the \
             thread first, or fork from checkpoint {}",
            target.request.namespace.as_str(),
            target.request.thread,
            target.root.checkpoint.meta.id
        ),
    )
}
