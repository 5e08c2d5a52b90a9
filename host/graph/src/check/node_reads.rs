//! The channels that a plugin declares a node reads, apart from the schema of the input.
//!
//! The `properties` of a schema are fixed when the plugin is built. A reference can also name
//! channels that the configuration of the node selects.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graph::NodeConversation;
use crate::id::ChannelName;

/// The channels that a node reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeReads {
    /// The channels that the node reads; `None` for those that the input schema names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<ChannelRef>>,
    /// The channel with the conversation of the node; one that the node reads. The node reads only
    /// the current turn of it, unless several of `channels` name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ChannelRef>,
}

impl NodeReads {
    /// Returns the conversation of a node with this configuration; `None` if the node declares no
    /// conversation, or if its configuration does not name exactly one channel.
    ///
    /// The configuration can name the channel once more, for another purpose than to continue the
    /// conversation. The node then reads the whole list.
    pub fn conversation_for(&self, config: Option<&Value>) -> Option<NodeConversation> {
        let mut channels = self.conversation.as_ref()?.channels(config).into_iter();
        let channel = channels.next()?;
        if channels.next().is_some() {
            return None;
        }
        let references = self.channels.as_deref().unwrap_or_default().iter();
        let named = references.filter(|it| it.channels(config).contains(&channel)).count();
        Some(NodeConversation { channel, is_whole: named > 1 })
    }
}

/// A reference to channels of the graph that runs a node: `{"channel": NAME}`, or
/// `{"config": KEY, "default": NAME}` with an optional default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "ChannelRefRepr")]
pub enum ChannelRef {
    /// A channel with a fixed name.
    Channel {
        /// Name of the channel.
        channel: ChannelName,
    },
    /// The channels that the configuration of the node names.
    Config {
        /// Key of the configuration. Its value is a name or a list of names.
        config: String,
        /// The channel for a configuration without the key; `None` for no channel.
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<ChannelName>,
    },
}

impl ChannelRef {
    /// Returns the channels for a node with this configuration. A text that is not the name of a
    /// channel names no channel.
    pub(super) fn channels(&self, config: Option<&Value>) -> Vec<ChannelName> {
        match self {
            Self::Channel { channel } => vec![channel.clone()],
            Self::Config { default, .. } => match self.configured(config) {
                None => default.iter().cloned().collect(),
                Some(Value::Array(names)) => names.iter().filter_map(channel_name).collect(),
                Some(name) => channel_name(name).into_iter().collect(),
            },
        }
    }

    /// Returns the value that the configuration has under the key of the reference. `null` counts
    /// as a missing key, as it does for an optional field of a configuration.
    pub(super) fn configured<'c>(&self, config: Option<&'c Value>) -> Option<&'c Value> {
        match self {
            Self::Channel { .. } => None,
            Self::Config { config: key, .. } => {
                config?.get(key.as_str()).filter(|value| !value.is_null())
            }
        }
    }
}

fn channel_name(value: &Value) -> Option<ChannelName> {
    ChannelName::new(value.as_str()?).ok()
}

/// The form of a [`ChannelRef`] in JSON. Errors of an untagged enum do not name the key that is
/// wrong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `channel` or `config`")]
struct ChannelRefRepr {
    channel: Option<ChannelName>,
    config: Option<String>,
    default: Option<ChannelName>,
}

impl TryFrom<ChannelRefRepr> for ChannelRef {
    type Error = &'static str;

    fn try_from(repr: ChannelRefRepr) -> Result<Self, Self::Error> {
        match repr {
            ChannelRefRepr { channel: Some(channel), config: None, default: None } => {
                Ok(Self::Channel { channel })
            }
            ChannelRefRepr { channel: None, config: Some(config), default } => {
                Ok(Self::Config { config, default })
            }
            _ => {
                Err("a channel is `{\"channel\": NAME}` or `{\"config\": KEY, \"default\": NAME}`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_keep_their_json_form() {
        for text in [
            r#"{"channel":"messages"}"#,
            r#"{"config":"messages"}"#,
            r#"{"config":"messages","default":"messages"}"#,
        ] {
            let reference: ChannelRef = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&reference).unwrap(), text);
        }
    }

    #[test]
    fn errors_name_what_is_wrong_with_a_reference() {
        for (reference, part) in [
            (json!({}), "a channel is"),
            (json!({ "default": "a" }), "a channel is"),
            (json!({ "channel": "a", "default": "a" }), "a channel is"),
            (json!({ "channel": "a", "config": "a" }), "a channel is"),
            (json!({ "channel": "a b" }), "channel name"),
            (json!({ "channels": "a" }), "unknown field `channels`"),
        ] {
            let error = serde_json::from_value::<ChannelRef>(reference).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn a_configuration_names_one_channel_or_several() {
        let reference = json!({ "config": "state", "default": "all" });
        let reference: ChannelRef = serde_json::from_value(reference).unwrap();
        for (config, names) in [
            (json!({}), vec!["all"]),
            (json!({ "state": null }), vec!["all"]),
            (json!({ "state": "a" }), vec!["a"]),
            (json!({ "state": ["b", 1, "c d", "a"] }), vec!["b", "a"]),
            (json!({ "state": [] }), vec![]),
            (json!({ "state": 1 }), vec![]),
        ] {
            let channels = reference.channels(Some(&config));
            let channels: Vec<&str> = channels.iter().map(ChannelName::as_str).collect();
            assert_eq!(channels, names, "{config}");
        }
        assert_eq!(reference.channels(None).len(), 1);
    }
}
