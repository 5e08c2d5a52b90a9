//! The implementation of the port `Net`.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Client;
use reqwest::redirect::Policy;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::ports::{BlobStore, Caller, Net};

use crate::config::NetConfig;
use crate::error::NetError;
use crate::exchange::Exchange;
use crate::header::MAX_RESPONSE_HEADERS;
use crate::rate_limit::HostRateLimiter;
use crate::resolver::{GuardedResolver, SystemResolver};
use crate::secret::Secrets;

/// Idle connections to one host that are kept open.
const MAX_IDLE_PER_HOST: usize = 8;

/// Outbound HTTP with its connection pools. It is cheap to share behind an `Arc`.
pub struct OutboundHttp {
    /// Client for rules without `private`. The clients are separate, because a pooled connection is
    /// reused without another name resolution.
    public: Client,
    /// Client for rules with `private`.
    private: Client,
    secrets: Secrets,
    rate_limiter: HostRateLimiter,
}

impl OutboundHttp {
    /// Creates the clients.
    ///
    /// # Errors
    ///
    /// Returns [`NetError::Client`] if a client cannot be created.
    pub fn new(config: &NetConfig, secrets: Secrets) -> Result<Self, NetError> {
        Ok(Self {
            public: client(config, false)?,
            private: client(config, true)?,
            secrets,
            rate_limiter: HostRateLimiter::new(config),
        })
    }

    pub(crate) fn client(&self, private: bool) -> &Client {
        if private { &self.private } else { &self.public }
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(crate) fn rate_limiter(&self) -> &HostRateLimiter {
        &self.rate_limiter
    }
}

impl fmt::Debug for OutboundHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundHttp").finish_non_exhaustive()
    }
}

#[async_trait]
impl Net for OutboundHttp {
    async fn send(
        &self,
        caller: &Caller,
        grants: &Grants,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let limits = &grants.limits.net;
        let allowed = |wanted| u64::from(wanted).min(limits.longest_timeout_ms);
        let timeout = Duration::from_millis(request.timeout_ms.map_or(limits.timeout_ms, allowed));
        let exchange = Exchange::new(self, caller, grants);
        let response = Box::pin(exchange.run(request, blobs));
        tokio::time::timeout(timeout, response)
            .await
            .unwrap_or_else(|_| Err(timeout_failure(timeout)))
    }

    fn share_rates(&self, hosts: u32) {
        self.rate_limiter.set_sharing_hosts(hosts);
    }
}

fn timeout_failure(timeout: Duration) -> Failure {
    let message = format!("the HTTP exchange was not finished within {timeout:?}");
    Failure::new(code::TIMEOUT, message)
        .retryable()
        .with_details(json!({ "timeout_ms": timeout.as_millis() as u64 }))
}

/// Creates a client without redirects, proxies and decompression. This crate handles redirects and
/// bodies. A proxy of the environment would connect to addresses that are not checked. Only HTTP/1
/// is used, so that the header limits do not depend on features that other crates enable.
fn client(config: &NetConfig, allow_private: bool) -> Result<Client, NetError> {
    Client::builder()
        .user_agent(&config.user_agent)
        .dns_resolver(GuardedResolver { allow_private, lookup: SystemResolver })
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
