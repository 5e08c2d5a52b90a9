//! Queries for the geocoder. A model knows the name that a map has for a spot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_plugin::Failure;
use wattle_plugin::prompt::{fill, head, quoted};

use crate::block::Block;
use crate::tool::MATERIAL_END;
use crate::video::VideoContext;

/// The spots that queries are made for.
const SPOTS_USER: &str = include_str!("../../../prompts/resolve_spot_coordinates.user.md");

/// Maximum number of characters of a description in the request, enough to identify the place.
const DESCRIPTION_CHARS: usize = 300;

/// Maximum number of characters of a query. The longest names of places have fewer.
const QUERY_CHARS: usize = 200;

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(super) struct SpotQueries {
    /// One query for every spot.
    pub(super) spot_queries: Vec<SpotQuery>,
}

/// One query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SpotQuery {
    /// The spot.
    pub(super) block_id: String,
    /// What to ask for.
    pub(super) query: String,
}

/// Returns the material of the request: the spots, and the video that they are from.
pub(super) fn user(spots: &[Block], context: Option<&VideoContext>) -> Result<String, Failure> {
    let told = |spot: &Block| {
        json!({
            "block_id": spot.block_id,
            "title": spot.title,
            "description": head(&spot.description, DESCRIPTION_CHARS),
        })
    };
    let spots: Vec<_> = spots.iter().map(told).collect();
    let material = json!({
        "video_title": context.map(|context| &context.title),
        "video_location": context.and_then(|context| context.location.as_ref()),
        "spots": spots,
    });
    let material = quoted(&material.to_string(), usize::MAX, MATERIAL_END);
    fill(SPOTS_USER, &[("material", &material)])
}

/// Returns the queries, if there is exactly one for each spot. The errors are one sentence each.
pub(super) fn check(answer: SpotQueries, spots: &[Block]) -> Result<Vec<SpotQuery>, Vec<String>> {
    let (queries, mut errors) = (answer.spot_queries, Vec::new());
    for spot in spots {
        let id = &spot.block_id;
        match queries.iter().filter(|query| query.block_id == *id).count() {
            0 => errors.push(format!("`spot_queries` lacks spot `{id}`")),
            1 => {}
            count => errors.push(format!("`spot_queries` has spot `{id}` {count} times")),
        }
    }
    for (at, SpotQuery { block_id, query }) in queries.iter().enumerate() {
        if spots.iter().all(|spot| spot.block_id != *block_id) {
            errors.push(format!("`spot_queries[{at}].block_id` `{block_id}` is no spot"));
        }
        let chars = query.trim().chars().count();
        if chars == 0 || chars > QUERY_CHARS {
            let wish = format!("give 1 to {QUERY_CHARS}");
            errors.push(format!("`spot_queries[{at}].query` has {chars} characters; {wish}"));
        }
    }
    if errors.is_empty() { Ok(queries) } else { Err(errors) }
}
