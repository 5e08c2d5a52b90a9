//! Grants: what the operator allows a plugin.

mod denial;
mod key;
mod place;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use wattle_graph::id::{AppName, PluginName};

pub use self::denial::MissingSide;
pub use self::key::GrantKey;
pub use self::place::RequestPlace;
pub use self::request::{GrantRequest, MissingGrant};
use crate::limit::Limits;
use crate::ports::memory::WILDCARD;

/// Everything that a plugin may use. Any other call fails with `denied`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// Names of model routes.
    pub llm: BTreeSet<String>,
    /// Hosts for outbound HTTP.
    pub http: Vec<HttpRule>,
    /// Rules for databases, by name.
    pub sql: BTreeMap<String, SqlRule>,
    /// Tools of other plugins and of MCP servers.
    pub tools: Vec<ToolGrant>,
    /// Namespaces of the long-term memory.
    pub memory: Vec<MemoryRule>,
    /// Model routes that the web handler of the plugin may set for a tenant.
    pub tenant_routes: BTreeSet<String>,
    /// Policy for calls in doubt of the plugin.
    pub in_doubt: InDoubtPolicy,
    /// Limits of calls of the plugin.
    pub limits: Limits,
    /// Environment variables of a typed component, by name. The variables belong to this host: an
    /// export of a thread neither contains nor grants them.
    #[serde(skip)]
    pub environment: BTreeMap<String, String>,
    /// Folders of a typed component. Like the environment, the folders belong to this host.
    #[serde(skip)]
    pub folders: Vec<FolderRule>,
    /// The table of the configuration from which the grants come, or to which the operator adds
    /// grants. Messages name this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<GrantKey>,
    /// Requested and granted permissions, whose intersection the other fields are. Messages about
    /// denied calls say on which side a permission is missing. `None` if the sides are unknown.
    #[serde(skip)]
    pub sides: Option<Arc<GrantSides>>,
}

/// The two sides that decide the grants of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantSides {
    /// The requested permissions, and where they are requested. `None` if the plugin counts as
    /// requesting everything that the operator grants.
    pub request: Option<(RequestPlace, Grants)>,
    /// The permissions that the operator grants. `None` if the operator grants everything that the
    /// plugin requests.
    pub granted: Option<Grants>,
}

impl Grants {
    /// Returns the name of the table to which the operator adds a permission of a plugin. If no
    /// table is known, returns the name of the table of the plugin in its app.
    pub fn key_of(&self, app: &AppName, plugin: &PluginName) -> GrantKey {
        self.key.clone().unwrap_or_else(|| GrantKey::in_app(app, plugin))
    }

    /// Returns true if `others` grant the same permissions, even if they have other sides.
    pub fn has_same_permissions(&self, others: &Self) -> bool {
        let permissions = |grants: &Self| Self { sides: None, ..grants.clone() };
        permissions(self) == permissions(others)
    }

    /// Returns true if the plugin may change files. A call that changes files is in doubt after a
    /// crash.
    pub fn may_write_files(&self) -> bool {
        self.folders.iter().any(|folder| folder.access == FolderAccess::ReadWrite)
    }
}

/// Policy for a call in doubt: a call that is not idempotent and was started, and whose host
/// stopped before its result was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InDoubtPolicy {
    /// The call fails with `in-doubt`, and the caller may handle the failure.
    #[default]
    Fail,
    /// The task is interrupted until a person decides: make the call again, record a given result,
    /// or let it fail.
    Ask,
    /// The host makes the call again.
    Retry,
}

/// A host that a plugin may send requests to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ host = \"api.example.com\" }`")]
pub struct HttpRule {
    /// `api.example.com`, or `*.example.com` for every subdomain, without the domain itself.
    pub host: String,
    /// `https` by default.
    #[serde(default = "https")]
    pub scheme: String,
    /// Port. Default: the standard port of the scheme.
    #[serde(default)]
    pub port: Option<u16>,
    /// Allowed methods in upper case. Default: `GET`.
    #[serde(default = "get")]
    pub methods: Vec<String>,
    /// Names of the secrets that may be sent to the host.
    #[serde(default)]
    pub secrets: BTreeSet<String>,
    /// True if the host may resolve to a private or loopback address. Default: false.
    #[serde(default)]
    pub private: bool,
}

fn https() -> String {
    "https".into()
}

fn get() -> Vec<String> {
    vec!["GET".into()]
}

/// Access to the files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FolderAccess {
    /// Reads and lists files.
    ReadOnly,
    /// Also creates, changes and deletes files.
    ReadWrite,
}

/// A folder of the host that a typed component may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ path = \"/srv/reports\", guest = \"/reports\" }`"
)]
pub struct FolderRule {
    /// Path on the host.
    pub path: PathBuf,
    /// Path under which the component finds the folder, such as `/data`.
    pub guest: String,
    /// Access to the files. Default: read-only.
    #[serde(default = "read_only")]
    pub access: FolderAccess,
}

