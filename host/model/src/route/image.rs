//! Image generation by the candidates of a route.

use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{GeneratedImage, ImageRequest};
use wattle_run::ports::BlobStore;

use crate::provider::{Asks, Picture, Wish};
use crate::route::asked::Asked;
use crate::route::{CALL_TIMEOUT, Route};

/// Maximum images of one call, which bounds its cost and its memory.
const PICTURES: u32 = 8;

/// Maximum characters of a prompt. Image models use a few hundred words at most.
const PROMPT_CHARS: usize = 32_000;

/// Generated images with their provider and model.
pub(crate) struct Made {
    provider: String,
    model: String,
    pictures: Vec<Picture>,
}

impl Route {
    /// Calls the candidates one after the other until one has generated at least one image.
    pub(crate) async fn make_images(&self, request: &ImageRequest) -> Result<Made, Failure> {
        let mut asked = Asked::new(&self.name);
        match timeout(CALL_TIMEOUT, self.ask_each_for_images(request, &mut asked)).await {
            Ok(made) => made,
            Err(_) => Err(asked.out_of_time(CALL_TIMEOUT)),
        }
    }

    async fn ask_each_for_images(
        &self,
        request: &ImageRequest,
        asked: &mut Asked<'_>,
    ) -> Result<Made, Failure> {
        let wish = wish(request)?;
        let bounds = self.bounds(&request.tries)?;
        for lead in self.chosen(&request.tries)? {
            let asks = Asks::default();
            match lead.provider.images(self.aim(lead, bounds, &asks), wish).await {
                Ok(pictures) => {
                    let (provider, model) = (lead.target.provider.clone(), lead.model.clone());
                    return Ok(Made { provider, model, pictures });
                }
                Err(failure) => asked.failed(lead, &asks, failure, false)?,
            }
        }
        Err(asked.all_failed())
    }
}

impl Made {
    /// Stores the images as blobs. `link` stays empty; the engine sets it.
    pub(crate) async fn keep(self, blobs: &dyn BlobStore) -> Result<Vec<GeneratedImage>, Failure> {
        let mut kept = Vec::with_capacity(self.pictures.len());
        for Picture { bytes, media_type } in self.pictures {
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

fn wish(request: &ImageRequest) -> Result<Wish<'_>, Failure> {
    let refused = |reason: String| Err(Failure::new(code::INVALID, reason));
    if !(1..=PICTURES).contains(&request.count) {
        let count = request.count;
        return refused(format!("the number of images must be 1 to {PICTURES}, not {count}"));
    }
    let prompt = request.prompt.trim();
    if prompt.is_empty() || prompt.chars().nth(PROMPT_CHARS).is_some() {
        return refused(format!("the prompt of an image must have 1 to {PROMPT_CHARS} characters"));
    }
    let aspect_ratio = request.aspect_ratio.as_deref();
    if let Some(ratio) = aspect_ratio.filter(|ratio| !is_ratio(ratio)) {
        return refused(format!("`{ratio}` is not an aspect ratio; write for example `16:9`"));
    }
    Ok(Wish { prompt, count: request.count, aspect_ratio })
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
