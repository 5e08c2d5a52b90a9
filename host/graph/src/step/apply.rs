//! Applies the writes of many tasks to one state.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::channel::{Channel, Reduced, Reducer};
use crate::checkpoint::{ChannelValue, Checkpoint, CheckpointMeta, ListDelta, Values, Versions};
use crate::error::StepError;
use crate::event::Write;
use crate::graph::Graph;
use crate::id::{ChannelName, CheckpointId, NodeName};
use crate::limit::Exceeded;
use crate::schema::StepBudget;

/// Writes with their nodes, in order; an input has no node.
pub(super) type Writes<'w> = Vec<(Option<&'w NodeName>, &'w Write)>;

/// Groups writes by channel, in order.
pub(super) fn by_channel<'w>(
    writes: impl IntoIterator<Item = (Option<&'w NodeName>, &'w Write)>,
) -> BTreeMap<&'w ChannelName, Writes<'w>> {
    let mut channels: BTreeMap<&ChannelName, Writes<'_>> = BTreeMap::new();
    for (writer, write) in writes {
        channels.entry(&write.channel).or_default().push((writer, write));
    }
    channels
}

/// Returns the new value of a channel. `reduced` is the result of the plugin reducer, if one was
/// called.
fn combine(
    channel: &Channel,
    current: Option<&ChannelValue>,
    writes: &Writes<'_>,
    reduced: Option<&Value>,
    budget: &StepBudget,
) -> Result<Reduced, StepError> {
    let nodes: Vec<&NodeName> = writes.iter().filter_map(|(node, _)| *node).collect();
    let writes: Vec<&Write> = writes.iter().map(|(_, write)| *write).collect();
    match (&channel.reducer, reduced) {
        (Reducer::Plugin { .. }, Some(reduced)) => {
            channel.check_single_overwrite(&writes, &nodes)?;
            let valid = channel.validate_within(reduced, budget);
            valid.map_err(|misfit| channel.refused(None, misfit))?;
            Ok(ChannelValue::from(reduced.clone()).into())
        }
        _ => channel.reduce_writes(current, &writes, &nodes, budget),
    }
}

/// The state of a new checkpoint. A channel has a version exactly if it has a value.
pub(super) struct ValuesBuilder {
    pub(super) values: Values,
    versions: Versions,
    tails: BTreeMap<ChannelName, ListDelta>,
    id: CheckpointId,
}

impl ValuesBuilder {
    /// Starts from the state of a checkpoint. `id` is the number of the new checkpoint.
    pub(super) fn of(base: &Checkpoint, id: CheckpointId) -> Self {
        let (values, versions) = (base.values.clone(), base.meta.versions.clone());
        Self { values, versions, tails: BTreeMap::new(), id }
    }

    /// Starts from the defaults of the channels, for a new thread.
    pub(super) fn defaults(graph: &Graph, id: CheckpointId) -> Self {
        let (values, versions, tails) = (Values::new(), Versions::new(), BTreeMap::new());
        let mut state = Self { values, versions, tails, id };
        for (name, channel) in graph.channels() {
            if let Some(default) = &channel.default {
                state.set(name, ChannelValue::from(default.clone()).into());
            }
        }
        state
    }

    /// Applies the writes of one superstep, edit or input.
    pub(super) fn apply(
        &mut self,
        graph: &Graph,
        writes: &BTreeMap<&ChannelName, Writes<'_>>,
        reduced: &BTreeMap<ChannelName, Value>,
    ) -> Result<(), StepError> {
        // A write to an ephemeral channel replaces the value, so no reducer needs the old value.
        self.clear_ephemeral(graph);
        self.apply_before_tasks(graph, writes, reduced)
    }

    /// Applies writes before a superstep that has not run yet. Ephemeral values stay, so that the
    /// tasks of that superstep still read them.
    pub(super) fn apply_before_tasks(
        &mut self,
        graph: &Graph,
        writes: &BTreeMap<&ChannelName, Writes<'_>>,
        reduced: &BTreeMap<ChannelName, Value>,
    ) -> Result<(), StepError> {
        let budget = StepBudget::default();
        for (name, writes) in writes {
            let channel =
                graph.channels().get(*name).ok_or_else(|| unknown_channel(name, writes))?;
            let current = self.values.get(*name);
            let combined = combine(channel, current, writes, reduced.get(*name), &budget)?;
            self.set(name, combined);
        }
        self.check_size(graph)
    }

    /// Checks the size of the state. The weights of values that did not change are cached.
    fn check_size(&self, graph: &Graph) -> Result<(), StepError> {
        let allowed = graph.limits().state_bytes;
        let (mut bytes, mut largest) = (0_u64, None);
        for (name, value) in &self.values {
            let own = value.weight();
            bytes = bytes.saturating_add(own);
            largest = largest.max(Some((own, name)));
        }
        match largest.filter(|_| bytes > allowed) {
            None => Ok(()),
            Some((own, channel)) => {
                let message = format!(
                    "the state of graph `{}` would take {bytes} bytes of memory, more than the \
                     limit of {allowed}, and channel `{channel}` has the most with {own}: keep \
                     less in it, put large things into blobs, or raise `limits.state_bytes` in \
                     wattle.toml",
                    graph.name
                );
                Err(StepError::Limit(Exceeded::new("state_bytes", allowed, message)))
            }
        }
    }

    /// Returns the checkpoint with this state.
    pub(super) fn into_checkpoint(self, meta: CheckpointMeta) -> Checkpoint {
        let meta = CheckpointMeta { versions: self.versions, ..meta };
        Checkpoint { list_deltas: self.tails, ..Checkpoint::new(meta, self.values) }
    }

    fn set(&mut self, channel: &ChannelName, combined: Reduced) {
        let before = self.versions.insert(channel.clone(), self.id);
        if let (Some(base), Some(prefix_len)) =
            (before, delta_prefix_len(combined.unchanged_prefix))
            && base != self.id
        {
            self.tails.insert(channel.clone(), ListDelta { base, prefix_len });
        }
        self.values.insert(channel.clone(), combined.value);
    }

    /// Removes ephemeral values, which last for one superstep.
    fn clear_ephemeral(&mut self, graph: &Graph) {
        for (name, channel) in graph.channels() {
            if channel.reducer == Reducer::Ephemeral {
                self.values.remove(name);
                self.versions.remove(name);
            }
        }
    }
}

/// Returns the length of the unchanged prefix; `None` if the prefix is empty.
fn delta_prefix_len(kept: Option<usize>) -> Option<u32> {
    kept.filter(|kept| *kept > 0).and_then(|kept| u32::try_from(kept).ok())
}

/// Returns the error of writes to a channel that the graph does not have.
fn unknown_channel(channel: &ChannelName, writes: &Writes<'_>) -> StepError {
    match writes.iter().find_map(|(node, _)| *node) {
        Some(node) => StepError::UnknownChannel { node: node.clone(), channel: channel.clone() },
        None => StepError::InvalidInput { message: format!("there is no channel `{channel}`") },
    }
}
