//! Calls of plugin reducers. The engine makes them before writes are applied, since this crate
//! cannot call plugins.

use serde_json::Value;

use crate::channel::Reducer;
use crate::checkpoint::Checkpoint;
use crate::event::Write;
use crate::graph::Graph;
use crate::id::{ChannelName, NodeName, PluginName};
use crate::lineage::Lineage;
use crate::step::apply::{Writes, by_channel};
use crate::step::command::Command;
use crate::step::edit::Edit;
use crate::step::{input, tasks_in_order, writes_of};

/// A call of a plugin reducer that is due before the superstep or input is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginReduction {
    /// The channel whose new value the reducer computes.
    pub channel: ChannelName,
    /// The plugin that exports the reducer.
    pub plugin: PluginName,
    /// Name of the reducer.
    pub reducer: String,
    /// The current value, or the value of an overwrite.
    pub current: Option<Value>,
    /// The writes, in task order.
    pub updates: Vec<Value>,
}

/// Returns the reducer calls that [`crate::step::advance`] needs.
pub fn plugin_reductions(graph: &Graph, lineage: &Lineage) -> Vec<PluginReduction> {
    let tasks = tasks_in_order(lineage);
    reductions(graph, Some(&lineage.checkpoint), writes_of(&tasks))
}

/// Returns the reducer calls that [`crate::step::accept_input`] needs.
pub fn input_reductions(
    graph: &Graph,
    base: Option<&Checkpoint>,
    input: &Value,
) -> Vec<PluginReduction> {
    // An invalid input is rejected when it is applied.
    let writes = input::writes(graph, input).unwrap_or_default();
    reductions(graph, base, writes.iter().map(|write| (None, write)))
}

/// Returns the reducer calls that [`crate::step::edit`] needs.
pub fn edit_reductions(graph: &Graph, base: &Checkpoint, edits: &[Edit]) -> Vec<PluginReduction> {
    let writes = edits.iter().flat_map(|edit| &edit.writes);
    reductions(graph, Some(base), writes.map(|write| (None, write)))
}

/// Returns the reducer calls that [`crate::step::command`] needs.
pub fn command_reductions(
    graph: &Graph,
    base: Option<&Checkpoint>,
    command: &Command,
) -> Vec<PluginReduction> {
    reductions(graph, base, command.writes.iter().map(|write| (None, write)))
}

fn reductions<'w>(
    graph: &Graph,
    base: Option<&Checkpoint>,
    writes: impl IntoIterator<Item = (Option<&'w NodeName>, &'w Write)>,
) -> Vec<PluginReduction> {
    // Most graphs have no reducer of a plugin, and then nothing is grouped.
    let is_reduced = |write: &Write| {
        let channel = graph.channels().get(&write.channel);
        channel.is_some_and(|channel| matches!(channel.reducer, Reducer::Plugin { .. }))
    };
    let writes = by_channel(writes.into_iter().filter(|(_, write)| is_reduced(write)));
    writes
        .iter()
        .filter_map(|(name, writes)| {
            let channel = graph.channels().get(*name)?;
            let Reducer::Plugin { plugin, reducer } = &channel.reducer else { return None };
            let (overwrite, updates) = split_overwrite(writes);
            let stored = || match base {
                Some(base) => base.values.get(*name).map(|value| value.value().into_owned()),
                None => channel.default.clone(),
            };
            (!updates.is_empty()).then(|| PluginReduction {
                channel: channel.name.clone(),
                plugin: plugin.clone(),
                reducer: reducer.clone(),
                current: overwrite.cloned().or_else(stored),
                updates,
            })
        })
        .collect()
}

/// Returns the last overwrite and the other writes.
fn split_overwrite<'w>(writes: &Writes<'w>) -> (Option<&'w Value>, Vec<Value>) {
    let (mut overwrite, mut updates) = (None, Vec::new());
    for (_, write) in writes {
        if write.overwrite {
            overwrite = Some(&write.value);
        } else {
            updates.push(write.value.clone());
        }
    }
    (overwrite, updates)
}
