//! `[auth]` and `[tenants]`: API keys; `[server.limits]`: what callers may take.

use serde::Deserialize;
use wattle_api::guard::limits::{ALL_OPEN_REQUESTS, Limits, OPEN_REQUESTS};
use wattle_api::guard::rate::Rate;

use crate::config::TenantLimits;

/// `[auth]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// The environment variable that holds the accepted keys, separated by commas. Without it, or
    /// if the variable is empty, and without keys that `wattle key create` made, no key is needed,
    /// and only loopback addresses are listened on.
    pub keys_env: Option<String>,
}

impl AuthConfig {
    /// The keys, read from the environment.
    pub fn keys(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        read(self.keys_env.as_deref(), env)
    }
}

/// `[server.limits]`: how often callers may ask, and how much at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallerLimits {
    /// Requests of one key that has no rate of its own, such as `50/s`; as many as it likes without
    /// it.
    pub rate: Option<Rate>,
    /// Requests of one address without a known key; as many as it likes without it.
    pub address_rate: Option<Rate>,
    /// Requests that one key, or one address without, may have open at once, streams among them.
    pub open: usize,
    /// Requests that all may have open at once. Without it 4,096, or four times `open` if that is
    /// more.
    pub all_open: Option<usize>,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self { rate: None, address_rate: None, open: OPEN_REQUESTS, all_open: None }
    }
}

impl From<&CallerLimits> for Limits {
    fn from(limits: &CallerLimits) -> Self {
        let CallerLimits { rate, address_rate, open, all_open } = *limits;
        let all_open = all_open.unwrap_or_else(|| ALL_OPEN_REQUESTS.max(open.saturating_mul(4)));
        Self { key_rate: rate, address_rate, open, all_open }
    }
}

/// `[tenants.<name>]`: those on whose behalf requests come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// The environment variable that holds the tenant's keys, separated by commas: a request with
    /// one of them is the tenant's.
    pub keys_env: Option<String>,
    /// What it may take; as `limits.tenant` says of what is left out.
    pub limits: TenantLimits,
}

impl TenantConfig {
    /// The keys, read from the environment.
    pub fn keys(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        read(self.keys_env.as_deref(), env)
    }
}

fn read(variable: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let keys = variable.and_then(env).unwrap_or_default();
    keys.split(',').map(str::trim).filter(|key| !key.is_empty()).map(Into::into).collect()
}
