//! Requested and granted permissions of a plugin, in one format.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_graph::id::PluginName;
use wattle_run::grant::{HttpRule, InDoubtPolicy, MemoryRule, SqlRule, ToolGrant};
use wattle_run::limit::Limits;

use crate::config::ByteSize;
use crate::config::sql_grant::{self, SqlGrant};

/// Requested permissions in `[needs]` of an app, or granted ones in `[grants.<plugin>]` of the
/// operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// Model routes that the plugin can call.
    pub llm: BTreeSet<String>,
    /// Hosts to which the plugin can send HTTP requests.
    pub http: Vec<HttpRule>,
    /// Databases that the plugin can access.
    pub sql: Vec<SqlGrant>,
    /// Tools of other plugins and of MCP servers, such as `date/parse` or `mcp:graph/*`.
    pub tools: BTreeSet<ToolGrant>,
    /// Namespaces of the long-term memory, such as
    /// `{ namespace = ["users"], access = "read-write" }`.
    pub memory: BTreeSet<MemoryRule>,
    /// Model routes that a web handler may set for a tenant.
    pub tenant_routes: BTreeSet<String>,
    /// Policy for calls in doubt: `fail` (default), `ask` or `retry`. Only the operator can set it.
    pub in_doubt: InDoubtPolicy,
    /// Resource limits. Default: those of the host.
    pub limits: LimitTable,
    /// Permissions that an app requests for plugins of others; only in `app.toml`.
    pub plugins: BTreeMap<PluginName, Needs>,
}

impl Needs {
    /// Returns the rules by database. If a database has two entries, their rules are intersected.
    pub fn databases(&self) -> BTreeMap<String, SqlRule> {
        sql_grant::by_name(&self.sql)
    }
}

/// Resource limits of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitTable {
    /// Maximum linear memory of a guest. Default: 64 MiB.
    pub memory: Option<ByteSize>,
    /// Maximum CPU time of a guest call. Default: 2 s.
    pub cpu: Option<HumanDuration>,
    /// Timeout of a guest call. Default: 10 minutes.
    pub call_deadline: Option<HumanDuration>,
    /// Maximum number of host calls of a task. Default: 10,000.
    pub host_calls: Option<u32>,
    /// Maximum size of an outcome. Default: 4 MiB.
    pub output: Option<ByteSize>,
}

impl LimitTable {
    /// Returns all limits, with the defaults of the host.
    pub fn limits(&self) -> Limits {
        let defaults = Limits::default();
        Limits {
            memory_bytes: self.memory.map_or(defaults.memory_bytes, |size| size.0),
            cpu_ms: self.cpu.map_or(defaults.cpu_ms, HumanDuration::as_ms),
            node_timeout_ms: self
                .call_deadline
                .map_or(defaults.node_timeout_ms, HumanDuration::as_ms),
            host_calls: self.host_calls.unwrap_or(defaults.host_calls),
            output_bytes: self.output.map_or(defaults.output_bytes, |size| size.0),
            ..defaults
        }
    }
}
