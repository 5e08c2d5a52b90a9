//! State channels and their reducers.
//!
//! A channel has at most one value. Its reducer combines that value with all writes of a superstep,
//! in task order. Each family of reducers has a file in `channel/`. A write with `overwrite`
//! bypasses the reducer: the reducer then combines the other writes with the overwrite, and not
//! with the old value.

mod append;
mod last_value;
mod merge;
mod messages;
mod numeric;

use std::sync::Arc;

use serde_json::Value;

use crate::checkpoint::{ChannelValue, Content, SharedList};
use crate::definition::{BuiltInReducer, ChannelDef, ReducerDef, is_any_schema};
use crate::error::StepError;
use crate::event::Write;
use crate::id::{ChannelName, NodeName, PluginName};
use crate::schema::{Misfit, Schema, SchemaError, StepBudget};

/// The rule that combines the writes of a superstep with the value of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// A write replaces the value. Two writes in one superstep are an error.
    Last,
    /// The value is an array. Writing an array appends each of its items; any other value is
    /// appended as one item.
    Append,
    /// A write replaces the value. Of several writes in one superstep, the last in task order wins.
    Any,
    /// The value is an object. A write replaces its top-level keys. A `null` is stored like any
    /// other value and removes nothing.
    Merge,
    /// The sum of the old value and all writes.
    Sum,
    /// The smallest of the old value and all writes.
    Min,
    /// The largest of the old value and all writes.
    Max,
    /// The value is an array of messages. A message replaces the message with the same `id`, or is
    /// appended. A message with `"role": "remove"` removes the message with its `id`, or all
    /// messages before it if the id is `__remove_all__`. A message without an id gets one that is
    /// derived from its content and position.
    Messages,
    /// The value exists for one superstep only. Two writes in one superstep are an error.
    Ephemeral,
    /// A plugin computes the value. The engine calls the plugin; see
    /// [`crate::step::plugin_reductions`].
    Plugin {
        /// The plugin that exports the reducer.
        plugin: PluginName,
        /// Name of the export.
        reducer: String,
    },
}

impl Reducer {
    /// Returns true if the reducer reads the whole value, in time proportional to its size. The
    /// reducers `append` and `messages` do not read the items of a list that do not change, with
    /// one exception: `messages` reads all items of a list that it did not make.
    pub fn reads_whole(&self, value: &ChannelValue) -> bool {
        match self {
            Self::Merge | Self::Plugin { .. } => true,
            Self::Messages => value.list().is_some_and(|list| !list.has_unique_ids()),
            _ => false,
        }
    }
}

impl From<&ReducerDef> for Reducer {
    fn from(def: &ReducerDef) -> Self {
        match def {
            ReducerDef::BuiltIn(built_in) => (*built_in).into(),
            ReducerDef::Plugin(made) => {
                Self::Plugin { plugin: made.plugin.clone(), reducer: made.reducer.clone() }
            }
        }
    }
}

impl From<BuiltInReducer> for Reducer {
    fn from(built_in: BuiltInReducer) -> Self {
        match built_in {
            BuiltInReducer::Last => Self::Last,
            BuiltInReducer::Append => Self::Append,
            BuiltInReducer::Any => Self::Any,
            BuiltInReducer::Merge => Self::Merge,
            BuiltInReducer::Sum => Self::Sum,
            BuiltInReducer::Min => Self::Min,
            BuiltInReducer::Max => Self::Max,
            BuiltInReducer::Messages => Self::Messages,
            BuiltInReducer::Ephemeral => Self::Ephemeral,
        }
    }
}

/// The result of a reducer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// The new value.
    pub value: ChannelValue,
    /// Number of leading items that are unchanged since the old value. `None` if the new value is
    /// not a list that grew out of the old one, or if the reducer does not count them.
    pub unchanged_prefix: Option<usize>,
}

impl From<ChannelValue> for Reduced {
    fn from(value: ChannelValue) -> Self {
        Self { value, unchanged_prefix: None }
    }
}

/// One named part of the state.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Unique in the graph.
    pub name: ChannelName,
    /// The rule that combines writes with the value.
    pub reducer: Reducer,
    /// Value on a new thread; `None` if the channel starts without a value.
    pub default: Option<Value>,
    /// Schema of the values; `None` if the channel accepts every value, so that no write needs
    /// validation.
    schema: Option<Arc<Schema>>,
}

