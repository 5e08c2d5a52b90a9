//! `crawl_youtube_videos`: fetches titles, images and subtitles of videos with Apify.

mod apify;

use std::fmt::Write as _;

use serde_json::Value;
use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, ToolContext, ToolOutput, json, log, tool,
};

use crate::channel::{BLOCKS, CONTEXT, IMAGE_MODE, IMAGES, SPOT_BLOCKS, State, VIDEOS};
use crate::session::stored_output;
use crate::tool::crawl_youtube_videos::apify::Apify;
use crate::tool::output::{optional_fields, tool_output_and_forget};
use crate::tool::{
    BUILD_TRAVEL_BLOCKS, GENERATE_HANDBOOK_HTML, GENERATE_IMAGE, RESOLVE_SPOT_COORDINATES,
    SEARCH_IMAGE,
};
use crate::video::{Item, Video, VideoContext};
use crate::youtube;

/// Maximum number of videos of one call. A guide needs one, and each costs money and seconds.
const MOST_VIDEOS: usize = 5;

/// Maximum number of videos of a session. Every later step gets their subtitles.
const KEPT_VIDEOS: usize = 10;

/// Tools whose outputs another video invalidates.
const LATER: [&str; 5] = [
    BUILD_TRAVEL_BLOCKS,
    RESOLVE_SPOT_COORDINATES,
    SEARCH_IMAGE,
    GENERATE_IMAGE,
    GENERATE_HANDBOOK_HTML,
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    /// Addresses of the videos, as `parse_youtube_input` found them.
    #[serde(default)]
    video_urls: Option<Vec<String>>,
    /// A text with addresses of videos, if they are not at hand.
    #[serde(default)]
    user_text: Option<String>,
}

/// The output of `crawl_youtube_videos`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = optional_fields)]
pub(crate) struct CrawledVideos {
    /// Name of the actor at Apify.
    actor_id: String,
    /// URLs that were requested.
    requested_urls: Vec<String>,
    /// Number of videos.
    count: usize,
    /// The videos, with the beginning of their subtitles and descriptions.
    videos: Vec<Video>,
}

/// Fetches title, description, picture and subtitles of YouTube videos. Step 2 of a guide.
#[tool(idempotent)]
pub(crate) fn crawl_youtube_videos(
    context: &ToolContext,
    input: Input,
) -> Result<ToolOutput, Failure> {
    let state = State::of(context)?;
    let urls = input.urls();
    if urls.is_empty() {
        return Ok(ToolOutput::error(
            "there is no address of a YouTube video in `videoUrls` or `userText`; ask the user \
             for one",
        ));
    }
    if urls.len() > MOST_VIDEOS {
        return Ok(ToolOutput::error(format!(
            "there are {} videos; crawl at most {MOST_VIDEOS} at once",
            urls.len()
        )));
    }
    let apify = Apify::of_settings()?;
    let items = apify.crawl(&urls, key(context))?;
    let (videos, refused) = sort(items);
    if videos.is_empty() {
        return Ok(ToolOutput::error(nothing(&refused)));
    }
    for reason in &refused {
        log::warn!("crawl videos: one was left out: {reason}");
    }
    output(context, &state, apify.actor, urls, videos)
}

/// Returns the idempotency key, with which the host sends the request again after a crash. Apify
/// ignores it, but a second crawl has no further effect.
fn key(context: &ToolContext) -> Option<String> {
    let task = context.task_id.as_ref()?;
    Some(format!("{task}:{}", context.call_id))
}

impl Input {
    /// Returns all URLs, normalized and without duplicates, those of `videoUrls` first.
    fn urls(&self) -> Vec<String> {
        let given = self.video_urls.iter().flatten().map(String::as_str);
        let texts: Vec<&str> = given.chain(self.user_text.as_deref()).collect();
        youtube::extract(&texts.join("\n"))
    }
}

/// Returns the videos without duplicates, and the reasons why other items are not videos.
fn sort(items: Vec<Item>) -> (Vec<Video>, Vec<String>) {
    let (mut videos, mut refused) = (Vec::<Video>::new(), Vec::new());
    for item in items {
        match item {
            Item::Video(video) if videos.iter().all(|known| known.id != video.id) => {
                videos.push(*video);
            }
            Item::Video(_) => {}
            Item::Refused(reason) => refused.push(reason),
        }
    }
    videos.truncate(MOST_VIDEOS);
    (videos, refused)
}

fn nothing(refused: &[String]) -> String {
    let mut text = "no video found".to_owned();
    for reason in refused.iter().take(MOST_VIDEOS) {
        // Writing to a string cannot fail.
        let _ = write!(text, "; {reason}");
    }
    text
}

fn output(
    context: &ToolContext,
    state: &State,
    actor_id: String,
    requested_urls: Vec<String>,
    videos: Vec<Video>,
) -> Result<ToolOutput, Failure> {
    let kept = keep(&state.videos, &videos);
    let about = kept.last().map(VideoContext::from);
    // The video of the guide, including a change by an earlier call of the same turn.
    let is_other = state.context.as_ref().map(|known| &known.video_id)
        != about.as_ref().map(|about| &about.video_id);
    let later: &[&str] = if is_other { &LATER } else { &[] };
    let count = videos.len();
    let mut output = json!(CrawledVideos { actor_id, requested_urls, count, videos });
    // The channel has the whole texts; the conversation has only their beginning.
    stored_output::shorten_videos(&mut output["videos"]);
    let tool_output = tool_output_and_forget(&context.tool, &output, later)?;
    let tool_output =
        tool_output.with_overwrite(VIDEOS, json!(kept)).with_overwrite(CONTEXT, json!(about));
    // Images and a page for blocks of another video would be paid for in vain.
    Ok(if is_other && state.context.is_some() { without_blocks(tool_output) } else { tool_output })
}

/// Removes the blocks, and the images that belong to them.
fn without_blocks(tool_output: ToolOutput) -> ToolOutput {
    tool_output
        .with_overwrite(BLOCKS, json!([]))
        .with_overwrite(SPOT_BLOCKS, json!([]))
        .with_overwrite(IMAGES, json!([]))
        .with_overwrite(IMAGE_MODE, Value::Null)
}

/// Returns all videos of the session, the newest last. Of several new ones the first counts as the
/// newest, because a guide is made from it by default.
fn keep(known: &[Video], new: &[Video]) -> Vec<Video> {
    let is_old = |video: &&Video| new.iter().all(|other| other.id != video.id);
    let old: Vec<&Video> = known.iter().filter(is_old).collect();
    let room = KEPT_VIDEOS.saturating_sub(new.len());
    let old = old[old.len().saturating_sub(room)..].iter().copied();
    old.chain(new.iter().rev()).cloned().collect()
}

#[cfg(test)]
mod tests;
