//! From one checkpoint to the next: checks and applies writes, and finds out what they lead to.
//!
//! Everything here is a function of the graph, the lineage and a [`Position`]; in which order the
//! tasks of a superstep finished makes no difference. An edit by a client or a fork will be one
//! more function beside [`advance`] and [`accept_input`].

mod apply;
mod route;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::channel::{Channel, Reducer};
use crate::checkpoint::{Checkpoint, CheckpointMeta, Source, Trigger, Values};
use crate::event::{Send, TaskFinished, Write};
use crate::graph::{Graph, is_end};
use crate::id::{ChannelName, CheckpointId, Namespace, NodeName, PluginName, RunId};
use crate::lineage::Lineage;

pub use crate::error::StepError;

/// What the pure core cannot know about a new checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Its number.
    pub id: CheckpointId,
    /// The run that makes it.
    pub run: RunId,
    /// Milliseconds since 1970, from the host's clock.
    pub at_ms: i64,
}

/// Work for a reducer of a plugin, to be done before the superstep or input is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginReduction {
    /// The channel whose new value is wanted.
    pub channel: ChannelName,
    /// The plugin.
    pub plugin: PluginName,
    /// Its reducer.
    pub reducer: String,
    /// The value so far, or what a write replaced it with.
    pub current: Option<Value>,
    /// The writes, in task order.
    pub updates: Vec<Value>,
}

/// Checks what a task wants, as soon as it has finished, so that a bad output fails that task and
/// not the superstep.
///
/// # Errors
///
/// [`StepError::UnknownChannel`], [`StepError::InvalidValue`] or [`StepError::UnknownNode`].
pub fn check_writes(
    graph: &Graph,
    node: &NodeName,
    writes: &[Write],
    goto: Option<&[NodeName]>,
    sends: &[Send],
) -> Result<(), StepError> {
    for write in writes {
        let channel = graph.channels().get(&write.channel).ok_or_else(|| {
            StepError::UnknownChannel { node: node.clone(), channel: write.channel.clone() }
        })?;
        channel.check_write(write).map_err(|message| StepError::InvalidValue {
            node: Some(node.clone()),
            channel: write.channel.clone(),
            message,
        })?;
    }
    let targets = goto.unwrap_or_default().iter().filter(|target| !is_end(target));
    match targets.chain(sends.iter().map(|send| &send.node)).find(|to| graph.node(to).is_none()) {
        None => Ok(()),
        Some(target) => Err(StepError::UnknownNode { node: node.clone(), target: target.clone() }),
    }
}

/// What plugins must combine before [`advance`] can be called.
pub fn plugin_reductions(graph: &Graph, lineage: &Lineage) -> Vec<PluginReduction> {
    let tasks = tasks_in_order(lineage);
    let writes = apply::by_channel(tasks.iter().copied());
    writes
        .iter()
        .filter_map(|(name, writes)| {
            let channel = graph.channels().get(*name)?;
            let current = lineage.checkpoint.values.get(*name).map(Arc::as_ref);
            reduction(channel, current, writes.iter().map(|(_, write)| *write))
        })
        .collect()
}

/// What plugins must combine before [`accept_input`] can be called.
pub fn input_reductions(
    graph: &Graph,
    base: Option<&Checkpoint>,
    input: &Value,
) -> Vec<PluginReduction> {
    let Value::Object(fields) = input else { return Vec::new() };
    fields
        .iter()
        .filter_map(|(name, value)| {
            let channel = graph.channels().get(name.as_str())?;
            let current = match base {
                Some(base) => base.values.get(&channel.name).map(Arc::as_ref),
                None => channel.default.as_ref(),
            };
            let write = input_write(channel, value);
            reduction(channel, current, std::iter::once(&write))
        })
        .collect()
}

/// Applies a superstep whose tasks have all finished: their writes in task order, then edges,
/// branches, barriers, gotos and sends on the new state.
///
/// `reduced` holds the results of [`plugin_reductions`].
///
/// # Errors
///
/// [`StepError`] if writes exclude each other, a value does not fit or a branch cannot be decided.
pub fn advance(
    graph: &Graph,
    lineage: &Lineage,
    reduced: &BTreeMap<ChannelName, Value>,
    at: Position,
) -> Result<Checkpoint, StepError> {
    let base = &lineage.checkpoint;
    let tasks = tasks_in_order(lineage);
    let mut state = apply::State::of(base, at.id);
    state.clear_ephemeral(graph);
    for (name, writes) in apply::by_channel(tasks.iter().copied()) {
        let channel = graph.channels().get(name).ok_or_else(|| StepError::UnknownChannel {
            node: writes[0].0.clone(),
            channel: name.clone(),
        })?;
        let current = base.values.get(name).map(Arc::as_ref);
        let value = apply::combine(channel, current, &writes, reduced.get(name))?;
        state.set(name, value);
    }
    let (next, barriers) = route::next(graph, &base.meta.barriers, &tasks, &state.values)?;
    let meta = CheckpointMeta {
        id: at.id,
        parent: Some(base.meta.id),
        namespace: base.meta.namespace.clone(),
        step: base.meta.step + 1,
        source: Source::Loop,
        run: at.run,
        at_ms: at.at_ms,
        next,
        barriers,
        versions: state.versions,
        metadata: BTreeMap::new(),
    };
    Ok(Checkpoint { meta, values: state.values })
}