impl Channel {
    /// Compiles the schema of a channel.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the schema is invalid or exceeds a limit.
    pub fn new(name: ChannelName, def: &ChannelDef) -> Result<Self, SchemaError> {
        let bounded = !is_any_schema(&def.schema);
        let schema = bounded.then(|| Schema::compile(&def.schema).map(Arc::new)).transpose()?;
        let reducer = Reducer::from(&def.reducer);
        Ok(Self { name, reducer, default: def.default.clone(), schema })
    }

    /// Returns true if validating even a small value can take long.
    pub(crate) fn is_expensive(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.is_expensive())
    }

    /// Validates a value against the schema of the channel, with a separate budget.
    ///
    /// # Errors
    ///
    /// [`Misfit::Invalid`] with the first violation; [`Misfit::Limit`] if the validation takes too
    /// many steps.
    pub fn validate(&self, value: &Value) -> Result<(), Misfit> {
        self.validate_within(value, &StepBudget::default())
    }

    /// Validates a value and takes the steps from a budget that the validations of other channels
    /// share.
    ///
    /// # Errors
    ///
    /// [`Misfit::Invalid`] with the first violation; [`Misfit::Limit`] if the validation takes more
    /// steps than the budget has left.
    pub(crate) fn validate_within(&self, value: &Value, budget: &StepBudget) -> Result<(), Misfit> {
        self.schema.as_ref().map_or(Ok(()), |schema| schema.validate_within(value, budget))
    }

    /// Checks a single write without the other writes of its superstep. A write that passes can
    /// still fail when it is combined with them. All writes that one caller supplies share
    /// `budget`.
    ///
    /// # Errors
    ///
    /// [`Misfit`] if the write does not fit the reducer or the schema.
    pub fn check_write(&self, write: &Write, budget: &StepBudget) -> Result<(), Misfit> {
        let validate = |value: &Value| self.validate_within(value, budget);
        if write.overwrite {
            return validate(&write.value);
        }
        match &self.reducer {
            Reducer::Last | Reducer::Any | Reducer::Ephemeral => validate(&write.value),
            Reducer::Sum | Reducer::Min | Reducer::Max => {
                numeric::parse(&write.value).map_err(Misfit::Invalid)?;
                validate(&write.value)
            }
            Reducer::Append if self.schema.is_none() || write.value.is_array() => {
                validate(&write.value)
            }
            Reducer::Append => validate(&Value::Array(vec![write.value.clone()])),
            Reducer::Merge => merge::check(&write.value).map_err(Misfit::Invalid),
            Reducer::Messages => messages::check(&write.value).map_err(Misfit::Invalid),
            Reducer::Plugin { .. } => Ok(()),
        }
    }

    /// Combines the writes of one superstep, in task order, with the current value.
    ///
    /// `nodes` are the writers, in the order of their writes. Writes of an input have no writer, so
    /// `nodes` can be shorter than `writes`. The channels of a superstep share `budget`.
    ///
    /// # Errors
    ///
    /// [`StepError::ConcurrentWrites`] and [`StepError::DoubleOverwrite`] if the writes exclude
    /// each other, [`StepError::Reduce`] if they cannot be combined, [`StepError::InvalidValue`] if
    /// the result does not fit the schema.
    pub fn reduce_writes(
        &self,
        current: Option<&ChannelValue>,
        writes: &[&Write],
        nodes: &[&NodeName],
        budget: &StepBudget,
    ) -> Result<Reduced, StepError> {
        let (overwrite, rest) = self.split_overwrite(writes, nodes)?;
        let overwrite = overwrite.map(|value| ChannelValue::from(value.clone()));
        if rest.len() > 1 && matches!(self.reducer, Reducer::Last | Reducer::Ephemeral) {
            return Err(StepError::ConcurrentWrites {
                channel: self.name.clone(),
                nodes: nodes.iter().map(|node| (*node).clone()).collect(),
            });
        }
        let mut combined = self
            .combine(overwrite.as_ref().or(current), &rest)
            .map_err(|message| StepError::Reduce { channel: self.name.clone(), message })?;
        if matches!(self.reducer, Reducer::Sum | Reducer::Merge) {
            let valid = self.validate_within(&combined.value.value(), budget);
            valid.map_err(|misfit| self.refused(None, misfit))?;
        }
        if overwrite.is_some() {
            // The first items of the new value are those of the overwrite, and not those of the old
            // value.
            combined.unchanged_prefix = None;
        }
        Ok(combined)
    }

    /// Returns the value of [`Channel::reduce_writes`] for writes without writers.
    ///
    /// # Errors
    ///
    /// The errors of [`Channel::reduce_writes`].
    pub fn reduce(&self, current: Option<&Value>, writes: &[&Write]) -> Result<Value, StepError> {
        let current = current.map(|value| ChannelValue::from(value.clone()));
        let reduced = self.reduce_writes(current.as_ref(), writes, &[], &StepBudget::default());
        reduced.map(|combined| combined.value.value().into_owned())
    }

    /// Returns an error if more than one of the writes is an overwrite.
    pub(crate) fn check_single_overwrite(
        &self,
        writes: &[&Write],
        nodes: &[&NodeName],
    ) -> Result<(), StepError> {
        self.split_overwrite(writes, nodes).map(drop)
    }

    /// Returns the value of the overwrite, if there is one, and the other writes. The overwrite can
    /// be at any position among the writes.
    fn split_overwrite<'w>(
        &self,
        writes: &[&'w Write],
        nodes: &[&NodeName],
    ) -> Result<(Option<&'w Value>, Vec<&'w Value>), StepError> {
        let mut replaced: Option<&'w Value> = None;
        let mut rest = Vec::with_capacity(writes.len());
        for write in writes {
            if !write.overwrite {
                rest.push(&write.value);
            } else if replaced.replace(&write.value).is_some() {
                let written = writes.iter().zip(nodes).filter(|(write, _)| write.overwrite);
                return Err(StepError::DoubleOverwrite {
                    channel: self.name.clone(),
                    nodes: written.map(|(_, node)| (*node).clone()).collect(),
                });
            }
        }
        Ok((replaced, rest))
    }

    /// Combines writes with the value of the channel, or with the value of an overwrite.
    fn combine(&self, start: Option<&ChannelValue>, writes: &[&Value]) -> Result<Reduced, String> {
        let whole = |reduce: fn(Option<&Value>, &[&Value]) -> Result<Value, String>| {
            let start = start.map(ChannelValue::value);
            reduce(start.as_deref(), writes).map(ChannelValue::from)
        };
        let value = match &self.reducer {
            Reducer::Append => return append::reduce(start, writes),
            Reducer::Messages => return messages::reduce(start, writes),
            Reducer::Merge => whole(merge::reduce)?,
            Reducer::Sum => whole(numeric::sum)?,
            Reducer::Min => whole(numeric::min)?,
            Reducer::Max => whole(numeric::max)?,
            Reducer::Plugin { plugin, reducer } if !writes.is_empty() => {
                return Err(format!("reducer `{reducer}` of plugin `{plugin}` returned no result"));
            }
            Reducer::Last | Reducer::Any | Reducer::Ephemeral | Reducer::Plugin { .. } => {
                last_value::reduce(start, writes)
            }
        };
        Ok(value.into())
    }

    /// Returns the error for a value that does not fit the channel.
    pub(crate) fn refused(&self, node: Option<&NodeName>, misfit: Misfit) -> StepError {
        let channel = self.name.clone();
        match misfit {
            Misfit::Invalid(message) => {
                StepError::InvalidValue { node: node.cloned(), channel, message }
            }
            Misfit::Limit(exceeded) => {
                let of_node = node.map(|node| format!(" of node `{node}`")).unwrap_or_default();
                let subject = format!("the schema of channel `{channel}`, for the value{of_node}");
                StepError::Limit(exceeded.of(&subject))
            }
        }
    }
}

/// Returns the list to which a reducer adds items: an empty list if there is no value, and `None`
/// if the value is not a list.
fn list_of(current: Option<&ChannelValue>) -> Option<SharedList> {
    match current.map(ChannelValue::content) {
        Some(Content::List(list)) => Some(list.clone()),
        None | Some(Content::Other(Value::Null)) => Some(SharedList::default()),
        Some(Content::Other(_)) => None,
    }
}

#[cfg(test)]
mod tests;
