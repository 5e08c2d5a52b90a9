//! `[auth]` and `[tenants]`: API keys. `[server.limits]`: limits of callers.

use serde::Deserialize;
use wattle_api::guard::limits::{
    DEFAULT_ALL_OPEN_REQUESTS, DEFAULT_OPEN_REQUESTS, Limits, MIN_LARGEST_RESPONSES,
};
use wattle_api::guard::rate::Rate;
use wattle_run::memory_budget::MemoryBudget;

use crate::config::{ByteSize, TenantLimits};

/// `[auth]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Environment variable with the accepted keys, separated by commas. If neither the
    /// configuration nor the store has keys, requests need no key, and the server listens only on
    /// loopback addresses.
    pub keys_env: Option<String>,
}

impl AuthConfig {
    /// Reads the keys from the environment.
    pub fn keys(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        read_keys(self.keys_env.as_deref(), env)
    }
}

/// `[server.limits]`: rate limits, and the number of open requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallerLimits {
    /// Rate limit of a key without its own limit, such as `50/s`. Default: unlimited.
    pub rate: Option<Rate>,
    /// Rate limit of an IP address for requests without a valid key. Default: unlimited.
    pub address_rate: Option<Rate>,
    /// Maximum number of open requests, including streams, of one key, or of one IP address without
    /// a key.
    pub open: usize,
    /// Maximum number of open requests of all callers. Default: 4,096, or four times `open` if that
    /// is more.
    pub all_open: Option<usize>,
    /// Maximum total size of responses that are not sent yet. Default: the part of responses in
    /// the budget of memory, or twice `limits.state_bytes` if that is more.
    pub response_bytes: Option<ByteSize>,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            rate: None,
            address_rate: None,
            open: DEFAULT_OPEN_REQUESTS,
            all_open: None,
            response_bytes: None,
        }
    }
}

impl CallerLimits {
    /// Returns the limits of a host whose states have at most `state_bytes` bytes.
    pub fn to_limits(&self, state_bytes: u64, budget: &MemoryBudget) -> Limits {
        let Self { rate, address_rate, open, all_open, response_bytes } = *self;
        let all_open =
            all_open.unwrap_or_else(|| DEFAULT_ALL_OPEN_REQUESTS.max(open.saturating_mul(4)));
        let largest_states = state_bytes.saturating_mul(MIN_LARGEST_RESPONSES);
        let usual = budget.responses_bytes.max(largest_states);
        Limits {
            key_rate: rate,
            address_rate,
            open,
            all_open,
            body_bytes: budget.bodies_bytes as usize,
            response_bytes: response_bytes.map_or(usual, |size| size.0) as usize,
        }
    }
}

/// `[tenants.<name>]`: a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// Environment variable with the keys of the tenant, separated by commas. A request with one of
    /// these keys belongs to the tenant.
    pub keys_env: Option<String>,
    /// Limits of the tenant, which override `[limits.tenant]`.
    pub limits: TenantLimits,
}

impl TenantConfig {
    /// Reads the keys from the environment.
    pub fn keys(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        read_keys(self.keys_env.as_deref(), env)
    }
}

fn read_keys(variable: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let keys = variable.and_then(env).unwrap_or_default();
    keys.split(',').map(str::trim).filter(|key| !key.is_empty()).map(Into::into).collect()
}
