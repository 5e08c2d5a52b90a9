//! Performs model calls: completions as deltas, generated images as blobs.

use wattle_graph::llm::{Completion, CompletionRequest, GeneratedImage, ImageRequest};

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::unwind::CallError;

impl Effect for CompletionRequest {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Completion, CallError> {
        context.complete_streaming(self, |_| {}).await
    }
}

impl Effect for ImageRequest {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Vec<GeneratedImage>, CallError> {
        let ports = context.ports;
        let made = ports.model.generate_images(context.caller, self, &context.blobs()).await?;
        let tenant = context.caller.tenant.as_deref();
        let linked = |image: GeneratedImage| GeneratedImage {
            link: ports.links.path(tenant, image.blob),
            ..image
        };
        Ok(made.into_iter().map(linked).collect())
    }
}
