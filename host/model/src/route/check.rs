//! Validation of the settings of a route.

use crate::config::{CALL_TIMEOUT, MAX_RETRIES, RouteConfig};
use crate::error::ConfigError;
use crate::provider::Providers;

pub(super) fn check(name: &str, route: &RouteConfig) -> Result<(), ConfigError> {
    if route.timeout.is_zero() || route.timeout > CALL_TIMEOUT {
        return invalid_field(name, "timeout", format!("must be between 1ms and {CALL_TIMEOUT:?}"));
    }
    if route.retries > MAX_RETRIES {
        let reason = format!("must be at most {MAX_RETRIES}; add fallbacks instead");
        return invalid_field(name, "retries", reason);
    }
    if !route.temperature.is_none_or(|value| (0.0..=2.0).contains(&value)) {
        return invalid_field(name, "temperature", "must be between 0 and 2".to_owned());
    }
    Ok(())
}

pub(super) fn invalid_field<T>(
    route: &str,
    field: &'static str,
    reason: String,
) -> Result<T, ConfigError> {
    Err(ConfigError::Route { route: route.to_owned(), field, reason })
}

pub(super) fn unknown_provider(route: &str, provider: &str, providers: &Providers) -> ConfigError {
    let mut known: Vec<&str> = providers.keys().map(String::as_str).collect();
    known.sort_unstable();
    ConfigError::UnknownProvider {
        route: route.to_owned(),
        provider: provider.to_owned(),
        known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
    }
}
