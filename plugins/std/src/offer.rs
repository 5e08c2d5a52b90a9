//! The tools on offer, under names that every provider takes.

use std::collections::BTreeMap;

use wattle_plugin::llm::ToolDefinition;
use wattle_plugin::tool::ToolInfo;
use wattle_plugin::{Failure, code};

use crate::config::Rules;

/// Longest name that providers take.
const NAME_LIMIT: usize = 64;

/// The tools that a model may ask for.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// As the model sees them.
    pub(crate) definitions: Vec<ToolDefinition>,
    /// Names of the tools themselves, by what the model sees.
    own: BTreeMap<String, String>,
}

impl Offer {
    /// The granted tools that the rules allow.
    ///
    /// # Errors
    ///
    /// `not-found` if a tool is configured that is not granted, `conflict` if two tools would
    /// have the same name for the model.
    pub(crate) fn new(granted: Vec<ToolInfo>, rules: &Rules) -> Result<Self, Failure> {
        let mut configured = rules.tools.iter().flatten();
        if let Some(missing) =
            configured.find(|name| !granted.iter().any(|tool| tool.name == **name))
        {
            return Err(Failure::new(
                code::NOT_FOUND,
                format!(
                    "the agent is configured with the tool `{missing}`, which is not granted or \
                     whose server does not answer; grant it, or take it out of `tools`"
                ),
            ));
        }
        let mut offer = Self::default();
        for tool in granted.into_iter().filter(|tool| rules.allow(&tool.name)) {
            offer.add(tool)?;
        }
        Ok(offer)
    }

    /// The tool that a model means; the same name if it is none of those on offer.
    pub(crate) fn own_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.own.get(name).map_or(name, String::as_str)
    }

    fn add(&mut self, tool: ToolInfo) -> Result<(), Failure> {
        let name = safe_name(&tool.name);
        if let Some(other) = self.own.insert(name.clone(), tool.name.clone()) {
            return Err(Failure::conflict(format!(
                "tools `{other}` and `{}` are both `{name}` for a model; name the one that is \
                 needed in `tools`",
                tool.name
            )));
        }
        self.definitions.push(ToolDefinition { name, ..ToolDefinition::from(tool) });
        Ok(())
    }
}

/// A name as providers take it: at most 64 of `[a-zA-Z0-9_-]`.
pub(crate) fn safe_name(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().take(NAME_LIMIT).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_plugin::tool::ToolInfo;

    use super::Offer;
    use crate::config::{AgentConfig, Rules};

    fn rules(tools: &[&str]) -> Rules {
        let config = match tools {
            [] => json!({"route": "chat"}),
            tools => json!({"route": "chat", "tools": tools}),
        };
        serde_json::from_value::<AgentConfig>(config).unwrap().rules()
    }

    fn offer(granted: &[&str], tools: &[&str]) -> Result<Offer, String> {
        let info = |name: &&str| ToolInfo { name: (*name).to_owned(), ..ToolInfo::default() };
        let granted = granted.iter().map(info).collect();
        Offer::new(granted, &rules(tools)).map_err(|failure| failure.message)
    }

    #[test]
    fn names_are_changed_for_the_model_and_back() {
        let offer = offer(&["mcp:graph/q.x", "add"], &[]).unwrap();
        let names: Vec<_> = offer.definitions.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["mcp_graph_q_x", "add"]);
        assert_eq!(offer.own_name("mcp_graph_q_x"), "mcp:graph/q.x");
        assert_eq!(offer.own_name("nothing"), "nothing");
    }

    #[test]
    fn two_tools_with_one_name_are_refused() {
        assert!(offer(&["a.b", "a_b"], &[]).unwrap_err().contains("`a.b` and `a_b`"));
        assert!(offer(&["a.b", "a_b"], &["a_b"]).is_ok());
    }

    #[test]
    fn a_tool_that_is_not_granted_is_named() {
        assert!(offer(&["add"], &["add", "save"]).unwrap_err().contains("`save`"));
    }
}
