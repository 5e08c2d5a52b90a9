//! What `search_image` and `generate_image` share: their arguments, the plan and the output.

use serde_json::{Value, json};
use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, ToolContext, ToolOutput,
};

use crate::channel::{IMAGE_MODE, IMAGE_PLAN, IMAGES, State};
use crate::image::plan::{ImagePlan, plan};
use crate::image::{ImageAsset, ImageSource, mode, target};
use crate::tool::GENERATE_HANDBOOK_HTML;
use crate::tool::output::{optional_fields, tool_output_and_forget};

/// Tools whose outputs new images invalidate.
const LATER: [&str; 1] = [GENERATE_HANDBOOK_HTML];

/// How many pictures are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// How many pictures, 1 to 6; one for each block, up to 6, without it.
    #[serde(default)]
    #[schemars(range(min = 1, max = 6))]
    count: Option<u32>,
}

/// The output of both image tools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = optional_fields)]
pub(crate) struct PreparedImages {
    /// Where the images come from.
    mode: ImageSource,
    /// Model that made the plan, as `provider:model (attempts=n)`.
    planner_model: String,
    /// The models that generated the images, without duplicates; only from `generate_image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_models: Option<Vec<String>>,
    /// Number of images.
    image_count: usize,
    /// The images, in the order of their plans.
    images: Vec<ImageAsset>,
}

/// Plans the images of a guide. Returns an output that names the missing step if there are no
/// blocks.
pub(crate) fn planned(
    context: &ToolContext,
    state: &State,
    input: &Input,
) -> Result<Result<ImagePlan, ToolOutput>, Failure> {
    let targets = target::choose(&state.blocks, input.count);
    if targets.is_empty() {
        let text = format!(
            "there are no blocks yet; call `build_travel_blocks` before `{}`",
            context.tool
        );
        return Ok(Err(ToolOutput::error(text)));
    }
    let saved = state.image_plan.as_ref().filter(|saved| saved.fits(&targets));
    if let Some(saved) = saved {
        return Ok(Ok(saved.clone()));
    }
    let guide = state.context.as_ref().map(|video| video.title.as_str());
    plan(guide, &targets).map(Ok)
}

/// Returns the output for no image at all, and keeps the plan for the next attempt.
pub(crate) fn without_images(text: String, plan: &ImagePlan) -> ToolOutput {
    ToolOutput::error(text).with_overwrite(IMAGE_PLAN, json!(plan))
}

/// Returns the output with the prepared images. Only `generate_image` has `generation_models`.
pub(crate) fn output(
    context: &ToolContext,
    state: &State,
    planner_model: &str,
    images: Vec<ImageAsset>,
    generation_models: Option<Vec<String>>,
) -> Result<ToolOutput, Failure> {
    let output = PreparedImages {
        mode: mode(&images),
        planner_model: planner_model.to_owned(),
        generation_models,
        image_count: images.len(),
        images,
    };
    let tool_output = tool_output_and_forget(&context.tool, &output, &LATER)?
        .with_overwrite(IMAGES, json!(output.images))
        .with_overwrite(IMAGE_MODE, json!(output.mode));
    // A later request for images must give other images, so the plan is dropped.
    let is_kept = state.image_plan.is_some();
    Ok(if is_kept { tool_output.with_overwrite(IMAGE_PLAN, Value::Null) } else { tool_output })
}
