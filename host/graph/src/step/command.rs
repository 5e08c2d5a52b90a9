//! Commands of clients: writes, and nodes to run in addition to those that are triggered.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource, Trigger};
use crate::error::StepError;
use crate::event::{Send, Write};
use crate::graph::{Graph, is_end};
use crate::id::{ChannelName, Namespace, NodeName};
use crate::step::apply::{ValuesBuilder, by_channel};
use crate::step::edit::unknown_node;
use crate::step::{CheckpointStamp, fork, input, next};

/// A request of a client to write to a thread and to run further nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// Writes that are applied before anything runs, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Write>,
    /// Nodes that run in the next superstep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goto: Vec<NodeName>,
    /// Further tasks of the next superstep, with separate inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Send>,
    /// True if the entry nodes do not run on a thread without a checkpoint, so that only the named
    /// nodes run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skips_entry: bool,
}

/// Applies a command to a copy of a checkpoint. The triggers of the checkpoint remain, and their
/// tasks keep their indexes. The nodes that the command names run in the same superstep. Without a
/// base, the result is the first checkpoint of a thread: the writes are its input, and the entry
/// nodes run, too, unless the command skips them.
///
/// `reduced` holds the results of [`super::command_reductions`].
///
/// # Errors
///
/// [`StepError::InvalidEdit`] for a node that the graph does not have, [`StepError::Limit`] for
/// more tasks than a superstep may have, and otherwise the errors of [`super::accept_input`].
pub fn command(
    graph: &Graph,
    base: Option<&Checkpoint>,
    command: &Command,
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    let named = command.goto.iter().filter(|node| !is_end(node));
    let mut named = named.chain(command.sends.iter().map(|send| &send.node));
    if let Some(node) = named.find(|node| graph.node(node).is_none()) {
        return Err(unknown_node(graph, node));
    }
    // The tasks are counted first, because adding triggers one by one takes quadratic time.
    next::check_task_count(graph, command.sends.len())?;
    let made = match base {
        Some(base) => with_writes(graph, base, &command.writes, reduced, at)?,
        None => {
            let (root, source) = (Namespace::root(), CheckpointSource::Input);
            let mut made = input::accept(graph, None, &root, source, &command.writes, reduced, at)?;
            if command.skips_entry {
                made.meta.next.clear();
                made.meta.deferred.clear();
            }
            made
        }
    };
    let made = with_targets(graph, made, command);
    next::check_load(graph, &made.meta.next)?;
    next::check_load(graph, &made.meta.deferred)?;
    Ok(made)
}

/// Returns a copy of a checkpoint with the writes applied.
fn with_writes(
    graph: &Graph,
    base: &Checkpoint,
    writes: &[Write],
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    let id = at.id;
    let copy = fork(base, at);
    if writes.is_empty() {
        return Ok(copy);
    }
    input::check(graph, writes)?;
    let mut state = ValuesBuilder::of(base, id);
    state.apply_before_tasks(
        graph,
        &by_channel(writes.iter().map(|write| (None, write))),
        reduced,
    )?;
    Ok(state.into_checkpoint(copy.meta))
}

/// Adds the nodes that a command names to the triggers.
fn with_targets(graph: &Graph, made: Checkpoint, command: &Command) -> Checkpoint {
    let (next, deferred) = targets(graph, &made, command);
    let meta = CheckpointMeta { next, deferred, ..made.meta };
    Checkpoint { meta, ..made }
}

/// Returns the triggers of a checkpoint and its deferred triggers, with the nodes that a command
/// names.
fn targets(graph: &Graph, made: &Checkpoint, command: &Command) -> (Vec<Trigger>, Vec<Trigger>) {
    let (mut now, mut late) = (made.meta.next.clone(), made.meta.deferred.clone());
    // Tasks that get the state as their input share one copy of it.
    let copy = LazyCell::new(|| Arc::new(made.state()));
    let state = || LazyCell::force(&copy).clone();
    let plain: BTreeSet<&NodeName> = command.goto.iter().filter(|node| !is_end(node)).collect();
    let plain = plain.into_iter().map(|node| Trigger::without_input(node.clone(), None));
    let sends = command.sends.iter().map(|send| Trigger {
        node: send.node.clone(),
        from: None,
        input: Some(Arc::new(send.input.clone())),
        timeout_ms: send.timeout_ms,
    });
    for trigger in plain.chain(sends) {
        let defers = graph.node(&trigger.node).is_some_and(|node| node.defer);
        add_trigger(if defers { &mut late } else { &mut now }, trigger, &state);
    }
    if now.is_empty() { (late, Vec::new()) } else { (now, late) }
}

/// Adds a trigger. A node without a send runs once, with the state as its input. If only sends
/// trigger the node already, a further send with the state as its input is added, so that the tasks
/// keep their indexes, from which their ids derive.
fn add_trigger(triggers: &mut Vec<Trigger>, trigger: Trigger, state: &dyn Fn() -> Arc<Value>) {
    let mut of_node = triggers.iter().filter(|other| other.node == trigger.node).peekable();
    let is_further = of_node.peek().is_some();
    if trigger.input.is_none() && of_node.any(|other| other.input.is_none()) {
        return;
    }
    let input = if is_further { Some(trigger.input.unwrap_or_else(state)) } else { trigger.input };
    triggers.push(Trigger { input, ..trigger });
    next::sort(triggers);
}

#[cfg(test)]
mod tests;
