//! What the operator allows a plugin.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::limit::Limits;

/// Everything that a plugin may use. What is not here is `denied`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// Model routes by name.
    pub llm: BTreeSet<String>,
    /// Hosts for outbound HTTP.
    pub http: Vec<HttpRule>,
    /// Databases by name.
    pub sql: BTreeMap<String, SqlAccess>,
    /// Limits.
    pub limits: Limits,
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

/// What may be done with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SqlAccess {
    /// Queries only, enforced by parser and database.
    ReadOnly,
    /// Statements that write, too.
    ReadWrite,
}
