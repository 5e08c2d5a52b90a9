//! What a plugin asks for and what it is granted: one table for both.

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
    /// Tools of other plugins and of servers, such as `date/parse` or `mcp:graph/*`.
    pub tools: BTreeSet<ToolGrant>,
    /// Parts of the long-term memory, such as `{ namespace = ["users"], access = "read-write" }`.
    pub memory: BTreeSet<MemoryRule>,
    /// Model routes that a web handler may set for a tenant.
    pub tenant_routes: BTreeSet<String>,
    /// What becomes of calls that were under way when the host stopped: `fail` without it, `ask` or
    /// `retry`. The operator's word alone.
    pub in_doubt: InDoubt,
    /// Limits; those of the host where nothing is said.
    pub limits: LimitTable,
    /// What an app asks for on behalf of plugins that are not its own; only in `app.toml`.
    pub plugins: BTreeMap<PluginName, Needs>,
}

impl Needs {
    /// The databases by name; of two entries for one, both hold.
    pub fn databases(&self) -> BTreeMap<String, SqlRule> {
        sql_grant::by_name(&self.sql)
    }
}

/// Limits of one guest call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitTable {
    /// Linear memory; 64 MiB without it.
    pub memory: Option<ByteSize>,
    /// Time it may compute, waiting not counted; 2 s without it.
    pub cpu: Option<Span>,
    /// Wall time of one call of the guest, waiting counted; 10 minutes without it.
    pub call_deadline: Option<Span>,
    /// Host calls of one task; 10,000 without it.
    pub host_calls: Option<u32>,
    /// Bytes of an outcome; 4 MiB without it.
    pub output: Option<ByteSize>,
}

impl LimitTable {
    /// All limits, with the defaults of the host.
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
