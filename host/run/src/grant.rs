//! What the operator allows a plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use wattle_graph::id::PluginName;

use crate::limit::Limits;
use crate::ports::memory::ANY_PART;

/// Everything that a plugin may use. What is not here is `denied`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// Model routes by name.
    pub llm: BTreeSet<String>,
    /// Hosts for outbound HTTP.
    pub http: Vec<HttpRule>,
    /// Databases by name.
    pub sql: BTreeMap<String, SqlRule>,
    /// Tools of other plugins and of servers.
    pub tools: Vec<ToolGrant>,
    /// Parts of the long-term memory.
    pub memory: Vec<MemoryRule>,
    /// Model routes that its web handler may set for a tenant.
    pub tenant_routes: BTreeSet<String>,
    /// What becomes of its calls that were under way when the host stopped.
    pub in_doubt: InDoubt,
    /// Limits.
    pub limits: Limits,
}

/// What becomes of a call that is not safe to repeat and was under way when the host stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InDoubt {
    /// Its caller gets the failure `in-doubt` and may deal with it.
    #[default]
    Fail,
    /// The thread waits until a person has said whether it is made again, what it answered, or
    /// that it failed.
    Ask,
    /// It is made again.
    Retry,
}

/// A host that a plugin may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRule {
    /// `api.example.com`, or `*.example.com` for every name below it (not itself).
    pub host: String,
    /// `https` unless said otherwise.
    #[serde(default = "https")]
    pub scheme: String,
    /// The scheme's own port without it.
    #[serde(default)]
    pub port: Option<u16>,
    /// Allowed methods, upper case; `GET` without it.
    #[serde(default = "get")]
    pub methods: Vec<String>,
    /// Secrets that may be sent there.
    #[serde(default)]
    pub secrets: BTreeSet<String>,
    /// Whether the host may resolve to a private or loopback address.
    #[serde(default)]
    pub private: bool,
}

fn https() -> String {
    "https".into()
}

fn get() -> Vec<String> {
    vec!["GET".into()]
}

/// Where tools are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolSource {
    /// In a plugin.
    Plugin(PluginName),
    /// On a server, by the operator's name for it.
    Server(String),
}

impl fmt::Display for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(plugin) => write!(f, "{plugin}"),
            Self::Server(server) => write!(f, "{SERVER_PREFIX}{server}"),
        }
    }
}

/// What a reference to a tool on a server begins with.
const SERVER_PREFIX: &str = "mcp:";

/// A tool, or all tools of one place: `date/parse`, `date/*`, `mcp:graph/list`, `mcp:graph/*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolGrant {
    /// Where.
    pub source: ToolSource,
    /// Which; `None` for all.
    pub tool: Option<String>,
}

impl ToolGrant {
    /// Whether a tool of the place is meant.
    pub fn covers(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|wanted| wanted == tool)
    }
}

impl fmt::Display for ToolGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.tool.as_deref().unwrap_or("*"))
    }
}

/// A text that names no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no tool; write `plugin/tool`, `plugin/*`, `mcp:server/tool` or `mcp:server/*`"
)]
pub struct ToolGrantError(String);

impl FromStr for ToolGrant {
    type Err = ToolGrantError;

    fn from_str(text: &str) -> Result<Self, ToolGrantError> {
        let error = || ToolGrantError(text.chars().take(200).collect());
        let (place, tool) = text.split_once('/').ok_or_else(error)?;
        let source = match place.strip_prefix(SERVER_PREFIX) {
            Some("") => return Err(error()),
            Some(server) => ToolSource::Server(server.to_owned()),
            None => ToolSource::Plugin(PluginName::new(place).map_err(|_| error())?),
        };
        if tool.is_empty() {
            return Err(error());
        }
        let tool = (tool != "*").then(|| tool.to_owned());
        Ok(Self { source, tool })
    }
}

impl TryFrom<String> for ToolGrant {
    type Error = ToolGrantError;
    fn try_from(text: String) -> Result<Self, ToolGrantError> {
        text.parse()
    }
}

impl From<ToolGrant> for String {
    fn from(grant: ToolGrant) -> Self {
        grant.to_string()
    }
}

/// What may be done with a part of the long-term memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryAccess {
    /// Reading, searching, listing.
    Read,
    /// Writing and deleting, too.
    ReadWrite,
}

/// A part of the long-term memory that a plugin may use: every namespace that begins as said, of
/// the tenant that it works for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRule {
    /// The parts that a namespace begins with; `*` stands for any one part, none for all.
    pub namespace: Vec<String>,
    /// Reading, unless writing is said to be allowed too.
    #[serde(default = "read")]
    pub access: MemoryAccess,
}