fn read_only() -> FolderAccess {
    FolderAccess::ReadOnly
}

/// A tool source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolSource {
    /// A plugin.
    Plugin(PluginName),
    /// An MCP server, by its name in the configuration.
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

/// Prefix of a reference to a tool of an MCP server.
const SERVER_PREFIX: &str = "mcp:";

/// A granted tool, or all tools of a source: `date/parse`, `date/*`, `mcp:graph/list`,
/// `mcp:graph/*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolGrant {
    /// The source of the tool.
    pub source: ToolSource,
    /// Name of the tool; `None` for all tools of the source.
    pub tool: Option<String>,
}

impl ToolGrant {
    /// Returns true if the grant covers a tool of its source.
    pub fn covers(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|wanted| wanted == tool)
    }
}

impl fmt::Display for ToolGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.tool.as_deref().unwrap_or("*"))
    }
}

/// The error for a string that is not a tool reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a tool reference; write `plugin/tool`, `plugin/*`, `mcp:server/tool` or \
     `mcp:server/*`"
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

/// Access to a part of the long-term memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryAccess {
    /// The plugin may read, search and list documents.
    Read,
    /// The plugin may also write and delete documents.
    ReadWrite,
}

/// A part of the long-term memory that a plugin may use: every namespace with a given prefix. The
/// rule is limited to the tenant on whose behalf the plugin runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ namespace = [\"users\"] }`")]
pub struct MemoryRule {
    /// Parts of the prefix. `*` matches any one part; an empty prefix matches every namespace.
    pub namespace: Vec<String>,
    /// Access to the part. Default: read.
    #[serde(default = "read")]
    pub access: MemoryAccess,
}

fn read() -> MemoryAccess {
    MemoryAccess::Read
}

impl MemoryRule {
    /// Returns true if the rule allows every namespace with this prefix. In a requested prefix, `*`
    /// means any part, so only a `*` of the rule covers it.
    pub fn covers(&self, prefix: &[String]) -> bool {
        let meets = |(own, part): (&String, &String)| own == WILDCARD || own == part;
        prefix.len() >= self.namespace.len() && self.namespace.iter().zip(prefix).all(meets)
    }
}

/// Access to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SqlAccess {
    /// The plugin may only execute queries. The parser and the database reject all other
    /// statements.
    ReadOnly,
    /// The plugin may also execute statements that write.
    ReadWrite,
}

/// Access to one database. Serialized as `read-only` or `read-write` if no other field is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SqlRuleRepr", into = "SqlRuleRepr")]
pub struct SqlRule {
    /// Access to the database. The other fields are for read-only access; the configuration rejects
    /// them together with read-write access.
    pub access: SqlAccess,
    /// Tables and views that may be read. `None` allows all except system tables. If set, only
    /// functions that are known to be harmless may be called.
    pub tables: Option<BTreeSet<String>>,
    /// True if the part of the catalog that describes tables may be read.
    pub schema: bool,
    /// Further functions that may be called. This field has an effect only together with `tables`.
    pub functions: BTreeSet<String>,
    /// Time of one statement in milliseconds, if it is shorter than the limit of the plugin.
    pub timeout_ms: Option<u64>,
    /// Rows of one result. A larger result is a failure, and is not truncated.
    pub rows: Option<u64>,
    /// Bytes of one result. A larger result is a failure, and is not truncated.
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

/// The serialized form of a rule.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum SqlRuleRepr {
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

impl From<SqlRuleRepr> for SqlRule {
    fn from(form: SqlRuleRepr) -> Self {
        match form {
            SqlRuleRepr::Plain(access) => access.into(),
            SqlRuleRepr::Full { access, tables, schema, functions, timeout_ms, rows, bytes } => {
                Self { access, tables, schema, functions, timeout_ms, rows, bytes }
            }
        }
    }
}

impl From<SqlRule> for SqlRuleRepr {
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
    fn tool_grants_parse_and_print() {
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
    fn environment_and_folders_are_not_serialized() {
        let folder = FolderRule {
            path: "/srv/reports".into(),
            guest: "/reports".to_owned(),
            access: FolderAccess::ReadWrite,
        };
        let grants = Grants {
            environment: [("REGION".to_owned(), "north".to_owned())].into(),
            folders: vec![folder],
            ..Grants::default()
        };
        assert!(grants.may_write_files());
        let mut json = serde_json::to_value(&grants).unwrap();
        assert_eq!(serde_json::from_value::<Grants>(json.clone()).unwrap(), Grants::default());
        json["folders"] = serde_json::json!([{ "path": "/", "guest": "/" }]);
        json["environment"] = serde_json::json!({ "PATH": "/bin" });
        assert_eq!(serde_json::from_value::<Grants>(json).unwrap(), Grants::default());
    }

    #[test]
    fn memory_rules_cover_namespaces_with_their_prefix() {
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
