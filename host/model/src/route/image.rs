//! Image generation by the candidates of a route.

use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{GeneratedImage, ImageRequest};
use wattle_run::ports::BlobStore;

use crate::config::CALL_TIMEOUT;
use crate::provider::{CallScope, ImageBytes, ImageSpec, RequestCount};
use crate::route::Route;
use crate::route::attempt_log::AttemptLog;

/// Maximum images of one call, which bounds the cost and the memory of the call.
const MAX_IMAGES: u32 = 8;

/// Maximum characters of a prompt. Image models use a few hundred words at most.
const MAX_PROMPT_CHARS: usize = 32_000;

/// Generated images with their provider and model.
pub(crate) struct GeneratedImages {
    provider: String,
    model: String,
    images: Vec<ImageBytes>,
}

impl Route {
    /// Calls the candidates one after the other until one has generated at least one image. The
    /// work is counted to the owner of `scope`.
    pub(crate) async fn generate_images(
        &self,
        scope: CallScope<'_>,
        request: &ImageRequest,
    ) -> Result<GeneratedImages, Failure> {
        let mut log = AttemptLog::new(&self.name);
        let made = self.try_candidates_for_images(scope, request, &mut log);
        match timeout(CALL_TIMEOUT, made).await {
            Ok(made) => made,
            Err(_) => Err(log.timed_out(CALL_TIMEOUT)),
        }
    }

    async fn try_candidates_for_images(
        &self,
        scope: CallScope<'_>,
        request: &ImageRequest,
        log: &mut AttemptLog<'_>,
    ) -> Result<GeneratedImages, Failure> {
        let image_spec = image_spec(request)?;
        let bounds = self.limits(&request.tries)?;
        for candidate in self.selected_candidates(&request.tries)? {
            let requests = RequestCount::default();
            let spec = self.attempt_spec(scope, candidate, bounds, &requests);
            match candidate.provider.generate_images(spec, image_spec).await {
                Ok(images) => {
                    let (provider, model) =
                        (candidate.target.provider.clone(), candidate.model.clone());
                    return Ok(GeneratedImages { provider, model, images });
                }
                Err(failure) => log.record_failure(candidate, &requests, failure, false)?,
            }
        }
        Err(log.all_failed())
    }
}

impl GeneratedImages {
    /// Stores the images as blobs. `link` stays empty; the engine sets it.
    pub(crate) async fn store(self, blobs: &dyn BlobStore) -> Result<Vec<GeneratedImage>, Failure> {
        let mut kept = Vec::with_capacity(self.images.len());
        for ImageBytes { bytes, media_type } in self.images {
            kept.push(GeneratedImage {
                blob: blobs.put(bytes.into(), media_type).await?,
                media_type: media_type.to_owned(),
                provider: self.provider.clone(),
                model: self.model.clone(),
                link: String::new(),
            });
        }
        Ok(kept)
    }
}

fn image_spec(request: &ImageRequest) -> Result<ImageSpec<'_>, Failure> {
    let refused = |reason: String| Err(Failure::new(code::INVALID, reason));
    if !(1..=MAX_IMAGES).contains(&request.count) {
        let count = request.count;
        return refused(format!("the number of images must be 1 to {MAX_IMAGES}, not {count}"));
    }
    let prompt = request.prompt.trim();
    if prompt.is_empty() || prompt.chars().nth(MAX_PROMPT_CHARS).is_some() {
        return refused(format!(
            "the prompt of an image must have 1 to {MAX_PROMPT_CHARS} characters"
        ));
    }
    let aspect_ratio = request.aspect_ratio.as_deref();
    if let Some(ratio) = aspect_ratio.filter(|ratio| !is_ratio(ratio)) {
        return refused(format!("`{ratio}` is not an aspect ratio; write for example `16:9`"));
    }
    Ok(ImageSpec { prompt, count: request.count, aspect_ratio })
}

fn is_ratio(text: &str) -> bool {
    let side = |text: &str| {
        matches!(text.len(), 1..=2)
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && !text.bytes().all(|byte| byte == b'0')
    };
    text.split_once(':').is_some_and(|(width, height)| side(width) && side(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aspect_ratio_is_two_small_numbers() {
        for ratio in ["1:1", "16:9", "9:16", "21:9"] {
            assert!(is_ratio(ratio), "{ratio}");
        }
        for text in ["", "16", "16:", ":9", "0:1", "16x9", "1600:900", "16:9:1", "a:b", "1:-"] {
            assert!(!is_ratio(text), "{text}");
        }
    }
}
