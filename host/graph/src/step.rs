//! Supersteps: from one checkpoint to the next. This module checks and applies writes, and
//! determines what runs next.
//!
//! Every result is a function of the graph, the lineage and a [`CheckpointStamp`]. The order in
//! which the tasks of a superstep finish makes no difference.

mod apply;
mod command;
mod edit;
mod input;
mod next;
mod parent;
mod reduction;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource, Versions};
use crate::event::{Send, SubgraphEnd, TaskFinished, Write};
use crate::graph::{Graph, is_end};
use crate::id::{ChannelName, CheckpointId, Digest, Namespace, NodeName, RunId};
use crate::limit::{self, Exceeded};
use crate::lineage::Lineage;
use crate::schema::StepBudget;
use crate::step::next::{FinishedNode, NextTriggers};

pub use self::command::{Command, command};
pub use self::edit::{Edit, EditAs, edit, empty_checkpoint, first_input};
pub use self::input::{accept_input, check_input};
pub use self::parent::{ParentOutcome, parent_outcome};
pub use self::reduction::{
    PluginReduction, command_reductions, edit_reductions, input_reductions, plugin_reductions,
};
pub use crate::error::StepError;

/// Values of a new checkpoint that only the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointStamp {
    /// Number of the checkpoint.
    pub id: CheckpointId,
    /// The run that creates the checkpoint.
    pub run: RunId,
    /// Time of the checkpoint by the host's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// Digest of the graph and its components.
    pub version: Digest,
    /// Checkpoints of all parent graphs, by namespace; empty for the root graph.
    pub parents: BTreeMap<Namespace, CheckpointId>,
    /// Number of tasks that the run has finished in all of its graphs. `None` counts the tasks of
    /// this graph only.
    pub tasks: Option<u64>,
}

/// Checks the writes, gotos and sends of a task as soon as it has finished, so that an invalid
/// output fails the task and not the superstep.
///
/// # Errors
///
/// [`StepError::UnknownChannel`], [`StepError::InvalidValue`], [`StepError::UnknownNode`] or
/// [`StepError::Limit`].
pub fn check_writes(
    graph: &Graph,
    node: &NodeName,
    writes: &[Write],
    goto: Option<&[NodeName]>,
    sends: &[Send],
) -> Result<(), StepError> {
    check_node_writes(graph, node, writes, &StepBudget::default())?;
    let allowed = graph.limits().task_sends;
    if sends.len() as u64 > allowed {
        let message = format!(
            "node `{node}` sends {} tasks at once, more than the limit of {allowed}: send \
             fewer that do more each",
            sends.len()
        );
        return Err(StepError::Limit(Exceeded::new("task_sends", allowed, message)));
    }
    let targets = goto.unwrap_or_default().iter().filter(|target| !is_end(target));
    match targets.chain(sends.iter().map(|send| &send.node)).find(|to| graph.node(to).is_none()) {
        None => Ok(()),
        Some(target) => Err(StepError::UnknownNode { node: node.clone(), target: target.clone() }),
    }
}

/// Checks the writes of a node to the state, and takes the steps from `budget`.
fn check_node_writes(
    graph: &Graph,
    node: &NodeName,
    writes: &[Write],
    budget: &StepBudget,
) -> Result<(), StepError> {
    for write in writes {
        let channel = graph.channels().get(&write.channel).ok_or_else(|| {
            StepError::UnknownChannel { node: node.clone(), channel: write.channel.clone() }
        })?;
        channel.check_write(write, budget).map_err(|misfit| channel.refused(Some(node), misfit))?;
    }
    Ok(())
}

/// Applies the writes of all finished tasks in task order and returns the next checkpoint. Edges,
/// branches, barriers, gotos and sends are evaluated on the new state. Outcomes for the parent
/// graph are ignored; see [`parent_outcome`].
///
/// `reduced` holds the results of [`plugin_reductions`].
///
/// # Errors
///
/// [`StepError`] if writes conflict, a value violates its schema, a branch cannot be evaluated, or
/// a limit is exceeded.
pub fn advance(
    graph: &Graph,
    lineage: &Lineage,
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    let base = &lineage.checkpoint;
    let tasks = tasks_in_order(lineage);
    let mut state = apply::ValuesBuilder::of(base, at.id);
    state.apply(graph, &apply::by_channel(writes_of(&tasks)), reduced)?;
    let own = tasks.iter().filter(|task| !task.for_parent);
    let ran: Vec<FinishedNode<'_>> = own.map(|task| FinishedNode::from(*task)).collect();
    let next = next::next(graph, &base.meta, &ran, &state.values)?;
    let done = at.tasks.unwrap_or_else(|| done(base, &at.run, tasks.len()));
    check_tasks(graph, done, &next)?;
    let followed = next_meta(Some(base), &base.meta.namespace, CheckpointSource::Loop, at);
    let ended = tasks.iter().filter_map(|task| persisted_subgraph(task.child.as_ref()?));
    let meta = CheckpointMeta {
        next: next.triggers,
        barriers: next.barriers,
        deferred: next.deferred,
        tasks: done,
        writers: tasks.iter().map(|task| task.node.clone()).collect(),
        subgraph_checkpoints: followed.subgraph_checkpoints.into_iter().chain(ended).collect(),
        ..followed
    };
    Ok(Checkpoint { taken: next.taken, ..state.into_checkpoint(meta) })
}

