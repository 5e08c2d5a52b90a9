//! The input of a task.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::checkpoint::{ChannelValue, Values};
use crate::id::ChannelName;
use crate::json_text;

/// The input of a task. The input shares its values with the state or the send, so a task that has
/// not started yet holds no copy of them.
///
/// The serialized form is that of the value that [`Self::to_value`] returns.
#[derive(Clone, Debug)]
pub enum TaskInput {
    /// The part of the state that the node reads: an object. Channels without a value are left out.
    State {
        /// Values of the checkpoint that the task starts from.
        values: Values,
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

    /// Returns the value of a channel in the input; `None` if the input has none. The value of a
    /// send is copied.
    pub fn channel(&self, name: &ChannelName) -> Option<ChannelValue> {
        match self {
            Self::State { values, reads } => {
                let is_read = reads.as_ref().is_none_or(|reads| reads.contains(name));
                values.get(name).filter(|_| is_read).cloned()
            }
            Self::Sent(sent) => sent.get(name.as_str()).cloned().map(ChannelValue::from),
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

/// An input without the first items of one list.
///
/// Its text is that of the [`TaskInput`], except for this list.
#[derive(Clone, Copy, Debug)]
pub struct CutInput<'i> {
    input: &'i TaskInput,
    /// Name of the field with the list, and the number of items that are left out.
    cut: Option<(&'i str, usize)>,
}

impl<'i> CutInput<'i> {
    /// Creates the input in which the list in a field begins at a position. A field that is not a
    /// list stays whole.
    pub fn new(input: &'i TaskInput, cut: Option<(&'i str, usize)>) -> Self {
        Self { input, cut }
    }

    /// Returns the number of items that are left out of a field.
    fn omitted(&self, name: &str) -> Option<usize> {
        self.cut.filter(|(field, _)| *field == name).map(|(_, omitted)| omitted)
    }

    /// Returns the input as JSON text. The values are written in place, without a copy.
    ///
    /// # Errors
    ///
    /// Errors of the serializer.
    pub fn text(&self) -> serde_json::Result<String> {
        let mut text = Vec::new();
        match self.input {
            TaskInput::State { values, reads } => {
                let fields = fields(values, reads.as_deref());
                json_text::append_object(&mut text, fields, |text, name, value| {
                    match (self.omitted(name), value.list()) {
                        (Some(omitted), Some(list)) => {
                            json_text::append_list(text, list.range(omitted, list.len()))
                        }
                        _ => value.append_text(text),
                    }
                })?;
            }
            TaskInput::Sent(sent) => match &**sent {
                Value::Object(fields) => {
                    let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
                    json_text::append_object(&mut text, fields, |text, name, value| {
                        match (self.omitted(name), value.as_array()) {
                            (Some(omitted), Some(items)) => {
                                json_text::append_list(text, items.iter().skip(omitted))
                            }
                            _ => json_text::append(text, value),
                        }
                    })?;
                }
                other => json_text::append(&mut text, other)?,
            },
        }
        Ok(String::from_utf8(text).expect("JSON text is UTF-8"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    /// Returns an input of the state and one of a send with the same fields. The state has another
    /// list, which the node does not read.
    fn inputs() -> [TaskInput; 2] {
        let list: Vec<u32> = (0..130).collect();
        let values = [("a", json!(list)), ("b", json!(list)), ("c", json!(1)), ("d", json!(list))];
        let values = values.map(|(channel, value)| (name(channel), ChannelValue::from(value)));
        let reads = ["a", "b", "c"].map(name).into();
        let sent = json!({ "a": list, "b": list, "c": 1 });
        [
            TaskInput::State { values: values.into(), reads: Some(Arc::new(reads)) },
            TaskInput::Sent(Arc::new(sent)),
        ]
    }

    #[test]
    fn a_cut_input_lacks_the_first_items_of_one_list() {
        for input in inputs() {
            for (field, omitted) in [("a", 0), ("a", 1), ("b", 64), ("b", 129), ("a", 130)] {
                let mut expected = input.to_value();
                expected[field].as_array_mut().unwrap().drain(..omitted);
                let text = CutInput::new(&input, Some((field, omitted))).text();
                assert_eq!(text.unwrap(), expected.to_string(), "{field} from {omitted}");
            }
        }
    }

    #[test]
    fn an_input_without_the_list_is_not_cut() {
        let other = TaskInput::Sent(Arc::new(json!([[1, 2], "a"])));
        for input in inputs().iter().chain([&other]) {
            for cut in [None, Some(("c", 1)), Some(("d", 1)), Some(("missing", 1))] {
                let text = CutInput::new(input, cut).text().unwrap();
                assert_eq!(text, input.to_value().to_string(), "{cut:?}");
            }
        }
    }

    #[test]
    fn channels_of_an_input_are_those_that_the_node_reads() {
        for input in inputs() {
            let value = input.channel(&name("a")).unwrap();
            assert_eq!(value.list().unwrap().len(), 130);
            assert_eq!(input.channel(&name("c")).unwrap(), json!(1));
            assert!(input.channel(&name("d")).is_none());
        }
    }
}
