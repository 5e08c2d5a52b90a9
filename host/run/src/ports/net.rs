//! Port: outbound HTTP.

use async_trait::async_trait;
use wattle_graph::failure::Failure;

use crate::grant::Grants;
use crate::hostcall::http::{HttpRequest, HttpResponse};
use crate::ports::{BlobStore, Caller};

/// Outbound HTTP.
#[async_trait]
pub trait Net: Send + Sync {
    /// Sends one request under the rules and limits of grants, and follows redirects. A rule must
    /// allow every hop, and no hop may reach a private address unless its rule allows that. The
    /// adapter inserts secrets, which never appear in a response or a failure. A `denied` failure
    /// names the rule to add and its table. Dropping the future must end the outgoing request.
    async fn send(
        &self,
        caller: &Caller,
        grants: &Grants,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure>;

    /// Sets the number of hosts that share the work. A rate limit of a service applies to all of
    /// these hosts together, so each host uses its share of the limit.
    fn share_rates(&self, hosts: u32) {
        let _ = hosts;
    }
}
