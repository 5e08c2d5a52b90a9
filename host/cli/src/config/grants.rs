//! What a plugin requests and what it is granted, in one form.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wattle_graph::definition::Span;
use wattle_graph::id::PluginName;
use wattle_run::grant::{HttpRule, InDoubt, MemoryRule, SqlRule, ToolGrant};
use wattle_run::limit::Limits;

use crate::config::ByteSize;
use crate::config::sql_grant::{self, SqlGrant};

/// `[needs]` of an app and `[grants.<plugin>]` of an operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// Model routes.
    pub llm: BTreeSet<String>,
    /// Hosts for outbound HTTP.
    pub http: Vec<HttpRule>,
    /// Databases.
    pub sql: Vec<SqlGrant>,
    /// Tools of other plugins and of MCP servers, such as `date/parse` or `mcp:graph/*`.
    pub tools: BTreeSet<ToolGrant>,
    /// Parts of the long-term memory, such as `{ namespace = ["users"], access = "read-write" }`.
    pub memory: BTreeSet<MemoryRule>,
    /// Model routes that a web handler may set for a tenant.
    pub tenant_routes: BTreeSet<String>,
    /// Policy for calls in doubt: `fail` (default), `ask` or `retry`. Only the operator can set it.
    pub in_doubt: InDoubt,
    /// Limits. Default: those of the host.
    pub limits: LimitTable,
    /// What an app requests for plugins that are not its own; only in `app.toml`.
    pub plugins: BTreeMap<PluginName, Needs>,
}

impl Needs {
    /// Returns the rules by database. Two entries for one database are intersected.
    pub fn databases(&self) -> BTreeMap<String, SqlRule> {
        sql_grant::by_name(&self.sql)
    }
}

/// Limits of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitTable {
    /// Linear memory of a guest. Default: 64 MiB.
    pub memory: Option<ByteSize>,
    /// CPU time of a guest call. Default: 2 s.
    pub cpu: Option<Span>,
    /// Timeout of a guest call. Default: 10 minutes.
    pub call_deadline: Option<Span>,
    /// Number of host calls of a task. Default: 10,000.
    pub host_calls: Option<u32>,
    /// Size of an outcome. Default: 4 MiB.
    pub output: Option<ByteSize>,
}

impl LimitTable {
    /// Returns all limits, with the defaults of the host.
    pub fn limits(&self) -> Limits {
        let defaults = Limits::default();
        Limits {
            memory_bytes: self.memory.map_or(defaults.memory_bytes, |size| size.0),
            cpu_ms: self.cpu.map_or(defaults.cpu_ms, Span::as_ms),
            node_timeout_ms: self.call_deadline.map_or(defaults.node_timeout_ms, Span::as_ms),
            host_calls: self.host_calls.unwrap_or(defaults.host_calls),
            output_bytes: self.output.map_or(defaults.output_bytes, |size| size.0),
            ..defaults
        }
    }
}
