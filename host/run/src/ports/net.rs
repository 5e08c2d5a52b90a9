//! Port: outbound HTTP.

use async_trait::async_trait;
use wattle_graph::failure::Failure;

use crate::grant::HttpRule;
use crate::hostcall::http::{HttpRequest, HttpResponse};
use crate::limit::NetLimits;
use crate::ports::{BlobStore, Caller};

/// Outbound HTTP.
#[async_trait]
pub trait Net: Send + Sync {
    /// Sends one request under the given rules, redirects included: every hop must be allowed by
    /// a rule and must not lead to a private address unless the rule says so. Secrets are filled
    /// in here and never appear in an answer or a failure. `denied` names the rule to add.
    /// Dropping the future must end the outgoing request.
    async fn send(
        &self,
        caller: &Caller,
        rules: &[HttpRule],
        limits: &NetLimits,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure>;

    /// Tells that so many hosts share the work. A rate that is meant for a service holds over all of
    /// them, so each uses its part of it.
    fn share_rates(&self, hosts: u32) {
        let _ = hosts;
    }
}
