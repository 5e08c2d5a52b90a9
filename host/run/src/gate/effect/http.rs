//! Sends HTTP requests through the network port, after their delay.

use crate::gate::effect::{Effect, Site};
use crate::gate::unwind::Stop;
use crate::hostcall::http::{HttpRequest, HttpResponse};

impl Effect for HttpRequest {
    async fn perform(&self, site: &Site<'_>) -> Result<HttpResponse, Stop> {
        let Site { ports, caller, grants, .. } = site;
        if let Some(delay) = self.delay() {
            tokio::time::sleep(delay).await;
        }
        let (rules, limits) = (&grants.http, &grants.limits.net);
        Ok(ports.net.send(caller, rules, limits, self, ports.blobs.as_ref()).await?)
    }
}
