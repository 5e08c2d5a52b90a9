//! Sends HTTP requests through the network port, after the requested delay.

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::unwind::CallError;
use crate::hostcall::http::{HttpRequest, HttpResponse};

impl Effect for HttpRequest {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<HttpResponse, CallError> {
        let EffectContext { ports, caller, grants, .. } = context;
        if let Some(delay) = self.delay() {
            tokio::time::sleep(delay).await;
        }
        Ok(ports.net.send(caller, grants, self, ports.blobs.as_ref()).await?)
    }
}