fn read() -> MemoryAccess {
    MemoryAccess::Read
}

impl MemoryRule {
    /// Whether all that begins as `prefix` is meant. A `*` in it is only met by a `*` of the rule,
    /// since lists take it for any part.
    pub fn covers(&self, prefix: &[String]) -> bool {
        let meets = |(own, part): (&String, &String)| own == ANY_PART || own == part;
        prefix.len() >= self.namespace.len() && self.namespace.iter().zip(prefix).all(meets)
    }
}

/// What may be done with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SqlAccess {
    /// Queries only, enforced by parser and database.
    ReadOnly,
    /// Statements that write, too.
    ReadWrite,
}

/// What may be done with one database. Written as `read-only` or `read-write` where that says all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SqlRuleForm", into = "SqlRuleForm")]
pub struct SqlRule {
    /// Reading, or writing too. All further fields are for reading only.
    pub access: SqlAccess,
    /// Tables and views that may be read; all that are not the database's own without it. With it,
    /// functions are limited to those known to be harmless.
    pub tables: Option<BTreeSet<String>>,
    /// Whether the part of the catalog that describes tables may be read.
    pub schema: bool,
    /// Functions beside those known to be harmless; only of use together with `tables`.
    pub functions: BTreeSet<String>,
    /// Time of one statement, if shorter than the plugin's limit.
    pub timeout_ms: Option<u64>,
    /// Rows of one answer: more are a failure, not a truncated answer.
    pub rows: Option<u64>,
    /// Bytes of one answer: more are a failure likewise.
    pub bytes: Option<u64>,
}

impl From<SqlAccess> for SqlRule {
    fn from(access: SqlAccess) -> Self {
        Self {
            access,
            tables: None,
            schema: false,
            functions: BTreeSet::new(),
            timeout_ms: None,
            rows: None,
            bytes: None,
        }
    }
}

/// How a rule is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum SqlRuleForm {
    Plain(SqlAccess),
    Full {
        access: SqlAccess,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tables: Option<BTreeSet<String>>,
        #[serde(default)]
        schema: bool,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        functions: BTreeSet<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
}

impl From<SqlRuleForm> for SqlRule {
    fn from(form: SqlRuleForm) -> Self {
        match form {
            SqlRuleForm::Plain(access) => access.into(),
            SqlRuleForm::Full { access, tables, schema, functions, timeout_ms, rows, bytes } => {
                Self { access, tables, schema, functions, timeout_ms, rows, bytes }
            }
        }
    }
}

impl From<SqlRule> for SqlRuleForm {
    fn from(rule: SqlRule) -> Self {
        if rule == SqlRule::from(rule.access) {
            return Self::Plain(rule.access);
        }
        let SqlRule { access, tables, schema, functions, timeout_ms, rows, bytes } = rule;
        Self::Full { access, tables, schema, functions, timeout_ms, rows, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_tool_or_all_of_a_place() {
        for text in ["date/parse", "date/*", "mcp:graph/graph.list", "mcp:graph/*", "t/a/b"] {
            let grant: ToolGrant = text.parse().unwrap();
            assert_eq!(grant.to_string(), text);
        }
        for text in ["", "parse", "/parse", "date/", "mcp:/x", "mcp:graph", "1x/y", "a b/c"] {
            assert!(text.parse::<ToolGrant>().is_err(), "{text}");
        }
        let one: ToolGrant = "date/parse".parse().unwrap();
        assert!(one.covers("parse") && !one.covers("other"));
    }

    #[test]
    fn a_rule_of_memory_covers_what_begins_as_it_says() {
        let parts = |parts: &[&str]| parts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let covers = |rule: &[&str], prefix: &[&str]| {
            let rule = MemoryRule { namespace: parts(rule), access: MemoryAccess::Read };
            rule.covers(&parts(prefix))
        };
        assert!(covers(&["users"], &["users"]) && covers(&["users"], &["users", "42"]));
        assert!(covers(&[], &[]) && covers(&[], &["a"]) && covers(&["*", "x"], &["a", "x", "b"]));
        assert!(covers(&["*"], &["*"]));
        for prefix in [&[][..], &["user"], &["users2"], &["*"], &["*", "users"]] {
            assert!(!covers(&["users"], prefix), "{prefix:?}");
        }
        assert!(!covers(&["*", "x"], &["a"]));
    }
}
