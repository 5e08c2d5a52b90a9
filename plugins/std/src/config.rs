//! What a graph file says of the nodes under `with`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Assistant messages after the last user message before an agent is stopped.
const DEFAULT_MAX_TURNS: usize = 10;

/// Configuration of the node `agent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// The model route, one of those that the plugin is granted.
    pub(crate) route: String,
    /// What the model is told first, always the same text.
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
    updates: BTreeSet<String>,
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
    updates: BTreeSet<String>,
}

impl AgentConfig {
    /// What holds for the calls that the model asks for.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            tools: self.tools.clone(),
            order: self.order.clone(),
            approve: self.approve.clone().into_iter().collect(),
            parallel: self.parallel,
            updates: self.updates.clone(),
        }
    }
}

impl ToolsConfig {
    /// What holds for calls, whoever asks for them.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            tools: self.tools.clone(),
            order: self.order.clone(),
            approve: self.approve.clone().into_iter().collect(),
            parallel: self.parallel,
            updates: self.updates.clone(),
        }
    }
}

/// What holds for the calls of tools; travels from the agent to the task that makes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) order: Vec<OrderRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approve: Vec<Approve>,
    pub(crate) parallel: bool,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) updates: BTreeSet<String>,
}

impl Rules {
    /// Both: what one of them forbids is forbidden.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.tools = match (self.tools, other.tools) {
            (Some(some), Some(others)) => Some(some.intersection(&others).cloned().collect()),
            (one, other) => one.or(other),
        };
        self.order.extend(other.order);
        self.approve.extend(other.approve);
        self.parallel &= other.parallel;
        self.updates.extend(other.updates);
        self
    }

    /// Whether a tool may be called at all.
    pub(crate) fn allow(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    /// Why a tool may not be called yet; `None` if it may.
    pub(crate) fn too_early(&self, tool: &str, answered: &BTreeSet<String>) -> Option<String> {
        let mut rules = self.order.iter().filter(|rule| rule.tool == tool);
        rules.find_map(|rule| {
            let missing: Vec<&String> =
                rule.after.iter().filter(|before| !answered.contains(*before)).collect();
            (!missing.is_empty()).then(|| rule.refusal(&missing))
        })
    }

    /// What a person may decide about a call; `None` if nobody is asked.
    pub(crate) fn approval(&self, tool: &str) -> Option<&Approve> {
        self.approve.iter().find(|approve| approve.tools.contain(tool))
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
    /// What the model is told if it is too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl OrderRule {
    fn refusal(&self, missing: &[&String]) -> String {
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
    fn contain(&self, tool: &str) -> bool {
        match self {
            Self::All(Star::Star) => true,
            Self::Some(tools) => tools.contains(tool),
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
    /// The tool is not called, and the model is told so.
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
    use std::collections::BTreeSet;

    use serde_json::{Value, json};
    use wattle_plugin::Failure;

    use super::{AgentConfig, Decision, ToolsConfig};

    fn agent(config: Value) -> Result<AgentConfig, Failure> {
        Ok(serde_json::from_value(config)?)
    }

    fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(str::to_owned).into()
    }

    #[test]
    fn defaults_hold_where_nothing_is_said() {
        let config = agent(json!({"route": "chat"})).unwrap();
        assert_eq!((config.max_turns, &*config.tool_node), (10, "tools"));
        let rules = config.rules();
        assert!(rules.allow("any") && rules.parallel && rules.approval("any").is_none());
        assert!(agent(json!({})).is_err());
        assert!(agent(json!({"route": "chat", "colour": 1})).is_err());
    }

    #[test]
    fn order_rules_name_what_is_missing() {
        let rules = agent(json!({"route": "chat", "order": [
            {"tool": "save", "after": ["parse", "check"]},
            {"tool": "send", "after": ["save"], "message": "save first"},
        ]}));
        let rules = rules.unwrap().rules();
        let early = rules.too_early("save", &set(["check"])).unwrap();
        assert_eq!(early, "call `parse` first, wait for the answer, then call `save`");
        assert_eq!(rules.too_early("save", &set(["check", "parse"])), None);
        assert_eq!(rules.too_early("send", &set([])).as_deref(), Some("save first"));
        assert_eq!(rules.too_early("other", &set([])), None);
    }

    #[test]
    fn rules_of_both_nodes_hold() {
        let one = agent(json!({"route": "chat", "tools": ["a", "b"],
            "approve": {"tools": ["b"], "allowed": ["approve", "reject"]}}));
        let other: ToolsConfig =
            serde_json::from_value(json!({"tools": ["b", "c"], "approve": {"tools": "*"},
                "parallel": false, "updates": ["total"]}))
            .unwrap();
        let rules = one.unwrap().rules().and(other.rules());
        assert_eq!(rules.tools, Some(set(["b"])));
        assert_eq!(rules.approval("b").map(|it| it.allowed.len()), Some(2));
        assert!(rules.approval("c").is_some_and(|it| it.allowed.contains(&Decision::Edit)));
        assert!(!rules.parallel && rules.updates.contains("total"));
    }
}
