//! A network that never responds.

use async_trait::async_trait;
use tokio::sync::Notify;
use wattle_graph::failure::Failure;
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::ports::{BlobStore, Caller, Net};

/// A network that never responds.
#[derive(Default)]
pub(crate) struct Silence {
    /// Notified when a request arrives.
    pub(crate) arrived: Notify,
}

#[async_trait]
impl Net for Silence {
    async fn send(
        &self,
        _caller: &Caller,
        _grants: &Grants,
        _request: &HttpRequest,
        _blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        self.arrived.notify_one();
        std::future::pending().await
    }
}
