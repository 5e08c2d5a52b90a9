//! The state that tools see.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_plugin::node::Update;

/// The channels that tools see with every call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Shown(Map<String, Value>);

impl Shown {
    /// Selects channels of a state. A channel without a value becomes null, because a node cannot
    /// distinguish it from a channel that does not exist in the graph.
    pub(crate) fn of(channels: &BTreeSet<String>, state: &Value) -> Self {
        let value = |name: &String| state.get(name).cloned().unwrap_or_default();
        Self(channels.iter().map(|name| (name.clone(), value(name))).collect())
    }

    /// Keeps only the given channels.
    pub(crate) fn only(mut self, channels: &BTreeSet<String>) -> Self {
        self.0.retain(|name, _| channels.contains(name));
        self
    }

    /// Applies the overwrites of a tool. Ignores other writes, because they need the reducer of the
    /// channel.
    pub(crate) fn apply<'u>(&mut self, updates: impl IntoIterator<Item = &'u Update>) {
        for update in updates.into_iter().filter(|update| update.overwrite) {
            if let Some(value) = self.0.get_mut(&update.channel) {
                *value = update.value.clone();
            }
        }
    }

    /// Returns the channels as an object.
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
    fn missing_values_are_null_and_overwrites_apply() {
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
