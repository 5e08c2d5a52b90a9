//! `generate_image`: pictures for the blocks of a guide, made by a model.

use serde_json::{Map, json};
use wattle_plugin::prelude::{Failure, ToolContext, ToolOutput, tool};

use crate::channel::State;
use crate::image::generate::{Made, generate};
use crate::image::step::{Input, none, planned, tell};

/// Makes pictures for the blocks of the guide with a model, for who wants generated pictures. Step
/// 5 of a guide, instead of `search_image`; the blocks must have been made by
/// `build_travel_blocks`.
#[tool]
pub(crate) fn generate_image(context: &ToolContext, input: Input) -> Result<ToolOutput, Failure> {
    let state = State::of(context)?;
    let plan = match planned(context, &state, &input)? {
        Ok(plan) => plan,
        Err(missing) => return Ok(missing),
    };
    let Made { images, models, error } = generate(&plan.value)?;
    if images.is_empty() {
        let reason = error.unwrap_or_default();
        return Ok(none(format!("no picture could be made: {reason}"), &plan));
    }
    let more = Map::from_iter([("generation_models".to_owned(), json!(models))]);
    tell(context, &state, &plan.model, &images, more)
}

#[cfg(test)]
mod tests;
