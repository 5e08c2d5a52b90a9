//! The implementation of the port `Net`.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::lookups::on_behalf_of;
use wattle_run::ports::{BlobStore, Caller, Net};
use wattle_run::service_memory::ServiceMemory;

use crate::clients::Clients;
use crate::config::NetConfig;
use crate::error::NetError;
use crate::exchange::Exchange;
use crate::secret::Secrets;

/// Outbound HTTP with its connection pools. Callers share one instance behind an `Arc`.
pub struct OutboundHttp {
    clients: Clients,
}

impl OutboundHttp {
    /// Creates the HTTP clients.
    ///
    /// # Errors
    ///
    /// Returns [`NetError::Client`] if a client cannot be created.
    pub fn new(config: &NetConfig, secrets: Secrets) -> Result<Self, NetError> {
        Ok(Self { clients: Clients::new(config, secrets)? })
    }

    /// Sets the memory of responses, which other adapters can share. The default is a memory of
    /// their own with the default limit.
    #[must_use]
    pub fn with_memory(mut self, memory: ServiceMemory) -> Self {
        self.clients.set_memory(memory);
        self
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
        let exchange = Exchange::new(&self.clients, caller, grants);
        let response = Box::pin(on_behalf_of(caller.owner, exchange.run(request, blobs)));
        tokio::time::timeout(timeout, response)
            .await
            .unwrap_or_else(|_| Err(timeout_failure(timeout)))
    }

    fn share_rates(&self, hosts: u32) {
        self.clients.rate_limiter().set_sharing_hosts(hosts);
    }
}

fn timeout_failure(timeout: Duration) -> Failure {
    let message = format!("the HTTP exchange was not finished within {timeout:?}");
    Failure::new(code::TIMEOUT, message)
        .retryable()
        .with_details(json!({ "timeout_ms": timeout.as_millis() as u64 }))
}
