//! `generate_handbook_html`: makes the page of a guide from blocks and images.
//!
//! The page has the guide's own blocks and images. The arguments only select them, because a model
//! may forget a word or make up a coordinate.

mod choose;

use wattle_plugin::llm::{Checked, Task};
use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, ToolContext, ToolOutput, clock, json, tool,
};
use wattle_plugin::prompt::head;

use crate::block::{Block, spots};
use crate::channel::{HTML, IMAGE_MODE, State};
use crate::html::{self, Sources};
use crate::image::{ImageAsset, ImageSource, mode};
use crate::preview;
use crate::tool::REFUSED;
use crate::tool::output::{optional_fields, tool_output};
use crate::video::VideoContext;

/// Makes a page from blocks and images.
const TASK: Task = Task::new("handbook_html_generation")
    .max_output_tokens(16_384)
    .timeout_ms(75_000)
    .retries(1)
    .refusal(REFUSED);

/// Title of a guide without any other title.
const UNTITLED: &str = "Travel guide";

/// Maximum number of characters of a title.
const TITLE_CHARS: usize = 200;

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// Title of the page; that of the video without it.
    #[serde(default)]
    title: Option<String>,
    /// Which crawled video; the one of the blocks without it.
    #[serde(default, rename = "videoId")]
    video_id: Option<String>,
    /// Where to watch the video; known from the crawl.
    #[serde(default, rename = "videoUrl")]
    video_url: Option<String>,
    /// The picture on top of the page; known from the crawl.
    #[serde(default, rename = "thumbnailUrl")]
    thumbnail_url: Option<String>,
    /// Which blocks of the guide, in their order; all of them if empty.
    #[serde(default)]
    blocks: Option<Vec<GivenBlock>>,
    /// Not needed: which blocks are spots is known.
    #[serde(default)]
    spot_blocks: Option<Vec<GivenBlock>>,
    /// Which pictures; all prepared ones if empty.
    #[serde(default)]
    images: Option<Vec<GivenImage>>,
}

/// A block of the guide. Its texts and coordinates are the guide's.
#[derive(Debug, Deserialize, JsonSchema)]
struct GivenBlock {
    /// The block, as `build_travel_blocks` named it.
    block_id: String,
}

/// A picture. One that the image tools prepared for the block needs no more than the block. Another
/// one must be a photograph of Unsplash or a picture of this host.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct GivenImage {
    /// The block that it belongs to.
    block_id: String,
    /// Where it is.
    #[serde(default)]
    image_url: Option<String>,
    /// What it shows.
    #[serde(default)]
    alt: Option<String>,
    /// Whom to thank.
    #[serde(default)]
    credit: Option<String>,
    /// Where it comes from.
    #[serde(default)]
    source: Option<ImageSource>,
    /// The page of the photograph.
    #[serde(default)]
    source_page: Option<String>,
}

/// The output of `generate_handbook_html`, without the page, which programs get as `html`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = optional_fields)]
pub(crate) struct MadeHandbook {
    /// Title of the page.
    title: String,
    /// Id of the video at YouTube.
    #[serde(rename = "videoId")]
    video_id: Option<String>,
    /// Where to watch the video.
    #[serde(rename = "videoUrl")]
    video_url: Option<String>,
    /// URL of the picture on top of the page.
    #[serde(rename = "thumbnailUrl")]
    thumbnail_url: Option<String>,
    /// Number of blocks on the page.
    block_count: usize,
    /// Number of spots on the page.
    spot_count: usize,
    /// Number of images before the selection.
    image_count: usize,
    /// Number of images of the blocks on the page.
    matched_image_count: usize,
    /// Where the images come from.
    image_mode: ImageSource,
    /// Layout of the page.
    handbook_style: HandbookStyle,
    /// Model that wrote the page, as `provider:model (attempts=n)`.
    generator_model: String,
    /// Time in UTC.
    generated_at: String,
    /// Length of the page in UTF-16 units, as JavaScript counts.
    html_length: usize,
    /// Path of the page; `null` outside of a session.
    preview_url: Option<String>,
}

/// Widths for which a page is made, in pixels.
#[derive(Debug, Serialize, JsonSchema)]
struct HandbookStyle {
    desktop_width: u32,
    mobile_width: u32,
}

/// The content of a page.
struct Chosen {
    title: String,
    video: VideoContext,
    blocks: Vec<Block>,
    /// Images of these blocks.
    images: Vec<ImageAsset>,
    /// Number of images before the selection.
    image_count: usize,
}

/// Makes the handbook, a web page, from the blocks and the prepared pictures. Last step of a guide;
/// `search_image` or `generate_image` must have been called before. Without arguments it takes
/// all blocks and pictures of the guide, which is what you usually want.
#[tool]
pub(crate) fn generate_handbook_html(
    context: &ToolContext,
    input: Input,
) -> Result<ToolOutput, Failure> {
    let state = State::of(context)?;
    let sources = Sources::read()?;
    let chosen = match choose::choose(&state, &input, &sources) {
        Ok(chosen) => chosen,
        Err(error) => return Ok(ToolOutput::error(error)),
    };
    output(context, &chosen, make(&chosen, &sources)?)
}

/// Has a model write the page, and cleans it.
fn make(chosen: &Chosen, sources: &Sources) -> Result<Checked<String>, Failure> {
    let Chosen { title, video, blocks, images, .. } = chosen;
    let thumbnail = video.thumbnail_url.as_deref();
    let finish = |text: String| {
        html::made_page(&text, thumbnail, Some(&video.video_url), images, sources)
            .map_err(|error| vec![error.to_string()])
    };
    let request = html::request(title, thumbnail, blocks, images)?;
    TASK.text(&html::system()?, &request, finish)
}

fn output(
    context: &ToolContext,
    chosen: &Chosen,
    page: Checked<String>,
) -> Result<ToolOutput, Failure> {
    let Chosen { title, video, blocks, images, image_count } = chosen;
    let (generator_model, page) = (page.origin(), page.value);
    let image_mode = mode(images);
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (desktop_width, mobile_width) = html::WIDTHS;
    let made = MadeHandbook {
        title: title.clone(),
        video_id: known(&video.video_id),
        video_url: known(&video.video_url),
        thumbnail_url: video.thumbnail_url.clone(),
        block_count: blocks.len(),
        spot_count: spots(blocks).len(),
        image_count: *image_count,
        matched_image_count: images.len(),
        image_mode,
        handbook_style: HandbookStyle { desktop_width, mobile_width },
        generator_model,
        generated_at: clock::utc(clock::now_ms()),
        html_length: page.encode_utf16().count(),
        preview_url: context.thread_id.as_deref().map(preview::path).transpose()?,
    };
    let mut output = json!(made);
    output["html"] = json!(page);
    let tool_output = tool_output(&context.tool, &output)?;
    Ok(tool_output.with_overwrite(HTML, page).with_overwrite(IMAGE_MODE, json!(image_mode)))
}

impl Input {
    /// Returns the title of the page.
    fn title(&self, video: &VideoContext) -> String {
        let titles = [self.title.as_deref(), Some(video.title.as_str()), Some(UNTITLED)];
        let mut titles = titles.into_iter().flatten().map(str::trim);
        let title = titles.find(|title| !title.is_empty()).unwrap_or_default();
        head(title, TITLE_CHARS).to_owned()
    }
}

#[cfg(test)]
mod tests;
