//! The input of a task.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::checkpoint::{ChannelValue, Values};
use crate::id::ChannelName;

/// The input of a task. The input shares its values with the state or the send, so a task that has
/// not started yet holds no copy of them.
///
/// The serialized form is that of the value that [`Self::to_value`] returns.
#[derive(Clone, Debug)]
pub enum TaskInput {
    /// The part of the state that the node reads: an object. Channels without a value are left out.
    State {
        /// Values of the checkpoint that the task starts from.
        values: Arc<Values>,
        /// Channels that the node reads; `None` for the whole state.
        reads: Option<Arc<BTreeSet<ChannelName>>>,
    },
    /// The input of a send.
    Sent(Arc<Value>),
}

impl TaskInput {
    /// Returns a copy of the input as one value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::State { values, reads } => {
                let fields = fields(values, reads.as_deref());
                let field =
                    |(name, it): (&str, &ChannelValue)| (name.to_owned(), it.value().into_owned());
                Value::Object(fields.map(field).collect())
            }
            Self::Sent(sent) => Value::clone(sent),
        }
    }

    /// Returns a field of the input, or `null` if there is no such field. The result of a list is a
    /// copy of all of its items.
    pub fn get(&self, name: &str) -> Cow<'_, Value> {
        match self {
            Self::State { values, reads } => {
                let is_read = reads.as_ref().is_none_or(|reads| reads.contains(name));
                let value = values.get(name).filter(|_| is_read);
                value.map_or(Cow::Borrowed(&Value::Null), ChannelValue::value)
            }
            Self::Sent(sent) => Cow::Borrowed(&sent[name]),
        }
    }
}

impl Serialize for TaskInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::State { values, reads } => {
                serializer.collect_map(fields(values, reads.as_deref()))
            }
            Self::Sent(sent) => sent.serialize(serializer),
        }
    }
}

/// Returns the values of the channels that a node reads, in the order of their names.
fn fields<'v>(
    values: &'v Values,
    reads: Option<&'v BTreeSet<ChannelName>>,
) -> impl Iterator<Item = (&'v str, &'v ChannelValue)> {
    values
        .iter()
        .filter(move |(name, _)| reads.is_none_or(|reads| reads.contains(*name)))
        .map(|(name, value)| (name.as_str(), value))
}
