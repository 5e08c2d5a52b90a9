//! What tools see of the state.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_plugin::node::Update;

/// Channels with their values, as tools see them with every call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Shown(Map<String, Value>);

impl Shown {
    /// Some channels of a state. A channel without a value is shown as null: a node cannot tell it
    /// from one that the graph does not have.
    pub(crate) fn of(channels: &BTreeSet<String>, state: &Value) -> Self {
        let value = |name: &String| state.get(name).cloned().unwrap_or_default();
        Self(channels.iter().map(|name| (name.clone(), value(name))).collect())
    }

    /// Hides all channels but these.
    pub(crate) fn only(mut self, channels: &BTreeSet<String>) -> Self {
        self.0.retain(|name, _| channels.contains(name));
        self
    }

    /// Shows what a tool wrote, as far as that can be known without the channel's reducer: an
    /// overwrite is the value, whatever the reducer.
    pub(crate) fn apply<'u>(&mut self, updates: impl IntoIterator<Item = &'u Update>) {
        for update in updates.into_iter().filter(|update| update.overwrite) {
            if let Some(value) = self.0.get_mut(&update.channel) {
                *value = update.value.clone();
            }
        }
    }

    /// For a call.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_plugin::node::Update;

    use super::Shown;

    #[test]
    fn a_channel_without_a_value_is_null_and_an_overwrite_is_seen() {
        let channels = ["a", "b"].map(str::to_owned).into();
        let mut shown = Shown::of(&channels, &json!({"a": 1, "c": 3}));
        assert_eq!(shown.to_value(), json!({"a": 1, "b": null}));
        let write = |channel: &str, overwrite| Update {
            channel: channel.to_owned(),
            value: json!("new"),
            overwrite,
        };
        shown.apply(&[write("a", false), write("b", true), write("c", true)]);
        assert_eq!(shown.to_value(), json!({"a": 1, "b": "new"}));
        assert_eq!(shown.only(&["b".to_owned()].into()).to_value(), json!({"b": "new"}));
    }
}
