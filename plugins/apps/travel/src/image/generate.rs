//! Images that a model generates, one request each, so that a refused image does not affect the
//! others.
//!
//! Each image can take minutes, so the time is limited: after [`BUDGET_MS`] no further image is
//! begun, and a service that is too slow twice in a row counts as down. The result has the images
//! that were generated until then.

use wattle_plugin::Failure;
use wattle_plugin::llm::ImageRequest;
use wattle_plugin::prelude::{clock, code, llm, log};

use crate::html::is_blob;
use crate::image::plan::Planned;
use crate::image::{ImageAsset, ImageSource};

/// The route of image models.
const ROUTE: &str = "handbook_image";

/// Aspect ratio of the images in handbooks.
const ASPECT_RATIO: &str = "16:9";

/// Timeout of one attempt.
const TIMEOUT_MS: u32 = 90_000;

/// Retries of one model for one image.
const RETRIES: u32 = 1;

/// Time after which no further image is begun. Images are decoration, so the user waits no longer
/// for them.
const BUDGET_MS: i64 = 300_000;

/// Number of consecutive timeouts after which no further request is sent.
const MOST_TIMEOUTS: u32 = 2;

/// The result of several plans.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The images, in the order of their plans.
    pub(crate) images: Vec<ImageAsset>,
    /// The models that generated them, without duplicates.
    pub(crate) models: Vec<String>,
    /// Error of the last missing image.
    pub(crate) error: Option<String>,
}

/// Generates an image for each plan. Images that cannot be generated are left out.
///
/// # Errors
///
/// Returns `cancelled`, after which no request may cost anything.
pub(crate) fn generate<'a>(plans: impl IntoIterator<Item = &'a Planned>) -> Result<Made, Failure> {
    let mut made = Made::default();
    let mut plans = plans.into_iter().peekable();
    if plans.peek().is_none() {
        return Ok(made);
    }
    let mut studio = match Studio::open() {
        Err(failure) if failure.code == code::CANCELLED => return Err(failure),
        Err(failure) => {
            log::warn!("make pictures: {failure}");
            made.error = Some(failure.message);
            return Ok(made);
        }
        Ok(studio) => studio,
    };
    for planned in plans {
        match studio.make(planned) {
            Ok((image, model)) => {
                made.images.push(image);
                if !made.models.contains(&model) {
                    made.models.push(model);
                }
            }
            Err(failure) if failure.code == code::CANCELLED => return Err(failure),
            Err(failure) => {
                log::warn!("make a picture of block `{}`: {failure}", planned.block_id);
                made.error = Some(failure.message);
            }
        }
        if let Some(reason) = studio.closed() {
            log::warn!("make pictures: the rest is left out: {reason}");
            break;
        }
    }
    Ok(made)
}

/// The models of the route, for one call of a tool.
struct Studio {
    /// Number of models.
    models: u32,
    /// The model that is called first: the one that succeeded last.
    first: u32,
    opened_ms: i64,
    timeouts_in_row: u32,
}

impl Studio {
    fn open() -> Result<Self, Failure> {
        let models = llm::route(ROUTE)?.candidates();
        Ok(Self { models, first: 0, opened_ms: clock::now_ms(), timeouts_in_row: 0 })
    }

    /// Returns the reason why no further request may be sent.
    fn closed(&self) -> Option<&'static str> {
        if self.timeouts_in_row >= MOST_TIMEOUTS {
            return Some("the models do not answer in time");
        }
        // A clock that was set back must not extend the budget by hours.
        let is_open = (0..BUDGET_MS).contains(&(clock::now_ms() - self.opened_ms));
        (!is_open).then_some("it took too long")
    }

    /// Calls one model after the other. Returns the failure of the last one if none generates the
    /// image.
    fn make(&mut self, planned: &Planned) -> Result<(ImageAsset, String), Failure> {
        let others = (0..self.models).filter(|other| *other != self.first);
        let turns: Vec<u32> = std::iter::once(self.first).chain(others).collect();
        let mut last = None;
        for candidate in turns {
            if last.is_some() && self.closed().is_some() {
                break;
            }
            match picture(planned, candidate) {
                Ok(made) => {
                    (self.first, self.timeouts_in_row) = (candidate, 0);
                    return Ok(made);
                }
                Err(failure) if failure.code == code::CANCELLED => return Err(failure),
                Err(failure) => {
                    let is_late = failure.code == code::TIMEOUT;
                    self.timeouts_in_row = if is_late { self.timeouts_in_row + 1 } else { 0 };
                    last = Some(failure);
                }
            }
        }
        Err(last.unwrap_or_else(|| Failure::unavailable("no model was asked for the picture")))
    }
}

fn picture(planned: &Planned, candidate: u32) -> Result<(ImageAsset, String), Failure> {
    let request = ImageRequest::new(ROUTE, planned.prompt.as_str())
        .aspect_ratio(ASPECT_RATIO)
        .with_extra("candidate", candidate)
        .with_extra("retries", RETRIES)
        .with_extra("timeout_ms", TIMEOUT_MS);
    let made = llm::generate_images(request)?.into_iter().next();
    let made = made.ok_or_else(|| Failure::unavailable("the model made no picture"))?;
    let link = made.link().to_owned();
    if !is_blob(&link) {
        let message = format!("the host serves the picture at `{link}`, which no page may show");
        return Err(Failure::internal(message));
    }
    let model = made.model().to_owned();
    let mut image = ImageAsset::of(planned, ImageSource::Imagen, link);
    image.credit = Some(format!("Generated with {model}"));
    Ok((image, model))
}

#[cfg(test)]
mod tests;
