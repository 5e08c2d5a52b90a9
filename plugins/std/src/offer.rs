//! The offered tools, under names that every provider accepts.

use std::collections::BTreeMap;

use wattle_plugin::llm::ToolDefinition;
use wattle_plugin::{Extra, Failure};

use crate::fold;
use crate::granted::{Granted, Tool};
use crate::rules::Rules;

/// Maximum length of a tool name that providers accept, in characters.
const NAME_LIMIT: usize = 64;

/// Name for a tool call without a name.
const UNNAMED: &str = "unnamed";

/// The tools that a model may request in this turn.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// Definitions for the model.
    pub(crate) definitions: Vec<ToolDefinition>,
    /// All granted tools.
    pub(crate) granted: Granted,
    /// Own names of the tools, by the names that the model sees.
    own: BTreeMap<String, String>,
}

impl Offer {
    /// Offers the granted tools that the rules permit.
    ///
    /// # Errors
    ///
    /// Those of [`Rules::check_offer`] and [`Rules::check`], if the rules contain an unknown or
    /// ambiguous name.
    pub(crate) fn new(granted: Granted, rules: &Rules) -> Result<Self, Failure> {
        rules.check_offer(&granted)?;
        rules.check(&granted)?;
        let tools: Vec<&Tool> = granted.tools.iter().filter(|tool| rules.allow(tool)).collect();
        let mut offer = Self::default();
        // Tools whose names providers accept unchanged come first, so that no converted name takes
        // one of these.
        let (plain, changed): (Vec<&Tool>, _) =
            tools.iter().partition(|tool| safe_name(&tool.name) == tool.name);
        for tool in plain.into_iter().chain(changed) {
            let name = offer.free_name(&tool.name);
            offer.own.insert(name, tool.name.clone());
        }
        offer.definitions = tools.into_iter().map(|tool| offer.definition(tool)).collect();
        Ok(Self { granted, ..offer })
    }

    /// Returns the tool's own name for a name that a model uses. Returns the same name if no
    /// offered tool has it.
    pub(crate) fn own_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.own.get(name).map_or(name, String::as_str)
    }

    /// Returns the names under which the model sees tools, by the tools' own names, for those that
    /// have another name than the host gives a tool that is not offered.
    pub(crate) fn assigned_names(&self) -> BTreeMap<String, String> {
        let offered = self.own.values().map(|own| (own.clone(), self.model_name(own)));
        offered.filter(|(own, name)| *name != safe_name(own)).collect()
    }

    /// Returns the name under which the model sees a tool, whether it is offered in this turn or
    /// not.
    fn model_name(&self, own: &str) -> String {
        let seen = self.own.iter().find(|(_, it)| *it == own).map(|(seen, _)| seen.clone());
        seen.unwrap_or_else(|| safe_name(own))
    }

    fn definition(&self, tool: &Tool) -> ToolDefinition {
        ToolDefinition {
            name: self.model_name(&tool.name),
            description: tool.description.clone(),
            arguments_schema: fold::union(&tool.arguments_schema),
            extra: Extra::new(),
        }
    }

    /// Converts a name to an accepted one, and appends a number if another tool has the converted
    /// name.
    fn free_name(&self, own: &str) -> String {
        let safe = safe_name(own);
        if !self.own.contains_key(&safe) {
            return safe;
        }
        let mut number = 2_usize;
        loop {
            let suffix = format!("_{number}");
            let kept: String = safe.chars().take(NAME_LIMIT - suffix.len()).collect();
            let name = kept + &suffix;
            if !self.own.contains_key(&name) {
                return name;
            }
            number += 1;
        }
    }
}

/// Converts a name to one that providers accept: 1 to 64 characters of `[a-zA-Z0-9_-]`. Gemini
/// requires that the first character is a letter or `_`. The host does the same with names of
/// earlier calls, so both must agree.
fn safe_name(name: &str) -> String {
    if name.is_empty() {
        return UNNAMED.to_owned();
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let prefix = if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') { "_" } else { "" };
    prefix.chars().chain(name.chars().map(safe)).take(NAME_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Offer;
    use crate::config::AgentConfig;
    use crate::granted::Granted;
    use crate::rules::Rules;
    use crate::testing::tool;

    fn rules(tools: &[&str]) -> Rules {
        let config = match tools {
            [] => json!({"route": "chat"}),
            tools => json!({"route": "chat", "tools": tools}),
        };
        serde_json::from_value::<AgentConfig>(config).unwrap().rules()
    }

    fn offer(granted: &[&str], tools: &[&str]) -> Result<Offer, String> {
        let tool = |name: &&str| tool(name, &format!("t/{name}"));
        let granted = Granted { tools: granted.iter().map(tool).collect(), ..Granted::default() };
        Offer::new(granted, &rules(tools)).map_err(|failure| failure.message)
    }

    fn names(offer: &Offer) -> Vec<&str> {
        offer.definitions.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn names_convert_in_both_directions() {
        let offer = offer(&["mcp:graph/q.x", "add"], &[]).unwrap();
        assert_eq!(names(&offer), ["mcp_graph_q_x", "add"]);
        assert_eq!(offer.own_name("mcp_graph_q_x"), "mcp:graph/q.x");
        assert_eq!(offer.model_name("mcp:graph/q.x"), "mcp_graph_q_x");
        assert_eq!((offer.own_name("nothing"), &*offer.model_name("a.b")), ("nothing", "a_b"));
    }

    #[test]
    fn names_begin_with_a_letter_or_an_underscore() {
        let long = "7".repeat(64);
        let offer = offer(&["21st_builder", "-x", "_21st_builder", "7.a", &long], &[]).unwrap();
        let longest = format!("_{}", "7".repeat(63));
        assert_eq!(names(&offer), ["_21st_builder_2", "_-x", "_21st_builder", "_7_a", &longest]);
        assert_eq!(offer.own_name("_21st_builder_2"), "21st_builder");
        assert_eq!(offer.own_name("_21st_builder"), "_21st_builder");
        assert_eq!((offer.own_name(&longest), &*offer.model_name("9")), (&*long, "_9"));
    }

    #[test]
    fn colliding_names_are_numbered() {
        let some = offer(&["a.b", "a_b", "a/b", "a_b_2"], &[]).unwrap();
        assert_eq!(names(&some), ["a_b_3", "a_b", "a_b_4", "a_b_2"]);
        assert_eq!((some.own_name("a_b"), some.own_name("a_b_3")), ("a_b", "a.b"));
        assert_eq!(some.model_name("a.b"), "a_b_3");
        let assigned: Vec<_> = some.assigned_names().into_iter().collect();
        let name = |own: &str, seen: &str| (own.to_owned(), seen.to_owned());
        assert_eq!(assigned, [name("a.b", "a_b_3"), name("a/b", "a_b_4")]);
        let long = "x".repeat(64);
        let long = offer(&[&format!("{long}1"), &format!("{long}2")], &[]).unwrap();
        let names = names(&long);
        assert_eq!((names[0], names[1]), (&*"x".repeat(64), &*("x".repeat(62) + "_2")));
    }

    #[test]
    fn ungranted_tool_is_named() {
        assert!(offer(&["add"], &["add", "save"]).unwrap_err().contains("`save`"));
    }
}
