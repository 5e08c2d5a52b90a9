//! The API keys of requests, and the configured keys.

use axum::http::{Extensions, HeaderMap, header};
use wattle_graph::id::Digest;

use crate::config::ApiConfig;
use crate::guard::authenticated_key::AuthenticatedKey;

/// Number of hex digits of the digest that identify a configured key in the rate limiter.
const ID_DIGITS: usize = 16;

/// Returns true if the configuration requires requests to have a key, whether or not a key was
/// created.
pub(crate) fn requires_key(config: &ApiConfig) -> bool {
    config.requires_key || !config.keys.is_empty() || !config.tenant_keys.is_empty()
}

/// Returns the key of a request. The guards put it into the extensions; without guards, only
/// configured keys are found.
pub(crate) fn find(
    config: &ApiConfig,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Option<AuthenticatedKey> {
    let authenticated = extensions.get::<AuthenticatedKey>().cloned();
    authenticated.or_else(|| find_configured(config, headers))
}

/// Returns the configured key of a request.
pub(super) fn find_configured(config: &ApiConfig, headers: &HeaderMap) -> Option<AuthenticatedKey> {
    key_digests(headers).find_map(|key| {
        let tenant = config.tenant_keys.get(&key).cloned();
        let is_known = tenant.is_some() || config.keys.contains(&key);
        is_known.then(|| AuthenticatedKey::configured(key.to_hex()[..ID_DIGITS].to_owned(), tenant))
    })
}

/// Returns the digests of all keys that the headers of a request contain.
pub(super) fn key_digests(headers: &HeaderMap) -> impl Iterator<Item = Digest> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    let api_key = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    bearer.into_iter().chain(api_key).map(ApiConfig::key_digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tenant of the matching configured key, or `-` for a key without a tenant.
    fn check(config: &ApiConfig, headers: &[(&'static str, &str)]) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        find_configured(config, &map).map(|key| key.tenant().unwrap_or("-").to_owned())
    }

    #[test]
    fn configured_keys_are_found_in_x_api_key_and_authorization() {
        let config = ApiConfig {
            keys: [ApiConfig::key_digest("s3cret")].into(),
            tenant_keys: [(ApiConfig::key_digest("k-acme"), "acme".to_owned())].into(),
            ..ApiConfig::default()
        };
        assert_eq!(check(&config, &[]), None);
        assert_eq!(check(&config, &[("x-api-key", "nope")]), None);
        assert_eq!(check(&config, &[("x-api-key", "s3cret")]), Some("-".to_owned()));
        assert_eq!(check(&config, &[("authorization", "Bearer s3cret")]), Some("-".to_owned()));
        let acme = Some("acme".to_owned());
        assert_eq!(check(&config, &[("authorization", "bearer k-acme")]), acme);
        let both = [("authorization", "Bearer of-somebody-else"), ("x-api-key", "k-acme")];
        assert_eq!(check(&config, &both), acme);
        assert!(requires_key(&config) && !requires_key(&ApiConfig::default()));
    }
}
