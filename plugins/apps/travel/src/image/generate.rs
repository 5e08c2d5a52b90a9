//! Pictures that a model makes, one request each, so that one that is refused costs no other.

use wattle_plugin::Failure;
use wattle_plugin::llm::ImageRequest;
use wattle_plugin::prelude::{code, llm, log};

use crate::html::is_image;
use crate::image::plan::Planned;
use crate::image::{ImageAsset, ImageSource};

/// The route of models that make pictures.
const ROUTE: &str = "handbook_image";

/// The shape in which handbooks show pictures.
const ASPECT_RATIO: &str = "16:9";

/// How long a picture may take.
const TIMEOUT_MS: u32 = 90_000;

/// What became of several plans.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The pictures, in the order of their plans.
    pub(crate) images: Vec<ImageAsset>,
    /// The models that made them, each once.
    pub(crate) models: Vec<String>,
    /// Why the last missing picture is missing.
    pub(crate) error: Option<String>,
}

/// Makes a picture for each plan; those that cannot be made are left out.
///
/// # Errors
///
/// `cancelled`, after which nothing more is to be paid for.
pub(crate) fn generate<'a>(plans: impl IntoIterator<Item = &'a Planned>) -> Result<Made, Failure> {
    let mut made = Made::default();
    for planned in plans {
        match picture(planned) {
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
    }
    Ok(made)
}

fn picture(planned: &Planned) -> Result<(ImageAsset, String), Failure> {
    let request = ImageRequest::new(ROUTE, planned.prompt.as_str())
        .aspect_ratio(ASPECT_RATIO)
        .with_extra("timeout_ms", TIMEOUT_MS);
    let made = llm::generate_images(request)?.into_iter().next();
    let made = made.ok_or_else(|| Failure::unavailable("the model made no picture"))?;
    let link = made.link().to_owned();
    if !is_image(&link) {
        let message = format!("the host serves the picture at `{link}`, which no page may show");
        return Err(Failure::internal(message));
    }
    let model = made.model().to_owned();
    let mut image = ImageAsset::of(planned, ImageSource::Imagen, link);
    image.credit = Some(format!("Generated with {model}"));
    Ok((image, model))
}
