//! State channels and their reducers.
//!
//! A channel has at most one value. The writes of a superstep meet it all at once, in the order of
//! their tasks; what comes out is decided by the reducer, one file each below `channel/`. A write
//! that says `overwrite` passes the reducer by and replaces the value.

mod append;
mod last;
mod merge;
mod messages;
mod number;

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{BuiltIn, ChannelDef, ReducerDef, is_any_schema};
use crate::error::StepError;
use crate::event::Write;
use crate::id::{ChannelName, NodeName, PluginName};
use crate::schema::{Misfit, Schema, SchemaError};

/// How writes combine with the value of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// The value is replaced. Two writes in one superstep are an error.
    Last,
    /// The value is a list: an array is appended item by item, anything else as one item.
    Append,
    /// The value is replaced; of several writes in one superstep the last in task order holds.
    Any,
    /// The value is an object: keys are replaced one by one, not deeply. A `null` is a value like
    /// any other and removes nothing.
    Merge,
    /// The sum of the old value and all writes.
    Sum,
    /// The smallest of the old value and all writes.
    Min,
    /// The largest of the old value and all writes.
    Max,
    /// A conversation. A message replaces the one with the same `id` or else is appended; one
    /// with `"role": "remove"` takes the message with its `id` away, or every message before it
    /// if the id is `__remove_all__`. A message without an id gets one that depends on its
    /// content and place alone.
    Messages,
    /// The value is there for one superstep, then gone. Two writes in one superstep are an error.
    Ephemeral,
    /// What a plugin makes of it. The engine calls the plugin; see
    /// [`crate::step::plugin_reductions`].
    Plugin {
        /// The plugin.
        plugin: PluginName,
        /// Its reducer.
        reducer: String,
    },
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

impl From<BuiltIn> for Reducer {
    fn from(built_in: BuiltIn) -> Self {
        match built_in {
            BuiltIn::Last => Self::Last,
            BuiltIn::Append => Self::Append,
            BuiltIn::Any => Self::Any,
            BuiltIn::Merge => Self::Merge,
            BuiltIn::Sum => Self::Sum,
            BuiltIn::Min => Self::Min,
            BuiltIn::Max => Self::Max,
            BuiltIn::Messages => Self::Messages,
            BuiltIn::Ephemeral => Self::Ephemeral,
        }
    }
}

/// What a reducer made of the writes to a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    /// The new value.
    pub value: Value,
    /// How many items at its beginning are those of the old value, for a list that grew out of one
    /// and a reducer that knows.
    pub kept: Option<usize>,
}

impl From<Value> for Combined {
    fn from(value: Value) -> Self {
        Self { value, kept: None }
    }
}

/// One named part of the state.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: ChannelName,
    /// How writes combine with its value.
    pub reducer: Reducer,
    /// Value of a new thread.
    pub default: Option<Value>,
    /// `None` if anything is accepted, so that most writes cost nothing.
    schema: Option<Arc<Schema>>,
}

impl Channel {
    /// Compiles a channel.
    ///
    /// # Errors
    ///
    /// What is wrong with the schema.
    pub fn new(name: ChannelName, def: &ChannelDef) -> Result<Self, SchemaError> {
        let bounded = !is_any_schema(&def.schema);
        let schema = bounded.then(|| Schema::compile(&def.schema).map(Arc::new)).transpose()?;
        let reducer = Reducer::from(&def.reducer);
        Ok(Self { name, reducer, default: def.default.clone(), schema })
    }

    /// Whether a value may stand in the channel.
    ///
    /// # Errors
    ///
    /// What does not fit the schema, and where in the value.
    pub fn validate(&self, value: &Value) -> Result<(), Misfit> {
        self.schema.as_ref().map_or(Ok(()), |schema| schema.validate(value))
    }

