//! What a graph file says of the nodes under `with`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::granted::Tool;
use crate::rules::Rules;

/// Assistant messages after the last user message before an agent is stopped.
const DEFAULT_MAX_TURNS: usize = 10;

/// Configuration of the node `agent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// The model route, one of those that the plugin is granted.
    pub(crate) route: String,
    /// The system message, always the same text.
    #[serde(default)]
    pub(crate) system: Option<String>,
    /// Tools on offer; all that the plugin is granted without it.
    #[serde(default)]
    tools: Option<BTreeSet<String>>,
    /// 0 for the likeliest answer; the route's default without it.
    #[serde(default)]
    pub(crate) temperature: Option<f64>,
    /// Most tokens of one answer; the route's default without it.
    #[serde(default)]
    pub(crate) max_output_tokens: Option<u32>,
    /// Model turns after the last user message; 10 without it.
    #[serde(default = "default_max_turns")]
    #[schemars(range(min = 1))]
    pub(crate) max_turns: usize,
    /// What happens when they are used up; `fail` without it.
    #[serde(default)]
    pub(crate) at_limit: AtLimit,
    /// The node that calls tools; `tools` without it.
    #[serde(default = "default_tool_node")]
    pub(crate) tool_node: String,
    /// The channel with the conversation; `messages` without it.
    #[serde(default = "default_messages")]
    pub(crate) messages: String,
    /// Which tools may be called only after others have answered.
    #[serde(default)]
    order: Vec<OrderRule>,
    /// Which calls a person must approve.
    #[serde(default)]
    approve: Option<Approve>,
    /// Whether the calls of one turn run at once, each as a task of its own; yes without it.
    #[serde(default = "yes")]
    parallel: bool,
    /// Channels that tools may write; none without it.
    #[serde(default)]
    updates: Option<BTreeSet<String>>,
    /// Channels that tools see with every call; none without it.
    #[serde(default)]
    pub(crate) state: Option<BTreeSet<String>>,
    /// The last answer as a document too.
    #[serde(default)]
    pub(crate) answer: Option<AnswerConfig>,
}

/// Configuration of the node `tools`. What the agent says of the same goes in addition.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsConfig {
    /// The channel with the conversation; `messages` without it.
    #[serde(default = "default_messages")]
    pub(crate) messages: String,
    /// Tools that may be called; all that the plugin is granted without it.
    #[serde(default)]
    tools: Option<BTreeSet<String>>,
    /// Which tools may be called only after others have answered.
    #[serde(default)]
    order: Vec<OrderRule>,
    /// Which calls a person must approve.
    #[serde(default)]
    approve: Option<Approve>,
    /// Whether several calls run at once; yes without it.
    #[serde(default = "yes")]
    parallel: bool,
    /// Channels that tools may write; none without it.
    #[serde(default)]
    updates: Option<BTreeSet<String>>,
    /// Channels that tools see with every call; without it those that the agent shows.
    #[serde(default)]
    pub(crate) state: Option<BTreeSet<String>>,
}

/// What happens when an agent has used up its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtLimit {
    /// The run fails.
    #[default]
    Fail,
    /// The graph goes on as after an answer.
    End,
}

impl AgentConfig {
    /// What holds for the calls that the model asks for.
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
    /// The rules for calls, of an agent or of another node.
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

/// A tool that may be called only after others have answered the same user message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRule {
    /// The tool.
    pub(crate) tool: String,
    /// The tools that must have answered before, without an error.
    pub(crate) after: Vec<String>,
    /// The answer to a call that is too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl OrderRule {
    /// The answer to a call before these tools have answered.
    pub(crate) fn refusal(&self, missing: &[&String]) -> String {
        self.message.clone().unwrap_or_else(|| {
            let missing: Vec<String> = missing.iter().map(|tool| format!("`{tool}`")).collect();
            let missing = missing.join(" and ");
            format!("call {missing} first, wait for the answer, then call `{}`", self.tool)
        })
    }
}

/// Which calls a person must approve, and what the person may decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    /// The tools; `"*"` for all.
    pub(crate) tools: Tools,
    /// What may be decided; everything without it.
    #[serde(default = "all_decisions")]
    #[schemars(length(min = 1))]
    pub(crate) allowed: BTreeSet<Decision>,
}

/// Some tools, or all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Tools {
    /// All.
    All(Star),
    /// These.
    Some(BTreeSet<String>),
}

impl Tools {
    /// Whether a tool may be meant.
    pub(crate) fn hold_for(&self, tool: &Tool) -> bool {
        match self {
            Self::All(Star::Star) => true,
            Self::Some(names) => names.iter().any(|name| tool.may_be(name)),
        }
    }
}

/// The word `*`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Star {
    /// `*`
    #[serde(rename = "*")]
    Star,
}

/// What a person decides about a call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// The tool is called.
    Approve,
    /// The tool is called with other arguments.
    Edit,
    /// The tool is not called; the rejection is its answer.
    Reject,
    /// The tool is not called; the person's words are its answer.
    Respond,
}

/// The last answer as a document.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerConfig {
    /// 1 to 64 of `[a-zA-Z0-9_-]`, for the model.
    pub(crate) name: String,
    /// JSON Schema of the document, an object.
    pub(crate) schema: Value,
    /// The channel that it is written to.
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

fn all_decisions() -> BTreeSet<Decision> {
    [Decision::Approve, Decision::Edit, Decision::Reject, Decision::Respond].into()
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
    fn defaults_hold_where_nothing_is_said() {
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
