//! `[auth]` and `[tenants]`: API keys.

use serde::Deserialize;

/// `[auth]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// The environment variable that holds the accepted keys, separated by commas. Without it, or
    /// if the variable is empty, no key is needed, and only loopback addresses are listened on.
    pub keys_env: Option<String>,
}

impl AuthConfig {
    /// The keys, read from the environment.
    pub fn keys(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        read(self.keys_env.as_deref(), env)
    }
}

/// `[tenants.<name>]`: those on whose behalf requests come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// The environment variable that holds the tenant's keys, separated by commas: a request with
    /// one of them is the tenant's.
    pub keys_env: Option<String>,
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