    /// Whether a single write fits the channel, as far as that can be said without the others.
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub fn check_write(&self, write: &Write) -> Result<(), Misfit> {
        if write.overwrite {
            return self.validate(&write.value);
        }
        match &self.reducer {
            Reducer::Last | Reducer::Any | Reducer::Ephemeral => self.validate(&write.value),
            Reducer::Sum | Reducer::Min | Reducer::Max => {
                number::parse(&write.value).map_err(Misfit::Invalid)?;
                self.validate(&write.value)
            }
            Reducer::Append if self.schema.is_none() || write.value.is_array() => {
                self.validate(&write.value)
            }
            Reducer::Append => self.validate(&Value::Array(vec![write.value.clone()])),
            Reducer::Merge => merge::check(&write.value).map_err(Misfit::Invalid),
            Reducer::Messages => messages::check(&write.value).map_err(Misfit::Invalid),
            Reducer::Plugin { .. } => Ok(()),
        }
    }

    /// Combines the writes of one superstep, in task order, with the current value.
    ///
    /// `nodes` names the writers, in the same order; it may be shorter for writes of an input.
    ///
    /// # Errors
    ///
    /// [`StepError::ConcurrentWrites`] and [`StepError::DoubleOverwrite`] if the writes exclude
    /// each other, [`StepError::Reduce`] if they cannot be combined, [`StepError::InvalidValue`] if
    /// the result does not fit the schema.
    pub fn reduce_by(
        &self,
        current: Option<&Value>,
        writes: &[&Write],
        nodes: &[&NodeName],
    ) -> Result<Combined, StepError> {
        let (start, rest) = self.start(current, writes, nodes)?;
        if rest.len() > 1 && matches!(self.reducer, Reducer::Last | Reducer::Ephemeral) {
            return Err(StepError::ConcurrentWrites {
                channel: self.name.clone(),
                nodes: nodes.iter().map(|node| (*node).clone()).collect(),
            });
        }
        let mut combined = self
            .combine(start, &rest)
            .map_err(|message| StepError::Reduce { channel: self.name.clone(), message })?;
        if matches!(self.reducer, Reducer::Sum | Reducer::Merge) {
            self.validate(&combined.value).map_err(|misfit| self.refused(None, misfit))?;
        }
        if rest.len() < writes.len() {
            // What it grew out of is the overwrite, not the old value.
            combined.kept = None;
        }
        Ok(combined)
    }

    /// The value that [`Channel::reduce_by`] makes, without names of writers.
    ///
    /// # Errors
    ///
    /// As [`Channel::reduce_by`].
    pub fn reduce(&self, current: Option<&Value>, writes: &[&Write]) -> Result<Value, StepError> {
        self.reduce_by(current, writes, &[]).map(|combined| combined.value)
    }

    /// Whether at most one of the writes replaces the value.
    pub(crate) fn check_overwrites(
        &self,
        writes: &[&Write],
        nodes: &[&NodeName],
    ) -> Result<(), StepError> {
        self.start(None, writes, nodes).map(drop)
    }

    /// The value to start from and the writes to combine with it: an overwrite replaces the
    /// value, wherever it stands among the writes.
    fn start<'v, 'w>(
        &self,
        current: Option<&'v Value>,
        writes: &[&'w Write],
        nodes: &[&NodeName],
    ) -> Result<(Option<&'v Value>, Vec<&'w Value>), StepError>
    where
        'w: 'v,
    {
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
        Ok((replaced.or(current), rest))
    }

    fn combine(&self, start: Option<&Value>, writes: &[&Value]) -> Result<Combined, String> {
        let value = match &self.reducer {
            Reducer::Append => return append::reduce(start, writes),
            Reducer::Messages => return messages::reduce(start, writes),
            Reducer::Merge => merge::reduce(start, writes)?,
            Reducer::Sum => number::sum(start, writes)?,
            Reducer::Min => number::min(start, writes)?,
            Reducer::Max => number::max(start, writes)?,
            Reducer::Plugin { plugin, reducer } if !writes.is_empty() => {
                return Err(format!("reducer `{reducer}` of plugin `{plugin}` gave no result"));
            }
            Reducer::Last | Reducer::Any | Reducer::Ephemeral | Reducer::Plugin { .. } => {
                last::reduce(start, writes)
            }
        };
        Ok(value.into())
    }

    /// Why a superstep with a value that does not fit cannot be applied.
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

#[cfg(test)]
mod tests;
