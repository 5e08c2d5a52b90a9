//! Applies the input of a run.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource, Trigger};
use crate::error::StepError;
use crate::event::Write;
use crate::graph::Graph;
use crate::id::{ChannelName, Namespace};
use crate::schema::StepBudget;
use crate::step::apply::{ValuesBuilder, by_channel};
use crate::step::next;
use crate::step::{CheckpointStamp, next_meta};

/// Applies the input of a run, an object of channel values, and triggers the entry nodes.
///
/// The first input of a thread also sets the channel defaults. Reducers combine the input with the
/// values that a thread already has. The triggers of `base` are discarded.
///
/// `reduced` holds the results of [`super::input_reductions`].
///
/// # Errors
///
/// [`StepError::InvalidInput`] if the input is not an object or names an unknown channel,
/// [`StepError::InvalidValue`] and [`StepError::Reduce`] if a value does not fit,
/// [`StepError::Limit`] if the state would be too large.
pub fn accept_input(
    graph: &Graph,
    base: Option<&Checkpoint>,
    namespace: &Namespace,
    input: &Value,
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    let writes = writes(graph, input)?;
    accept(graph, base, namespace, CheckpointSource::Input, &writes, reduced, at)
}

/// Checks an input without the state to which the input will be applied.
///
/// # Errors
///
/// [`StepError::InvalidInput`] if the input is not an object or names an unknown channel,
/// [`StepError::InvalidValue`] if a value does not fit.
pub fn check_input(graph: &Graph, input: &Value) -> Result<(), StepError> {
    check(graph, &writes(graph, input)?)
}

/// Applies the writes of an input, or of an edit as an input.
pub(super) fn accept(
    graph: &Graph,
    base: Option<&Checkpoint>,
    namespace: &Namespace,
    source: CheckpointSource,
    writes: &[Write],
    reduced: &BTreeMap<ChannelName, Value>,
    at: CheckpointStamp,
) -> Result<Checkpoint, StepError> {
    check(graph, writes)?;
    let mut state = match base {
        Some(base) => ValuesBuilder::of(base, at.id),
        None => ValuesBuilder::defaults(graph, at.id),
    };
    state.apply(graph, &by_channel(writes.iter().map(|write| (None, write))), reduced)?;
    let entry = graph.entry().iter().map(|node| Trigger::without_input(node.clone(), None));
    let (next, deferred) = next::split_deferred(graph, entry.collect(), Vec::new());
    let meta = CheckpointMeta { next, deferred, ..next_meta(base, namespace, source, at) };
    Ok(state.into_checkpoint(meta))
}

/// Checks writes that no node made.
pub(super) fn check(graph: &Graph, writes: &[Write]) -> Result<(), StepError> {
    let budget = StepBudget::default();
    for write in writes {
        let Some(channel) = graph.channels().get(&write.channel) else {
            return Err(unknown_channel(graph, write.channel.as_str()));
        };
        channel.check_write(write, &budget).map_err(|misfit| channel.refused(None, misfit))?;
    }
    Ok(())
}

/// Returns the writes of an input.
pub(super) fn writes(graph: &Graph, input: &Value) -> Result<Vec<Write>, StepError> {
    let Value::Object(fields) = input else {
        let message = format!(
            "it must be an object of channel values, for the channels {} of graph `{}`",
            known(graph),
            graph.name
        );
        return Err(StepError::InvalidInput { message });
    };
    fields
        .iter()
        .map(|(name, value)| match graph.channels().get(name.as_str()) {
            None => Err(unknown_channel(graph, name)),
            Some(channel) => {
                let channel = channel.name.clone();
                Ok(Write { channel, value: value.clone(), overwrite: false })
            }
        })
        .collect()
}

fn unknown_channel(graph: &Graph, channel: &str) -> StepError {
    let message = format!(
        "graph `{}` has no channel `{channel}`, its channels are {}",
        graph.name,
        known(graph)
    );
    StepError::InvalidInput { message }
}

fn known(graph: &Graph) -> String {
    let names: Vec<String> = graph.channels().keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
