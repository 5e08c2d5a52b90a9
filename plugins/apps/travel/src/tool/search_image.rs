//! `search_image`: photographs for the blocks of a guide, and generated images where there are
//! none.

use wattle_plugin::prelude::{Failure, ToolContext, ToolOutput, tool};

use crate::channel::State;
use crate::image::generate::{Made, generate};
use crate::image::plan::Planned;
use crate::image::tool::{Input, output, planned, without_images};
use crate::image::{ImageAsset, unsplash};

/// Finds photographs for the blocks of the guide on Unsplash and makes pictures where it finds
/// none. Step 5 of a guide, unless `generate_image` did it; the blocks must have been made by
/// `build_travel_blocks`.
#[tool]
pub(crate) fn search_image(context: &ToolContext, input: Input) -> Result<ToolOutput, Failure> {
    let state = State::of(context)?;
    let plan = match planned(context, &state, &input)? {
        Ok(plan) => plan,
        Err(missing) => return Ok(missing),
    };
    let plans = plan.pictures.as_slice();
    let found = unsplash::search(plans)?;
    let missing = plans.iter().zip(&found).filter(|(_, found)| found.is_none());
    let Made { images: made, error, .. } = generate(missing.map(|(planned, _)| planned))?;
    let images = in_order(plans, found.into_iter().flatten().chain(made).collect());
    if images.is_empty() {
        let reason = error.unwrap_or_default();
        let error = format!("no photograph was found, and no image was generated: {reason}");
        return Ok(without_images(error, &plan));
    }
    output(context, &state, &plan.model, images, None)
}

/// Sorts images by the order of their plans.
fn in_order(plans: &[Planned], mut images: Vec<ImageAsset>) -> Vec<ImageAsset> {
    let place =
        |image: &ImageAsset| plans.iter().position(|planned| planned.block_id == image.block_id);
    images.sort_by_key(place);
    images
}

#[cfg(test)]
mod tests;
