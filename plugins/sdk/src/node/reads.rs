//! The channels that a node reads, apart from the type of its input.

use serde::Serialize;
use serde_json::{Value, json};

/// The channels that a node reads, for `#[node(reads = ...)]`.
///
/// Without it, a node reads the channels that are fields of its input type, or the whole state if
/// the input is a [`Value`]. A node whose configuration names its channels declares them with a
/// [`ChannelRef`] for each key. It gets no other channels, however large they are.
///
/// A node with a conversation reads only the current turn of it, see
/// [`Context::conversation`](crate::Context::conversation).
///
/// ```
/// use wattle_plugin::prelude::*;
///
/// const MESSAGES: ChannelRef = ChannelRef::config_or("messages", "messages");
/// const TITLE: ChannelRef = ChannelRef::channel("title");
/// const READS: Reads = Reads::channels(&[MESSAGES, TITLE]).with_conversation(MESSAGES);
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Config {
///     /// Channel with the conversation. Default: `messages`.
///     messages: Option<String>,
/// }
///
/// /// Counts the messages.
/// #[node(config = Config, reads = READS)]
/// fn count(context: &Context, _input: Value) -> Result<Value, Failure> {
///     Ok(json!({ "title": format!("{} messages", context.conversation()?.length) }))
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reads {
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<&'static [ChannelRef]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ChannelRef>,
}

impl Reads {
    /// Declares the channels, in place of those that the input type names. What is no channel of
    /// the graph is left out.
    pub const fn channels(channels: &'static [ChannelRef]) -> Self {
        Self { channels: Some(channels), conversation: None }
    }

    /// Declares a conversation in a channel that the input type names.
    pub const fn conversation(conversation: ChannelRef) -> Self {
        Self { channels: None, conversation: Some(conversation) }
    }

    /// Declares a conversation. Its channel must be one of the channels. If several of them name
    /// it, the node reads the whole conversation and not only the current turn.
    pub const fn with_conversation(mut self, conversation: ChannelRef) -> Self {
        self.conversation = Some(conversation);
        self
    }

    /// Returns the declaration in the format of the host.
    pub(crate) fn describe(self) -> Value {
        json!(self)
    }

    /// Returns the name of the channel with the conversation, for a node with this configuration.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn conversation_channel(self, config: Option<&Value>) -> Option<String> {
        self.conversation?.name(config)
    }
}

/// A reference to channels of the graph that runs a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChannelRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
}

impl ChannelRef {
    /// Refers to the channel with this name.
    pub const fn channel(name: &'static str) -> Self {
        Self { channel: Some(name), config: None, default: None }
    }

    /// Refers to the channels that the configuration of the node has under a key: a name or a list
    /// of names. Without the key, it refers to no channel.
    pub const fn config(key: &'static str) -> Self {
        Self { channel: None, config: Some(key), default: None }
    }

    /// Like [`config`](Self::config), with a channel for a configuration without the key.
    pub const fn config_or(key: &'static str, default: &'static str) -> Self {
        Self { channel: None, config: Some(key), default: Some(default) }
    }

    /// Returns the name of the channel; `None` if the configuration does not name exactly one.
    #[cfg(not(target_arch = "wasm32"))]
    fn name(self, config: Option<&Value>) -> Option<String> {
        let configured = self.config.and_then(|key| config?.get(key));
        match configured.filter(|value| !value.is_null()) {
            Some(name) => name.as_str().map(str::to_owned),
            None => self.channel.or(self.default).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ChannelRef, Reads};

    const MESSAGES: ChannelRef = ChannelRef::config_or("messages", "talk");
    const STATE: ChannelRef = ChannelRef::config("state");
    const TITLE: ChannelRef = ChannelRef::channel("title");

    #[test]
    fn declarations_have_the_format_of_the_host() {
        const READS: Reads = Reads::channels(&[MESSAGES, STATE, TITLE]);
        let messages = json!({"config": "messages", "default": "talk"});
        let channels = json!([messages, {"config": "state"}, {"channel": "title"}]);
        assert_eq!(READS.describe(), json!({"channels": channels}));
        let declared = READS.with_conversation(MESSAGES).describe();
        assert_eq!(declared, json!({"channels": channels, "conversation": messages}));
        let declared = Reads::conversation(TITLE).describe();
        assert_eq!(declared, json!({"conversation": {"channel": "title"}}));
    }

    #[test]
    fn the_configuration_names_the_conversation() {
        let reads = Reads::conversation(MESSAGES);
        for (config, name) in [
            (json!({}), Some("talk")),
            (json!({"messages": null}), Some("talk")),
            (json!({"messages": "other"}), Some("other")),
            (json!({"messages": 1}), None),
        ] {
            assert_eq!(reads.conversation_channel(Some(&config)).as_deref(), name, "{config}");
        }
        assert_eq!(reads.conversation_channel(None).as_deref(), Some("talk"));
        let fixed = Reads::conversation(TITLE);
        assert_eq!(fixed.conversation_channel(None).as_deref(), Some("title"));
        assert_eq!(Reads::conversation(STATE).conversation_channel(None), None);
    }
}
