//! Arguments of `key create|list|revoke`.

use clap::{Args, Subcommand, ValueEnum};
use wattle_api::document::key::NewKeyDocument;
use wattle_api::guard::rate::Rate;
use wattle_api::guard::scope::KeyScope;
use wattle_graph::definition::Span;

use crate::config::ByteSize;

/// Verbs for API keys.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key and print it, this once
    Create(KeyCreateArgs),
    /// List the keys that were made, oldest first
    List,
    /// Revoke a key: it opens nothing any more
    Revoke(KeyRevokeArgs),
}

/// Arguments of `key create`.
#[derive(Clone, Debug, Args)]
pub struct KeyCreateArgs {
    /// What people call it
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The tenant that it stands for [default: none; it is for the threads of all]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// What it opens [default: write]
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<ScopeWord>,
    /// How long it opens anything, such as `30d` [default: for ever]
    #[arg(long, value_name = "TIME")]
    pub expires: Option<Span>,
    /// How often it may be used, such as `10/s` or `600/m` [default: `server.limits.rate`]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Largest request body, such as `1MiB` [default: `server.body_limit`]
    #[arg(long, value_name = "SIZE")]
    pub body: Option<ByteSize>,
}

/// What a key opens.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeWord {
    /// Reading and searching
    Read,
    /// That, and all work on threads, runs, assistants and documents
    Write,
    /// That, and keys and model routes of its tenant; without a tenant all that is the operator's
    Admin,
}

impl From<ScopeWord> for KeyScope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Read => Self::Read,
            ScopeWord::Write => Self::Write,
            ScopeWord::Admin => Self::Admin,
        }
    }
}

/// Arguments of `key revoke`.
#[derive(Clone, Debug, Args)]
pub struct KeyRevokeArgs {
    /// Id of the key, as `key list` shows it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Revoke all keys that came to be by it, too, as after a leak
    #[arg(long)]
    pub made: bool,
    /// Revoke it also if it is the last one, so that the host is open to everybody who reaches it
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
            expires_in_ms: args.expires.map(Span::as_ms),
        }
    }
}
