//! The tools that the plugin was granted, and the names that mean them.
//!
//! A tool is seen under its bare name (`save`) as long as no other granted tool has it, else under
//! its full reference (`book/save`). So a name in a graph file means one tool today and perhaps
//! two tomorrow. What holds tools back (an approval, an order) holds for every tool that the name
//! may mean, so that no further tool can free another of it. What lets tools through holds only
//! for the one tool that the name means without doubt.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::tool::ToolInfo;
use wattle_plugin::tools::{self, Missing};
use wattle_plugin::{Failure, code};

/// A granted tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tool {
    /// The name that it is seen under.
    pub(crate) name: String,
    /// Its full reference, if the host tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) arguments_schema: Value,
}

impl Tool {
    /// Whether a name means this tool and no other.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.reference.as_deref() == Some(name)
    }

    /// Whether a name means this tool, perhaps beside others.
    pub(crate) fn may_be(&self, name: &str) -> bool {
        self.is(name) || self.bare() == name
    }

    /// The name to call it by: whatever else is granted by then, it means no other tool.
    pub(crate) fn exact(&self) -> &str {
        self.reference.as_deref().unwrap_or(&self.name)
    }

    fn bare(&self) -> &str {
        self.exact().split_once('/').map_or(&self.name, |(_, bare)| bare)
    }

    /// Its names without the rest.
    fn names(&self) -> Self {
        let Self { name, reference, .. } = self.clone();
        Self { name, reference, ..Self::default() }
    }
}

impl From<ToolInfo> for Tool {
    fn from(info: ToolInfo) -> Self {
        Self {
            reference: info.reference().map(str::to_owned),
            name: info.name,
            description: info.description,
            arguments_schema: info.arguments_schema,
        }
    }
}

/// All granted tools, as far as they are known now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// The tools.
    pub(crate) tools: Vec<Tool>,
    /// Places that do not say what they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing: Vec<Missing>,
}

impl Granted {
    /// Asks the host.
    pub(crate) fn list() -> Result<Self, Failure> {
        let listing = tools::listing()?;
        let tools = listing.tools.into_iter().map(Tool::from).collect();
        Ok(Self { tools, missing: listing.missing })
    }

    /// The tool that a name means.
    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.is(name))
    }

    /// What a task has to know that calls some of them: all about these, the names of the others.
    pub(crate) fn for_calls<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let is_called = |tool: &Tool| names.clone().any(|name| tool.is(name));
        let kept = |tool: &Tool| if is_called(tool) { tool.clone() } else { tool.names() };
        Self { tools: self.tools.iter().map(kept).collect(), missing: self.missing.clone() }
    }

    /// Checks that a name in the configuration means one tool. `key` is where it stands.
    ///
    /// # Errors
    ///
    /// `conflict` if it means several, what the place said that does not say what it has, or
    /// `not-found`.
    pub(crate) fn check_one(&self, name: &str, key: &str) -> Result<(), Failure> {
        if self.find(name).is_some() {
            return Ok(());
        }
        let meant = self.tools.iter().filter(|tool| tool.may_be(name));
        let meant: Vec<String> = meant.map(|tool| format!("`{}`", tool.exact())).collect();
        if !meant.is_empty() {
            return Err(Failure::conflict(format!(
                "the tool `{name}` in `{key}` under `with` of the node may be {}; write the full \
                 reference of the one that is meant",
                meant.join(" or ")
            )));
        }
        Err(self.away(name).unwrap_or_else(|| not_granted(name, key)))
    }

    /// Checks that a name in the configuration means a tool or several. A tool of a place that is
    /// away cannot be called either, so nothing is wrong with a rule about it.
    ///
    /// # Errors
    ///
    /// `not-found`: the rule would restrict nothing, most likely because of a misspelled name.
    pub(crate) fn check_any(&self, name: &str, key: &str) -> Result<(), Failure> {
        let is_there = self.tools.iter().any(|tool| tool.may_be(name));
        if is_there || self.away(name).is_some() {
            return Ok(());
        }
        Err(not_granted(name, key))
    }

    /// Why it is not known whether there is such a tool.
    pub(crate) fn away(&self, name: &str) -> Option<Failure> {
        let may_have = |missing: &&Missing| {
            !name.contains('/') || name.starts_with(&format!("{}/", missing.source))
        };
        let missing = self.missing.iter().find(may_have)?;
        let failure = missing.failure.clone();
        let message = format!(
            "the tool `{name}` is not known now, since `{}` does not say what it has: {}",
            missing.source, failure.message
        );
        Some(Failure { message, ..failure })
    }
}

fn not_granted(name: &str, key: &str) -> Failure {
    Failure::new(
        code::NOT_FOUND,
        format!(
            "`{key}` under `with` of the node names the tool `{name}`, which is not granted; \
             correct the name, grant the tool, or take it out"
        ),
    )
}

#[cfg(test)]
mod tests {
    use wattle_plugin::Failure;
    use wattle_plugin::tools::Missing;

    use super::Granted;
    use crate::testing::tool;

    fn granted() -> Granted {
        let tools = vec![
            tool("book/save", "book/save"),
            tool("mcp:x/save", "mcp:x/save"),
            tool("parse", "date/parse"),
        ];
        Granted { tools, missing: Vec::new() }
    }

    #[test]
    fn a_name_means_one_tool_or_may_mean_several() {
        let granted = granted();
        let may_be = |name: &str| granted.tools.iter().filter(|tool| tool.may_be(name)).count();
        assert_eq!(
            ["save", "book/save", "parse", "date/parse", "fly"].map(may_be),
            [2, 1, 1, 1, 0]
        );
        assert!(granted.find("save").is_none() && granted.find("date/parse").is_some());
    }

    #[test]
    fn wrong_names_are_told_apart() {
        let granted = granted();
        let failure = granted.check_one("save", "tools").unwrap_err();
        assert_eq!(failure.code, "conflict");
        assert!(failure.message.contains("`book/save` or `mcp:x/save`"), "{failure}");
        assert!(granted.check_any("save", "approve").is_ok());
        let failure = granted.check_any("sav", "approve").unwrap_err();
        assert_eq!(failure.code, "not-found");
        assert!(failure.message.contains("`approve`"), "{failure}");
    }

    #[test]
    fn a_tool_of_a_place_that_is_away_is_worth_a_retry() {
        let failure = Failure::unavailable("the MCP server `y` is away");
        let missing = vec![Missing { source: "mcp:y".to_owned(), failure }];
        let granted = Granted { missing, ..granted() };
        for name in ["look", "mcp:y/look"] {
            let failure = granted.check_one(name, "tools").unwrap_err();
            assert_eq!((&*failure.code, failure.retryable), ("unavailable", true));
            assert!(failure.message.contains("`mcp:y`"), "{failure}");
            assert!(granted.check_any(name, "approve").is_ok());
        }
        assert_eq!(granted.check_one("mcp:x/look", "tools").unwrap_err().code, "not-found");
    }
}
