//! `build_travel_blocks`: makes the blocks of a guide from a video.

mod prompt;

use wattle_plugin::llm::Task;
use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, ToolContext, ToolOutput, Value, json, log, tool,
};

use crate::block::{self, Block, Draft, spots};
use crate::channel::{BLOCKS, CONTEXT, IMAGE_MODE, IMAGES, SPOT_BLOCKS, State};
use crate::tool::output::{optional_fields, tool_output_and_forget};
use crate::tool::{
    GENERATE_HANDBOOK_HTML, GENERATE_IMAGE, REFUSED, RESOLVE_SPOT_COORDINATES, SEARCH_IMAGE,
};
use crate::video::{Video, VideoContext};
use crate::youtube;

/// Makes blocks from a video.
const TASK: Task = Task::new("json_compilation_strict")
    .max_output_tokens(8_192)
    .timeout_ms(60_000)
    .retries(2)
    .refusal(REFUSED);

/// Tools whose outputs new blocks invalidate.
const LATER: [&str; 4] =
    [RESOLVE_SPOT_COORDINATES, SEARCH_IMAGE, GENERATE_IMAGE, GENERATE_HANDBOOK_HTML];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which crawled video, by its id; the latest one without it.
    #[serde(default)]
    video_id: Option<String>,
}

/// The output of `build_travel_blocks`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = optional_fields)]
pub(crate) struct BuiltBlocks {
    /// Id of the video at YouTube.
    video_id: String,
    /// Normalized URL of the video.
    video_url: String,
    /// Title of the video.
    title: String,
    /// URL of the thumbnail.
    thumbnail_url: Option<String>,
    /// Number of blocks.
    block_count: usize,
    /// All blocks.
    blocks: Vec<Block>,
    /// The blocks that are spots.
    #[serde(rename = "spot_blocks")]
    spot_blocks: Vec<Block>,
    /// Number of spots.
    spot_count: usize,
}

/// Makes the blocks of a travel guide from a crawled video: places, food, transport, shopping and
/// hints. Step 3 of a guide; the video must have been crawled by `crawl_youtube_videos`.
#[tool(idempotent)]
pub(crate) fn build_travel_blocks(
    context: &ToolContext,
    input: Input,
) -> Result<ToolOutput, Failure> {
    let state = State::of(context)?;
    let video = match choose(&state.videos, input.video_id.as_deref()) {
        Ok(video) => video,
        Err(error) => return Ok(ToolOutput::error(error)),
    };
    let (system, user) = (prompt::system()?, prompt::user(video)?);
    let check = |draft: Draft| block::check(&draft).map(|()| draft);
    let drafted = TASK.document(&system, &user, check)?;
    // The fields of the output are fixed, so only the log has the model.
    log::debug!("task `{}`: {}", TASK.name(), drafted.origin());
    output(context, video, drafted.value)
}

/// Returns the video with an id, or the latest one. The error names the step that is missing.
fn choose<'a>(videos: &'a [Video], id: Option<&str>) -> Result<&'a Video, String> {
    let latest = videos.last().ok_or(
        "no video was crawled yet; call `crawl_youtube_videos` before `build_travel_blocks`",
    )?;
    let Some(id) = id.map(str::trim).filter(|id| !id.is_empty()) else { return Ok(latest) };
    // Models may pass the URL instead of the id.
    let named = youtube::id(id);
    let id = named.as_deref().unwrap_or(id);
    videos.iter().find(|video| video.id == id).ok_or_else(|| {
        let known: Vec<String> = videos.iter().map(|video| format!("`{}`", video.id)).collect();
        format!(
            "video `{id}` was not crawled; call `crawl_youtube_videos` with it, or take one of {}",
            known.join(", ")
        )
    })
}

fn output(context: &ToolContext, video: &Video, draft: Draft) -> Result<ToolOutput, Failure> {
    let blocks = block::sanitize(draft, &video.id);
    let spot_blocks = spots(&blocks);
    let (block_count, spot_count) = (blocks.len(), spot_blocks.len());
    let output = BuiltBlocks {
        video_id: video.id.clone(),
        video_url: video.url.clone(),
        title: video.title.clone(),
        thumbnail_url: video.thumbnail_url.clone(),
        block_count,
        blocks,
        spot_blocks,
        spot_count,
    };
    let tool_output = tool_output_and_forget(&context.tool, &output, &LATER)?;
    Ok(tool_output
        .with_overwrite(CONTEXT, json!(VideoContext::from(video)))
        .with_overwrite(BLOCKS, json!(output.blocks))
        .with_overwrite(SPOT_BLOCKS, json!(output.spot_blocks))
        // Images belong to blocks.
        .with_overwrite(IMAGES, json!([]))
        .with_overwrite(IMAGE_MODE, Value::Null))
}

#[cfg(test)]
mod tests;
