//! The tool policy and the settings that it consists of.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_plugin::Failure;

use crate::granted::{Granted, Tool};

/// The tool policy of calls. The agent sends it to the task that makes the calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// Sets of permitted tools. A tool is permitted if all sets contain it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<BTreeSet<String>>,
    /// Tools that may be called only after other tools have succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) order: Vec<OrderRule>,
    /// Calls that a person must approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approve: Vec<Approve>,
    /// True if several calls run in parallel.
    pub(crate) parallel: bool,
    /// Channels that tools may write; `None` if not configured, which permits none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updates: Option<BTreeSet<String>>,
}

impl Rules {
    /// Combines two policies. A call that either policy forbids is forbidden.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.tools.extend(other.tools);
        self.order.extend(other.order);
        self.approve.extend(other.approve);
        self.parallel &= other.parallel;
        self.updates = match (self.updates, other.updates) {
            (Some(some), Some(others)) => Some(some.intersection(&others).cloned().collect()),
            (one, other) => one.or(other),
        };
        self
    }

    /// Returns true if no tool may be called.
    pub(crate) fn allow_none(&self) -> bool {
        self.tools.iter().any(BTreeSet::is_empty)
    }

    /// Returns true if a tool may be called.
    pub(crate) fn allow(&self, tool: &Tool) -> bool {
        self.tools.iter().all(|tools| tools.iter().any(|name| tool.is(name)))
    }

    /// Returns true if tools may write a channel.
    pub(crate) fn open(&self, channel: &str) -> bool {
        self.updates.as_ref().is_some_and(|channels| channels.contains(channel))
    }

    /// Returns the message for a call that violates an order rule; `None` if the tool may be called
    /// now.
    pub(crate) fn too_early(
        &self,
        tool: &Tool,
        answered: &BTreeSet<String>,
        granted: &Granted,
    ) -> Option<String> {
        let has_answered = |before: &String| {
            let before = granted.find(before);
            before.is_some_and(|before| answered.iter().any(|name| before.is(name)))
        };
        self.order.iter().filter(|rule| tool.may_be(&rule.tool)).find_map(|rule| {
            let missing: Vec<&String> =
                rule.after.iter().filter(|before| !has_answered(before)).collect();
            (!missing.is_empty()).then(|| rule.refusal(&missing))
        })
    }

    /// Returns the decisions that a person may take about a call; `None` if the call needs no
    /// approval. A decision is allowed if every rule that applies to the tool allows it.
    pub(crate) fn approval(&self, tool: &Tool) -> Option<BTreeSet<Decision>> {
        let rules = self.approve.iter().filter(|rule| rule.tools.hold_for(tool));
        let allowed = rules.map(|rule| rule.allowed.clone());
        allowed.reduce(|some, others| some.intersection(&others).copied().collect())
    }

    /// Checks that every permitted tool is granted.
    ///
    /// # Errors
    ///
    /// See [`Granted::check_one`].
    pub(crate) fn check_offer(&self, granted: &Granted) -> Result<(), Failure> {
        self.tools.iter().flatten().try_for_each(|name| granted.check_one(name, "tools"))
    }

    /// Checks that every rule matches a tool. A rule with a misspelled name would restrict nothing.
    ///
    /// # Errors
    ///
    /// See [`Granted::check_any`] and [`Granted::check_one`].
    pub(crate) fn check(&self, granted: &Granted) -> Result<(), Failure> {
        for approve in &self.approve {
            if let Tools::Some(names) = &approve.tools {
                names.iter().try_for_each(|name| granted.check_any(name, "approve"))?;
            }
        }
        for rule in &self.order {
            granted.check_any(&rule.tool, "order")?;
            // The names in `after` are checked only if the rule's tool is available: without the
            // tool, the rule has no effect.
            if granted.tools.iter().any(|tool| tool.may_be(&rule.tool)) {
                rule.after.iter().try_for_each(|name| granted.check_one(name, "order"))?;
            }
        }
        Ok(())
    }
}

/// A tool that may be called only after other tools have succeeded for the same user message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRule {
    /// Name of the tool.
    pub(crate) tool: String,
    /// Tools that must have succeeded before.
    pub(crate) after: Vec<String>,
    /// Message for the model if the call is too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl OrderRule {
    /// Returns the message for a call before the `missing` tools have succeeded.
    pub(crate) fn refusal(&self, missing: &[&String]) -> String {
        self.message.clone().unwrap_or_else(|| {
            let missing: Vec<String> = missing.iter().map(|tool| format!("`{tool}`")).collect();
            let missing = missing.join(" and ");
            format!("call {missing} first, wait for the result, then call `{}`", self.tool)
        })
    }
}

/// Calls that a person must approve, and the decisions that are allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    /// Names of the tools, or `"*"` for all.
    pub(crate) tools: Tools,
    /// Allowed decisions. Default: all.
    #[serde(default = "all_decisions")]
    #[schemars(length(min = 1))]
    pub(crate) allowed: BTreeSet<Decision>,
}

