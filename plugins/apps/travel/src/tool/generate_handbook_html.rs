//! `generate_handbook_html`: makes the page of a guide from blocks and images.
//!
//! The page has the guide's own blocks and images. The arguments only select them, because a model
//! may forget a word or make up a coordinate.

mod choose;

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, ToolContext, ToolOutput, Value, clock, json, tool,
};

use crate::block::{Block, spots};
use crate::channel::{HTML, IMAGE_MODE, State};
use crate::html::{self, Sources};
use crate::image::{ImageAsset, ImageSource, mode};
use crate::preview;
use crate::task::{HANDBOOK_HTML, Structured, run_text_task};
use crate::text::head;
use crate::tool::answer::answer;
use crate::video::VideoContext;

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
    let Structured { value: page, model } = make(&chosen, &sources)?;
    tell(context, &chosen, page, &model)
}

/// Has a model write the page, and cleans it.
fn make(chosen: &Chosen, sources: &Sources) -> Result<Structured<String>, Failure> {
    let VideoContext { thumbnail_url, video_url, .. } = &chosen.video;
    let finish = |text: &str| {
        let images = &chosen.images;
        html::made_page(text, thumbnail_url.as_deref(), Some(video_url), images, sources)
    };
    let ask = html::Ask {
        title: &chosen.title,
        thumbnail_url: thumbnail_url.as_deref(),
        blocks: &chosen.blocks,
        images: &chosen.images,
    };
    let check =
        |text: &str| finish(text).err().map(|error| error.to_string()).into_iter().collect();
    let written = run_text_task(HANDBOOK_HTML, &html::system()?, &ask.text()?, check)?;
    let page = finish(&written.value).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Structured { value: page, model: written.model })
}

fn tell(
    context: &ToolContext,
    chosen: &Chosen,
    page: String,
    model: &str,
) -> Result<ToolOutput, Failure> {
    let Chosen { title, video, blocks, images, image_count } = chosen;
    let mode = json!(mode(images));
    let known = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let preview = context.thread_id.as_deref().map(preview::path).transpose()?;
    let output = json!({
        "title": title,
        "videoId": known(&video.video_id),
        "videoUrl": known(&video.video_url),
        "thumbnailUrl": video.thumbnail_url,
        "block_count": blocks.len(),
        "spot_count": spots(blocks).len(),
        "image_count": image_count,
        "matched_image_count": images.len(),
        "image_mode": mode,
        "handbook_style": {"desktop_width": html::WIDTHS.0, "mobile_width": html::WIDTHS.1},
        "generator_model": model,
        "generated_at": clock::utc(clock::now_ms()),
        // In UTF-16 units, as JavaScript counts.
        "html_length": page.encode_utf16().count(),
        "preview_url": preview,
        "html": page,
    });
    let answer = answer(&context.tool, &output)?;
    Ok(answer.with_overwrite(HTML, page).with_overwrite(IMAGE_MODE, mode))
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
