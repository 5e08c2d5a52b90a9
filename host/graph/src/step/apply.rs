//! Writes of many tasks become one state.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::channel::{Channel, Reducer};
use crate::checkpoint::{Checkpoint, Values};
use crate::error::StepError;
use crate::event::{TaskFinished, Write};
use crate::graph::Graph;
use crate::id::{ChannelName, CheckpointId, NodeName};

/// Writes with their writers, in task order.
pub(super) type Writes<'t> = Vec<(&'t NodeName, &'t Write)>;

/// The writes of tasks in order, by channel.
pub(super) fn by_channel<'t>(
    tasks: impl Iterator<Item = &'t TaskFinished>,
) -> BTreeMap<&'t ChannelName, Writes<'t>> {
    let mut writes: BTreeMap<&ChannelName, Writes<'_>> = BTreeMap::new();
    for task in tasks {
        for write in &task.writes {
            writes.entry(&write.channel).or_default().push((&task.node, write));
        }
    }
    writes
}

/// The new value of a channel; `reduced` is what a plugin made of it, if it was asked.
pub(super) fn combine(
    channel: &Channel,
    current: Option<&Value>,
    writes: &Writes<'_>,
    reduced: Option<&Value>,
) -> Result<Value, StepError> {
    let nodes: Vec<&NodeName> = writes.iter().map(|(node, _)| *node).collect();
    let writes: Vec<&Write> = writes.iter().map(|(_, write)| *write).collect();
    match (&channel.reducer, reduced) {
        (Reducer::Plugin { .. }, Some(reduced)) => {
            channel.check_overwrites(&writes, &nodes)?;
            channel.validate(reduced).map_err(|message| channel.invalid(message))?;
            Ok(reduced.clone())
        }
        _ => channel.reduce_by(current, &writes, &nodes),
    }
}

/// The same for the single write of an input.
pub(super) fn combine_input(
    channel: &Channel,
    current: Option<&Value>,
    write: &Write,
    reduced: Option<&Value>,
) -> Result<Value, StepError> {
    match (&channel.reducer, reduced) {
        (Reducer::Plugin { .. }, Some(reduced)) => {
            channel.validate(reduced).map_err(|message| channel.invalid(message))?;
            Ok(reduced.clone())
        }
        _ => channel.reduce(current, &[write]),
    }
}

/// The state that a checkpoint is made of. A channel has a version exactly if it has a value.
pub(super) struct State {
    pub(super) values: Values,
    pub(super) versions: BTreeMap<ChannelName, CheckpointId>,
    id: CheckpointId,
}

impl State {
    /// The state of a checkpoint, for a new one with that id.
    pub(super) fn of(base: &Checkpoint, id: CheckpointId) -> Self {
        Self { values: base.values.clone(), versions: base.meta.versions.clone(), id }
    }

    /// The state of a new thread.
    pub(super) fn defaults(graph: &Graph, id: CheckpointId) -> Self {
        let mut state = Self { values: Values::new(), versions: BTreeMap::new(), id };
        for (name, channel) in graph.channels() {
            if let Some(default) = &channel.default {
                state.set(name, default.clone());
            }
        }
        state
    }

    /// Sets the value of a channel.
    pub(super) fn set(&mut self, channel: &ChannelName, value: Value) {
        self.values.insert(channel.clone(), Arc::new(value));
        self.versions.insert(channel.clone(), self.id);
    }

    /// Removes values that are there for one superstep only.
    pub(super) fn clear_ephemeral(&mut self, graph: &Graph) {
        for (name, channel) in graph.channels() {
            if channel.reducer == Reducer::Ephemeral {
                self.values.remove(name);
                self.versions.remove(name);
            }
        }
    }
}