/// Returns the number of tasks that a run has finished, including `more` new tasks.
fn done(base: &Checkpoint, run: &RunId, more: usize) -> u64 {
    let before = if base.meta.run == *run { base.meta.tasks } else { 0 };
    before.saturating_add(more as u64)
}

/// Checks the task limits for the next superstep.
fn check_tasks(graph: &Graph, done: u64, next: &NextTriggers) -> Result<(), StepError> {
    next::check_load(graph, &next.triggers)?;
    next::check_load(graph, &next.deferred)?;
    let allowed = graph.limits().run_tasks;
    if done.saturating_add(next.triggers.len() as u64) <= allowed {
        return Ok(());
    }
    Err(StepError::Limit(limit::run_tasks(&graph.name, allowed)))
}

/// Returns a copy of a checkpoint from which a run can continue. Finished tasks and pending
/// interrupts of the superstep after the checkpoint are not part of the copy: the tasks start from
/// the beginning and raise their interrupts again.
pub fn fork(base: &Checkpoint, at: CheckpointStamp) -> Checkpoint {
    let meta = CheckpointMeta {
        id: at.id,
        parent: Some(base.meta.id),
        source: CheckpointSource::Fork,
        run: at.run,
        at_ms: at.at_ms,
        version: Some(at.version),
        parent_graphs: at.parents,
        event_seq: None,
        tasks: 0,
        ..base.meta.clone()
    };
    Checkpoint::new(meta, base.values.clone())
}

/// Returns the [`CheckpointMeta`] of the checkpoint after `base`; without a base, that of the first
/// checkpoint of a thread. The result has no triggers and no writers.
fn next_meta(
    base: Option<&Checkpoint>,
    namespace: &Namespace,
    source: CheckpointSource,
    at: CheckpointStamp,
) -> CheckpointMeta {
    CheckpointMeta {
        id: at.id,
        parent: base.map(|base| base.meta.id),
        namespace: namespace.clone(),
        step: base.map_or(0, |base| base.meta.step + 1),
        source,
        run: at.run,
        at_ms: at.at_ms,
        version: Some(at.version),
        next: Vec::new(),
        barriers: BTreeMap::new(),
        deferred: Vec::new(),
        tasks: 0,
        writers: Vec::new(),
        subgraph_checkpoints: base
            .map(|base| base.meta.subgraph_checkpoints.clone())
            .unwrap_or_default(),
        parent_graphs: at.parents,
        versions: Versions::new(),
        event_seq: None,
        metadata: BTreeMap::new(),
    }
}

/// Returns the checkpoint from which the next invocation of a subgraph continues, if the subgraph
/// keeps its state.
fn persisted_subgraph(child: &SubgraphEnd) -> Option<(Namespace, CheckpointId)> {
    child
        .checkpoint
        .filter(|_| child.persists)
        .map(|checkpoint| (child.namespace.clone(), checkpoint))
}

/// Returns the finished tasks by node and index, which is the order in which writes are applied.
fn tasks_in_order(lineage: &Lineage) -> Vec<&TaskFinished> {
    let mut tasks: Vec<&TaskFinished> = lineage.finished.values().map(Arc::as_ref).collect();
    tasks.sort_by_key(|finished| (&finished.node, finished.index));
    tasks
}

/// Returns the writes of tasks to the state of the graph of the tasks, in task order.
fn writes_of<'t>(
    tasks: &[&'t TaskFinished],
) -> impl Iterator<Item = (Option<&'t NodeName>, &'t Write)> {
    let own = tasks.iter().filter(|task| !task.for_parent);
    own.flat_map(|task| task.writes.iter().map(|write| (Some(&task.node), write)))
}

#[cfg(test)]
mod load;
#[cfg(test)]
mod tests;