/// Applies the input of a run, an object of channel values, and triggers the entry.
///
/// Channel defaults are set on the first input of a thread. Input passes the reducers, so it adds
/// to what a thread already holds. What was still to run on `base` is given up.
///
/// `reduced` holds the results of [`input_reductions`].
///
/// # Errors
///
/// [`StepError::InvalidInput`] if the input is no object or names an unknown channel,
/// [`StepError::InvalidValue`] and [`StepError::Reduce`] if a value does not fit.
pub fn accept_input(
    graph: &Graph,
    base: Option<&Checkpoint>,
    namespace: &Namespace,
    input: &Value,
    reduced: &BTreeMap<ChannelName, Value>,
    at: Position,
) -> Result<Checkpoint, StepError> {
    let fields = input_fields(graph, input)?;
    let mut state = match base {
        Some(base) => apply::State::of(base, at.id),
        None => apply::State::defaults(graph, at.id),
    };
    let before: Values = state.values.clone();
    state.clear_ephemeral(graph);
    for (channel, value) in fields {
        let write = input_write(channel, value);
        channel.check_write(&write).map_err(|message| channel.invalid(message))?;
        let current = before.get(&channel.name).map(Arc::as_ref);
        let combined = apply::combine_input(channel, current, &write, reduced.get(&channel.name))?;
        state.set(&channel.name, combined);
    }
    let entry = graph.entry().iter();
    let meta = CheckpointMeta {
        id: at.id,
        parent: base.map(|base| base.meta.id),
        namespace: namespace.clone(),
        step: base.map_or(0, |base| base.meta.step + 1),
        source: Source::Input,
        run: at.run,
        at_ms: at.at_ms,
        next: entry.map(|node| Trigger { node: node.clone(), from: None, input: None }).collect(),
        barriers: BTreeMap::new(),
        versions: state.versions,
        metadata: BTreeMap::new(),
    };
    Ok(Checkpoint { meta, values: state.values })
}

/// The channel of each value of an input.
fn input_fields<'g, 'v>(
    graph: &'g Graph,
    input: &'v Value,
) -> Result<Vec<(&'g Channel, &'v Value)>, StepError> {
    let known = || {
        let names: Vec<String> = graph.channels().keys().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let Value::Object(fields) = input else {
        let message = format!(
            "it must be an object of channel values, for the channels {} of graph `{}`",
            known(),
            graph.name
        );
        return Err(StepError::InvalidInput { message });
    };
    fields
        .iter()
        .map(|(name, value)| match graph.channels().get(name.as_str()) {
            Some(channel) => Ok((channel, value)),
            None => Err(StepError::InvalidInput {
                message: format!(
                    "graph `{}` has no channel `{name}`, its channels are {}",
                    graph.name,
                    known()
                ),
            }),
        })
        .collect()
}

fn input_write(channel: &Channel, value: &Value) -> Write {
    Write { channel: channel.name.clone(), value: value.clone(), overwrite: false }
}

/// The tasks that have finished, by node and index: the order in which writes are applied.
fn tasks_in_order(lineage: &Lineage) -> Vec<&TaskFinished> {
    let mut tasks: Vec<&TaskFinished> = lineage.finished.values().collect();
    tasks.sort_by_key(|finished| (&finished.node, finished.index));
    tasks
}

fn reduction<'w>(
    channel: &Channel,
    current: Option<&Value>,
    writes: impl Iterator<Item = &'w Write>,
) -> Option<PluginReduction> {
    let Reducer::Plugin { plugin, reducer } = &channel.reducer else { return None };
    let mut current = current;
    let mut updates = Vec::new();
    let writes: Vec<&Write> = writes.collect();
    for write in &writes {
        if write.overwrite {
            current = Some(&write.value);
        } else {
            updates.push(write.value.clone());
        }
    }
    (!updates.is_empty()).then(|| PluginReduction {
        channel: channel.name.clone(),
        plugin: plugin.clone(),
        reducer: reducer.clone(),
        current: current.cloned(),
        updates,
    })
}

#[cfg(test)]
mod tests;
