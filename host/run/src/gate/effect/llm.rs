//! Performs model calls: completions as deltas, generated images as blobs.

use wattle_graph::llm::{Completion, CompletionRequest, GeneratedImage, ImageRequest};

use crate::gate::effect::{Effect, Site};
use crate::gate::unwind::Stop;

impl Effect for CompletionRequest {
    async fn perform(&self, site: &Site<'_>) -> Result<Completion, Stop> {
        site.streaming(self, |_| {}).await
    }
}

impl Effect for ImageRequest {
    async fn perform(&self, site: &Site<'_>) -> Result<Vec<GeneratedImage>, Stop> {
        let ports = site.ports;
        let made = ports.model.generate_images(site.caller, self, &site.blobs()).await?;
        let tenant = site.caller.tenant.as_deref();
        let linked = |image: GeneratedImage| GeneratedImage {
            link: ports.links.path(tenant, image.blob),
            ..image
        };
        Ok(made.into_iter().map(linked).collect())
    }
}
