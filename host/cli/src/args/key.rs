//! Arguments of `key create|list|revoke`.

use clap::{Args, Subcommand, ValueEnum};
use wattle_api::document::key::NewKeyDocument;
use wattle_api::guard::rate::Rate;
use wattle_api::guard::scope::KeyScope;
use wattle_graph::definition::HumanDuration;

use crate::config::ByteSize;

/// The commands of `wattle key`.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key and print it once
    Create(KeyCreateArgs),
    /// List keys, oldest first
    List,
    /// Revoke a key
    Revoke(KeyRevokeArgs),
}

/// Arguments of `key create`.
#[derive(Clone, Debug, Args)]
pub struct KeyCreateArgs {
    /// Display name
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Tenant of the key [default: none; the key can access the threads of all tenants]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Scope of the key [default: write]
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<ScopeArg>,
    /// Lifetime, such as `30d` [default: unlimited]
    #[arg(long, value_name = "TIME")]
    pub expires: Option<HumanDuration>,
    /// Rate limit, such as `10/s` or `600/m` [default: `server.limits.rate`]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Maximum size of a request body, such as `1MiB` [default: `server.body_limit`]
    #[arg(long, value_name = "SIZE")]
    pub body: Option<ByteSize>,
}

/// The scope of a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeArg {
    /// Read and search
    Read,
    /// As `read`, and change threads, runs, assistants, crons and documents
    Write,
    /// As `write`, and manage keys and model routes of its tenant; without a tenant, all operator
    /// functions
    Admin,
}

impl From<ScopeArg> for KeyScope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Read => Self::Read,
            ScopeArg::Write => Self::Write,
            ScopeArg::Admin => Self::Admin,
        }
    }
}

/// Arguments of `key revoke`.
#[derive(Clone, Debug, Args)]
pub struct KeyRevokeArgs {
    /// Id of the key, as `key list` shows it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Also revoke the keys that were created with this key, for example after a leak
    #[arg(long)]
    pub made: bool,
    /// Revoke even the last active key, which leaves the server open to everyone who can reach it
    #[arg(long)]
    pub open: bool,
}

impl From<&KeyCreateArgs> for NewKeyDocument {
    fn from(args: &KeyCreateArgs) -> Self {
        Self {
            name: args.name.clone(),
            tenant: args.tenant.clone(),
            scopes: args.scopes.iter().copied().map(Into::into).collect(),
            rate: args.rate,
            body_limit_bytes: args.body.map(|size| size.0),
            expires_in_ms: args.expires.map(HumanDuration::as_ms),
        }
    }
}
