//! Access to the API and limits of requests, as the operator configures them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::HeaderName;
use wattle_graph::id::Digest;

use crate::guard::limits::Limits;
use crate::guard::user::UserHeader;

/// Default maximum size of a request body in bytes. It fits an image of about 10 MiB as base64 in
/// JSON.
pub const DEFAULT_BODY_LIMIT_BYTES: usize = 16 << 20;

/// Default time within which a client must read sent data. Slow networks need seconds.
pub const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Access to the API: accepted hosts, origins and keys, and limits of requests.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// Accepted names in the `Host` header, in addition to `localhost` and IP address literals.
    pub hosts: BTreeSet<String>,
    /// Origins of browser pages that can send requests. Empty by default, which disables CORS.
    pub origins: BTreeSet<String>,
    /// Digests of the accepted keys of the operator, from [`ApiConfig::key_digest`]. If no key
    /// exists, neither configured nor created, every caller is accepted. This is secure on a
    /// loopback address only.
    pub keys: BTreeSet<Digest>,
    /// True to require a key even if no key exists. The host sets this field for an address that
    /// other machines can reach, because the last key can be revoked while the host runs.
    pub requires_key: bool,
    /// Limits of the number and rate of requests.
    pub limits: Limits,
    /// Maximum size of a request body in bytes; see [`DEFAULT_BODY_LIMIT_BYTES`].
    pub body_limit_bytes: usize,
    /// Time within which a client must read sent data; see [`DEFAULT_STALL_TIMEOUT`].
    pub stall_timeout: Duration,
    /// Tenants by the digests of their accepted keys. A request with such a key belongs to the
    /// tenant.
    pub tenant_keys: BTreeMap<Digest, String>,
    /// Header that contains the tenant of a request. A proxy sets the header. If the header is
    /// configured, threads belong to tenants. With `None` (the default), the header is ignored.
    pub tenant_header: Option<HeaderName>,
    /// Tenant of requests that name no tenant by key or header. With `None`, such a request is
    /// rejected if `tenant_header` is set, and has no tenant otherwise.
    pub default_tenant: Option<String>,
    /// Header that contains the user of a request, whom events record. With `None` (the default),
    /// the header is ignored.
    pub user_header: Option<UserHeader>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            keys: BTreeSet::new(),
            requires_key: false,
            limits: Limits::default(),
            body_limit_bytes: DEFAULT_BODY_LIMIT_BYTES,
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            tenant_keys: BTreeMap::new(),
            tenant_header: None,
            default_tenant: None,
            user_header: None,
        }
    }
}

impl ApiConfig {
    /// Returns the digest of a key. Comparing digests is safe against timing attacks.
    pub fn key_digest(secret: &str) -> Digest {
        Digest::of(secret.as_bytes())
    }
}