/// A selection of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Tools {
    /// All tools.
    All(Star),
    /// The tools with these names.
    Some(BTreeSet<String>),
}

impl Tools {
    /// Returns true if the selection may include a tool.
    pub(crate) fn hold_for(&self, tool: &Tool) -> bool {
        match self {
            Self::All(Star::Star) => true,
            Self::Some(names) => names.iter().any(|name| tool.may_be(name)),
        }
    }
}

/// The string `*`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Star {
    /// `*`
    #[serde(rename = "*")]
    Star,
}

/// A decision of a person about a call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// The tool is called.
    Approve,
    /// The tool is called with other arguments.
    Edit,
    /// The tool is not called, and the model receives the rejection.
    Reject,
    /// The tool is not called, and the text of the person becomes its output.
    Respond,
}

fn all_decisions() -> BTreeSet<Decision> {
    [Decision::Approve, Decision::Edit, Decision::Reject, Decision::Respond].into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{Decision, Rules};
    use crate::config::{AgentConfig, ToolsConfig};
    use crate::granted::Granted;
    use crate::testing::tool;

    fn agent(mut config: Value) -> Rules {
        config["route"] = json!("chat");
        serde_json::from_value::<AgentConfig>(config).unwrap().rules()
    }

    fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(str::to_owned).into()
    }

    fn granted(names: &[&str]) -> Granted {
        let tools = names.iter().map(|name| tool(name, &format!("t/{name}"))).collect();
        Granted { tools, missing: Vec::new() }
    }

    #[test]
    fn order_rules_name_the_missing_tools() {
        let rules = agent(json!({"order": [
            {"tool": "save", "after": ["t/parse", "check"]},
            {"tool": "t/send", "after": ["save"], "message": "save first"},
        ]}));
        let all = granted(&["save", "parse", "check", "send", "other"]);
        let early = |name, answered: BTreeSet<String>| {
            rules.too_early(all.find(name).unwrap(), &answered, &all)
        };
        let text = early("save", set(["check"])).unwrap();
        assert_eq!(text, "call `t/parse` first, wait for the result, then call `save`");
        assert_eq!(early("save", set(["check", "parse"])), None);
        assert_eq!(early("send", set([])).as_deref(), Some("save first"));
        assert_eq!(early("other", set([])), None);
    }

    #[test]
    fn duplicate_tool_name_does_not_bypass_rules() {
        let rules = agent(json!({"order": [{"tool": "save", "after": ["parse"]}],
            "approve": {"tools": ["save"]}}));
        let tools = vec![
            tool("book/save", "book/save"),
            tool("mcp:x/save", "mcp:x/save"),
            tool("date/parse", "date/parse"),
            tool("mcp:x/parse", "mcp:x/parse"),
        ];
        let granted = Granted { tools, missing: Vec::new() };
        let answered = set(["mcp:x/parse"]);
        for save in &granted.tools[..2] {
            assert!(rules.approval(save).is_some());
            assert!(rules.too_early(save, &answered, &granted).is_some());
        }
        assert_eq!(rules.check(&granted).unwrap_err().code, "conflict");
        assert!(!agent(json!({"tools": ["save"]})).allow(&granted.tools[0]));
        assert!(agent(json!({"tools": ["book/save"]})).allow(&granted.tools[0]));
    }

    #[test]
    fn rule_without_a_matching_tool_is_detected() {
        let all = granted(&["save"]);
        for rules in [
            json!({"approve": {"tools": ["sav"]}}),
            json!({"order": [{"tool": "sav", "after": []}]}),
            json!({"order": [{"tool": "save", "after": ["parse"]}]}),
        ] {
            assert_eq!(agent(rules).check(&all).unwrap_err().code, "not-found");
        }
        assert!(agent(json!({"approve": {"tools": "*"}})).check(&all).is_ok());
    }

    #[test]
    fn combined_rules_forbid_what_either_forbids() {
        let one = agent(json!({"tools": ["a", "t/b"], "updates": ["total", "seen"],
            "approve": {"tools": ["b"], "allowed": ["approve", "reject"]}}));
        let other: ToolsConfig = serde_json::from_value(json!({"tools": ["b", "c"],
            "approve": {"tools": "*", "allowed": ["approve", "edit"]},
            "parallel": false, "updates": ["total"]}))
        .unwrap();
        let rules = one.and(other.rules());
        let [a, b, c] = ["a", "b", "c"].map(|name| tool(name, &format!("t/{name}")));
        assert_eq!([&a, &b, &c].map(|tool| rules.allow(tool)), [false, true, false]);
        assert_eq!(rules.approval(&b), Some([Decision::Approve].into()));
        assert!(rules.approval(&c).is_some_and(|it| it.contains(&Decision::Edit)));
        assert!(!rules.parallel && rules.open("total") && !rules.open("seen"));
        let silent: ToolsConfig = serde_json::from_value(json!({})).unwrap();
        assert!(agent(json!({"updates": ["total"]})).and(silent.rules()).open("total"));
        assert!(!silent.rules().open("total"));
    }
}
