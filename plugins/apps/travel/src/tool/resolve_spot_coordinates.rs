//! `resolve_spot_coordinates`: finds the coordinates of spots.

mod queries;

use std::collections::HashMap;

use wattle_plugin::llm::Task;
use wattle_plugin::prelude::{
    Empty, Failure, JsonSchema, Serialize, ToolContext, ToolOutput, json, log, prompt, tool,
};

use crate::block::{Block, Location, spots};
use crate::channel::{BLOCKS, SPOT_BLOCKS, State};
use crate::geocode::Geocoder;
use crate::tool::REFUSED;
use crate::tool::output::{optional_fields, tool_output};
use crate::tool::resolve_spot_coordinates::queries::SpotQuery;
use crate::video::VideoContext;

/// Instructions for queries of the geocoder.
const SPOTS: &str = include_str!("../../prompts/resolve_spot_coordinates.md");

/// Makes queries for the geocoder from spots.
const TASK: Task = Task::new("spot_query_normalization")
    .max_output_tokens(4_096)
    .timeout_ms(30_000)
    .retries(2)
    .refusal(REFUSED);

/// The output of `resolve_spot_coordinates`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = optional_fields)]
pub(crate) struct ResolvedSpots {
    /// The queries for the geocoder.
    spot_queries: Vec<SpotQuery>,
    /// Number of spots that were found.
    resolved_count: usize,
    /// Number of spots that were not found.
    unresolved_count: usize,
    /// The spots that were found.
    spots_with_coordinates: Vec<Block>,
    /// All blocks.
    blocks: Vec<Block>,
    /// The blocks that are spots.
    spot_blocks: Vec<Block>,
}

/// Finds the coordinates of all spots with a geocoder. Step 4 of a guide, only if there are spots;
/// the blocks must have been made by `build_travel_blocks`.
#[tool(idempotent)]
pub(crate) fn resolve_spot_coordinates(
    context: &ToolContext,
    _input: Empty,
) -> Result<ToolOutput, Failure> {
    let state = State::of(context)?;
    if state.blocks.is_empty() {
        return Ok(ToolOutput::error(
            "there are no blocks yet; call `build_travel_blocks` before \
             `resolve_spot_coordinates`",
        ));
    }
    let spots = spots(&state.blocks);
    let queries = if spots.is_empty() { Vec::new() } else { ask(&spots, state.context.as_ref())? };
    let place = state.context.as_ref().and_then(|context| context.location.as_deref());
    let found = locate(&queries, place)?;
    output(context, fill(state.blocks, &found), queries, &found)
}

fn ask(spots: &[Block], context: Option<&VideoContext>) -> Result<Vec<SpotQuery>, Failure> {
    let (system, user) = (prompt::fill(SPOTS, &[])?, queries::user(spots, context)?);
    let check = |answer| queries::check(answer, spots);
    let checked = TASK.document(&system, &user, check)?;
    // The fields of the output are fixed, so only the log has the model.
    log::debug!("task `{}`: {}", TASK.name(), checked.origin());
    Ok(checked.value)
}

/// Queries every spot. A spot that is not found is queried again, with the location of the video
/// added.
fn locate(
    queries: &[SpotQuery],
    place: Option<&str>,
) -> Result<HashMap<String, Location>, Failure> {
    let mut found = HashMap::new();
    if queries.is_empty() {
        return Ok(found);
    }
    let place = place.map(str::trim).filter(|place| !place.is_empty());
    let mut geocoder = Geocoder::of_settings()?;
    for SpotQuery { block_id, query } in queries {
        let mut location = geocoder.locate(query)?;
        if let (None, Some(place)) = (location, place) {
            location = geocoder.locate(&format!("{} {place}", query.trim()))?;
        }
        found.extend(location.map(|location| (block_id.clone(), location)));
    }
    Ok(found)
}

/// Sets the found locations. A block that is not found keeps its location.
fn fill(mut blocks: Vec<Block>, found: &HashMap<String, Location>) -> Vec<Block> {
    for block in &mut blocks {
        block.location = found.get(&block.block_id).copied().or(block.location);
    }
    blocks
}

fn output(
    context: &ToolContext,
    blocks: Vec<Block>,
    spot_queries: Vec<SpotQuery>,
    found: &HashMap<String, Location>,
) -> Result<ToolOutput, Failure> {
    let spot_blocks = spots(&blocks);
    let is_found = |spot: &&Block| found.contains_key(&spot.block_id);
    let with_coordinates: Vec<Block> = spot_blocks.iter().filter(is_found).cloned().collect();
    let output = ResolvedSpots {
        spot_queries,
        resolved_count: with_coordinates.len(),
        unresolved_count: spot_blocks.len() - with_coordinates.len(),
        spots_with_coordinates: with_coordinates,
        blocks,
        spot_blocks,
    };
    let tool_output = tool_output(&context.tool, &output)?;
    Ok(tool_output
        .with_overwrite(BLOCKS, json!(output.blocks))
        .with_overwrite(SPOT_BLOCKS, json!(output.spot_blocks)))
}

#[cfg(test)]
mod tests;
