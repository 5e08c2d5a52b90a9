//! Configuration of the nodes under `with` in the graph file.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use wattle_plugin::node::{ChannelRef, Reads};

use crate::rules::{Approve, OrderRule, Rules};

/// Default of `max_turns`.
const DEFAULT_MAX_TURNS: usize = 10;

/// The channel with the conversation.
const MESSAGES: ChannelRef = ChannelRef::config_or("messages", "messages");

/// The channels that tools see.
const STATE: ChannelRef = ChannelRef::config("state");

/// The channels that both nodes read. Tools that see the conversation see all of it, because both
/// keys then name its channel.
pub(crate) const READS: Reads = Reads::channels(&[MESSAGES, STATE]).with_conversation(MESSAGES);

/// Configuration of the node `agent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// Model route, which must be granted to the plugin.
    pub(crate) route: String,
    /// System message, the same in every request.
    #[serde(default)]
    pub(crate) system: Option<String>,
    /// Tools that are offered to the model. Default: all granted tools.
    #[serde(default)]
    tools: Option<BTreeSet<String>>,
    /// Sampling temperature, 0 for the likeliest completion. Default: that of the route.
    #[serde(default)]
    pub(crate) temperature: Option<f64>,
    /// Maximum number of output tokens of one completion. Default: that of the route.
    #[serde(default)]
    pub(crate) max_output_tokens: Option<u32>,
    /// Maximum number of model turns after the last user message. Default: 10.
    #[serde(default = "default_max_turns")]
    #[schemars(range(min = 1))]
    pub(crate) max_turns: usize,
    /// Behavior after `max_turns` turns. Default: `fail`.
    #[serde(default)]
    pub(crate) at_limit: AtLimit,
    /// Node that calls tools. Default: `tools`.
    #[serde(default = "default_tool_node")]
    pub(crate) tool_node: String,
    /// Channel with the conversation. Default: `messages`.
    #[serde(default = "default_messages")]
    pub(crate) messages: String,
    /// Tools that may be called only after other tools have succeeded.
    #[serde(default)]
    order: Vec<OrderRule>,
    /// Calls that a person must approve.
    #[serde(default)]
    approve: Option<Approve>,
    /// Whether the calls of one turn run in parallel, each as a task of its own. Default: true.
    #[serde(default = "yes")]
    parallel: bool,
    /// Channels that tools may write. Default: none.
    #[serde(default)]
    updates: Option<BTreeSet<String>>,
    /// Channels that tools see with every call. Default: none.
    #[serde(default)]
    pub(crate) state: Option<BTreeSet<String>>,
    /// Requests the last completion again as structured output.
    #[serde(default)]
    pub(crate) answer: Option<AnswerConfig>,
}

/// Configuration of the node `tools`, which applies in addition to that of the agent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsConfig {
    /// Channel with the conversation. Default: `messages`.
    #[serde(default = "default_messages")]
    pub(crate) messages: String,
    /// Tools that may be called. Default: all granted tools.
    #[serde(default)]
    tools: Option<BTreeSet<String>>,
    /// Tools that may be called only after other tools have succeeded.
    #[serde(default)]
    order: Vec<OrderRule>,
    /// Calls that a person must approve.
    #[serde(default)]
    approve: Option<Approve>,
    /// Whether several calls run in parallel. Default: true.
    #[serde(default = "yes")]
    parallel: bool,
    /// Channels that tools may write. Default: none.
    #[serde(default)]
    updates: Option<BTreeSet<String>>,
    /// Channels that tools see with every call. Default: those of the agent.
    #[serde(default)]
    pub(crate) state: Option<BTreeSet<String>>,
}

/// Behavior after the last permitted turn of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtLimit {
    /// The run fails.
    #[default]
    Fail,
    /// The graph continues as after a completion without tool calls.
    End,
}

impl AgentConfig {
    /// Returns the tool policy for calls that the model requests.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            tools: self.tools.clone().into_iter().collect(),
            order: self.order.clone(),
            approve: self.approve.clone().into_iter().collect(),
            parallel: self.parallel,
            updates: self.updates.clone(),
        }
    }
}

impl ToolsConfig {
    /// Returns the tool policy for calls of an agent or of another node.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            tools: self.tools.clone().into_iter().collect(),
            order: self.order.clone(),
            approve: self.approve.clone().into_iter().collect(),
            parallel: self.parallel,
            updates: self.updates.clone(),
        }
    }
}

/// The last completion as structured output.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerConfig {
    /// Name of the structured output for the model: 1 to 64 characters of `[a-zA-Z0-9_-]`.
    pub(crate) name: String,
    /// JSON Schema of the structured output. Its root must be an object.
    pub(crate) schema: Value,
    /// Channel to which the structured output is written.
    pub(crate) channel: String,
}

fn default_max_turns() -> usize {
    DEFAULT_MAX_TURNS
}

fn default_tool_node() -> String {
    "tools".to_owned()
}

fn default_messages() -> String {
    "messages".to_owned()
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_plugin::Failure;

    use super::{AgentConfig, AtLimit};
    use crate::testing::tool;

    fn agent(config: Value) -> Result<AgentConfig, Failure> {
        Ok(serde_json::from_value(config)?)
    }

    #[test]
    fn missing_settings_have_defaults() {
        let config = agent(json!({"route": "chat"})).unwrap();
        assert_eq!((config.max_turns, &*config.tool_node), (10, "tools"));
        assert_eq!((config.at_limit, config.state.is_none()), (AtLimit::Fail, true));
        let (rules, any) = (config.rules(), tool("any", "t/any"));
        assert!(rules.allow(&any) && rules.parallel && rules.approval(&any).is_none());
        assert!(agent(json!({})).is_err());
        assert!(agent(json!({"route": "chat", "colour": 1})).is_err());
        assert!(agent(json!({"route": "chat", "at_limit": "stop"})).is_err());
    }
}
