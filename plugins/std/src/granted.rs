//! The granted tools and their names.
//!
//! The host lists a tool under its bare name (`save`) if no other granted tool has this name, and
//! otherwise under its tool reference (`book/save`). A bare name in a graph file can therefore
//! become ambiguous when another tool is granted. Rules that restrict tools (`approve`, `order`)
//! then apply to every tool with this name, so that a newly granted tool does not bypass them.
//! Rules that permit tools (`tools`, `after`) require an unambiguous name.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::tool::ToolInfo;
use wattle_plugin::tools::{self, Missing};
use wattle_plugin::{Failure, code};

/// A tool that the operator grants to the plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tool {
    /// Name under which the host lists the tool.
    pub(crate) name: String,
    /// Tool reference, if the host reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    /// Description of the tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    /// JSON Schema of the arguments.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) arguments_schema: Value,
}

impl Tool {
    /// Returns true if a name identifies this tool unambiguously.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.reference.as_deref() == Some(name)
    }

    /// Returns true if a name may mean this tool, possibly among others.
    pub(crate) fn may_be(&self, name: &str) -> bool {
        self.is(name) || self.bare() == name
    }

    /// Returns a name of the tool that remains unambiguous when other tools are granted.
    pub(crate) fn exact(&self) -> &str {
        self.reference.as_deref().unwrap_or(&self.name)
    }

    fn bare(&self) -> &str {
        self.exact().split_once('/').map_or(&self.name, |(_, bare)| bare)
    }

    /// Returns the tool with its names only, without description and schema.
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

/// The tools that the operator grants to the plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// Tools of the available sources.
    pub(crate) tools: Vec<Tool>,
    /// Tool sources whose tools could not be listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing: Vec<Missing>,
}

impl Granted {
    /// Lists the tools that the operator grants to the plugin.
    pub(crate) fn list() -> Result<Self, Failure> {
        let listing = tools::listing()?;
        let tools = listing.tools.into_iter().map(Tool::from).collect();
        Ok(Self { tools, missing: listing.missing })
    }

    /// Returns the tool that a name identifies unambiguously.
    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.is(name))
    }

    /// Returns the tools that a task needs to make calls: the called tools completely, and the
    /// others by name only.
    pub(crate) fn for_calls<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let is_called = |tool: &Tool| names.clone().any(|name| tool.is(name));
        let kept = |tool: &Tool| if is_called(tool) { tool.clone() } else { tool.names() };
        Self { tools: self.tools.iter().map(kept).collect(), missing: self.missing.clone() }
    }

    /// Checks that a name in the configuration identifies one tool. `key` is the configuration key
    /// that contains the name.
    ///
    /// # Errors
    ///
    /// `conflict` if the name is ambiguous; the failure of an unavailable tool source that may
    /// provide the tool; otherwise `not-found`.
    pub(crate) fn check_one(&self, name: &str, key: &str) -> Result<(), Failure> {
        if self.find(name).is_some() {
            return Ok(());
        }
        let meant = self.tools.iter().filter(|tool| tool.may_be(name));
        let meant: Vec<String> = meant.map(|tool| format!("`{}`", tool.exact())).collect();
        if !meant.is_empty() {
            return Err(Failure::conflict(format!(
                "the tool name `{name}` in `{key}` under `with` of the node is ambiguous: it may \
                 mean {}; write the tool reference instead",
                meant.join(" or ")
            )));
        }
        Err(self.away(name).unwrap_or_else(|| not_granted(name, key)))
    }

    /// Checks that a name in the configuration matches at least one tool. A tool that an
    /// unavailable source may provide counts as a match, because such a tool cannot be called
    /// either.
    ///
    /// # Errors
    ///
    /// `not-found`. The name is most likely misspelled, and the rule would restrict nothing.
    pub(crate) fn check_any(&self, name: &str, key: &str) -> Result<(), Failure> {
        let is_there = self.tools.iter().any(|tool| tool.may_be(name));
        if is_there || self.away(name).is_some() {
            return Ok(());
        }
        Err(not_granted(name, key))
    }

    /// Returns the failure of an unavailable tool source that may provide a tool.
    pub(crate) fn away(&self, name: &str) -> Option<Failure> {
        let may_have = |missing: &&Missing| {
            !name.contains('/') || name.starts_with(&format!("{}/", missing.source))
        };
        let missing = self.missing.iter().find(may_have)?;
        let failure = missing.failure.clone();
        let message = format!(
            "the tool `{name}` is unavailable, because the tools of `{}` could not be listed: {}",
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
             correct the name, grant the tool, or remove it"
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
    fn names_identify_one_tool_or_match_several() {
        let granted = granted();
        let may_be = |name: &str| granted.tools.iter().filter(|tool| tool.may_be(name)).count();
        assert_eq!(
            ["save", "book/save", "parse", "date/parse", "fly"].map(may_be),
            [2, 1, 1, 1, 0]
        );
        assert!(granted.find("save").is_none() && granted.find("date/parse").is_some());
    }

    #[test]
    fn ambiguous_and_unknown_names_are_distinguished() {
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
    fn tool_of_an_unavailable_source_is_retryable() {
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
