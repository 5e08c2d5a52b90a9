//! Start and end of both image tools.

use serde_json::{Map, Value, json};
use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, ToolContext, ToolOutput};

use crate::channel::{IMAGE_MODE, IMAGE_PLAN, IMAGES, State};
use crate::image::plan::{ImagePlan, plan};
use crate::image::{ImageAsset, mode, target};
use crate::tool::GENERATE_HANDBOOK_HTML;
use crate::tool::answer::answer_and_forget;

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
pub(crate) fn none(text: String, plan: &ImagePlan) -> ToolOutput {
    ToolOutput::error(text).with_overwrite(IMAGE_PLAN, json!(plan))
}

/// Returns the output with the prepared images. `more` has the fields that only one tool has.
pub(crate) fn tell(
    context: &ToolContext,
    state: &State,
    planner_model: &str,
    images: &[ImageAsset],
    more: Map<String, Value>,
) -> Result<ToolOutput, Failure> {
    let mode = json!(mode(images));
    let mut output = Map::from_iter([
        ("mode".to_owned(), mode.clone()),
        ("planner_model".to_owned(), planner_model.into()),
    ]);
    output.extend(more);
    output.insert("image_count".to_owned(), images.len().into());
    output.insert("images".to_owned(), json!(images));
    let answer = answer_and_forget(&context.tool, &output, &LATER)?;
    let answer = answer.with_overwrite(IMAGES, json!(images)).with_overwrite(IMAGE_MODE, mode);
    // A later request for images must give other images, so the plan is dropped.
    let is_kept = state.image_plan.is_some();
    Ok(if is_kept { answer.with_overwrite(IMAGE_PLAN, Value::Null) } else { answer })
}
