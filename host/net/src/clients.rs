//! HTTP clients, and the secrets, request rates and memory that all requests share.

use reqwest::Client;
use reqwest::redirect::Policy;
use wattle_run::lookups::{Lookups, SystemResolver};
use wattle_run::service_memory::ServiceMemory;

use crate::config::NetConfig;
use crate::error::NetError;
use crate::header::MAX_RESPONSE_HEADERS;
use crate::rate_limit::HostRateLimiter;
use crate::resolver::GuardedResolver;
use crate::secret::Secrets;

/// Maximum idle connections to one target host in the pool of a client.
const MAX_IDLE_PER_HOST: usize = 8;

/// HTTP clients with their connection pools, and the secrets, the request rates and the memory of
/// the responses of all requests.
pub(crate) struct Clients {
    /// Client for rules without `private`. The clients are separate, because a client reuses a
    /// pooled connection without another check of its address.
    public: Client,
    /// Client for rules with `private`.
    private: Client,
    secrets: Secrets,
    rate_limiter: HostRateLimiter,
    memory: ServiceMemory,
}

impl Clients {
    /// Creates the clients.
    ///
    /// # Errors
    ///
    /// Returns [`NetError::Client`] if a client cannot be created.
    pub(crate) fn new(config: &NetConfig, secrets: Secrets) -> Result<Self, NetError> {
        let lookups = Lookups::shared();
        Ok(Self {
            public: client(config, false, &lookups)?,
            private: client(config, true, &lookups)?,
            secrets,
            rate_limiter: HostRateLimiter::new(config),
            memory: ServiceMemory::default(),
        })
    }

    pub(crate) fn set_memory(&mut self, memory: ServiceMemory) {
        self.memory = memory;
    }

    pub(crate) fn client(&self, private: bool) -> &Client {
        if private { &self.private } else { &self.public }
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns the memory of responses that arrive.
    pub(crate) fn memory(&self) -> &ServiceMemory {
        &self.memory
    }

    pub(crate) fn rate_limiter(&self) -> &HostRateLimiter {
        &self.rate_limiter
    }
}

/// Creates a client without redirects, proxies and decompression. This crate handles redirects and
/// bodies. A proxy from environment variables would connect to addresses that the host has not
/// checked. Only HTTP/1 is used, so that the header limits do not depend on Cargo features that
/// other crates enable.
fn client(config: &NetConfig, allow_private: bool, lookups: &Lookups) -> Result<Client, NetError> {
    let (lookups, lookup) = (lookups.clone(), SystemResolver);
    Client::builder()
        .user_agent(&config.user_agent)
        .dns_resolver(GuardedResolver { allow_private, lookups, lookup })
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .http1_only()
        .http1_max_headers(MAX_RESPONSE_HEADERS)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .build()
        .map_err(NetError::Client)
}
