//! Chooses the blocks, images and video of a page. Errors are messages for the model.

use super::{Chosen, GivenBlock, GivenImage, Input};
use crate::block::Block;
use crate::channel::State;
use crate::html::{Sources, is_link};
use crate::image::{ImageAsset, ImageSource};
use crate::video::VideoContext;
use crate::youtube;

const NO_BLOCKS: &str =
    "there are no blocks yet; call `build_travel_blocks` before `generate_handbook_html`";

const NO_IMAGES: &str = "No prepared images found. Call search_image or generate_image before \
                         generate_handbook_html.";

const OTHER_IMAGES: &str = "Prepared images do not match current blocks. Call search_image or \
                            generate_image again before generate_handbook_html.";

/// Chooses what the arguments name, or everything if they name nothing.
pub(super) fn choose(state: &State, input: &Input, sources: &Sources) -> Result<Chosen, String> {
    let blocks = blocks(state, input)?;
    let prepared = images(state, input, sources)?;
    if prepared.is_empty() {
        return Err(NO_IMAGES.to_owned());
    }
    let image_count = prepared.len();
    let images: Vec<ImageAsset> = prepared
        .into_iter()
        .filter(|image| blocks.iter().any(|block| block.block_id == image.block_id))
        .collect();
    if images.is_empty() {
        return Err(OTHER_IMAGES.to_owned());
    }
    let video = video(state, input, sources);
    Ok(Chosen { title: input.title(&video), video, blocks, images, image_count })
}

fn blocks(state: &State, input: &Input) -> Result<Vec<Block>, String> {
    if state.blocks.is_empty() {
        return Err(NO_BLOCKS.to_owned());
    }
    let find = |given: &GivenBlock| {
        let id = given.block_id.trim();
        let found = state.blocks.iter().find(|block| block.block_id == id);
        found.cloned().ok_or_else(|| unknown(id, &state.blocks))
    };
    for spot in input.spot_blocks.iter().flatten() {
        find(spot)?;
    }
    let mut chosen: Vec<Block> = Vec::new();
    for block in input.blocks.iter().flatten().map(find) {
        let block = block?;
        if chosen.iter().all(|known| known.block_id != block.block_id) {
            chosen.push(block);
        }
    }
    Ok(if chosen.is_empty() { state.blocks.clone() } else { chosen })
}

fn unknown(id: &str, blocks: &[Block]) -> String {
    let known: Vec<String> = blocks.iter().map(|block| format!("`{}`", block.block_id)).collect();
    format!(
        "there is no block `{id}` in this guide; leave `blocks` empty for all of them, or take \
         some of {}",
        known.join(", ")
    )
}

/// Returns the images in the arguments, as they were prepared; all prepared images if there are
/// none.
fn images(state: &State, input: &Input, sources: &Sources) -> Result<Vec<ImageAsset>, String> {
    let given = input.images.as_deref().unwrap_or_default();
    if given.is_empty() {
        return Ok(state.images.clone());
    }
    given.iter().map(|given| image(state, given, sources)).collect()
}

fn image(state: &State, given: &GivenImage, sources: &Sources) -> Result<ImageAsset, String> {
    let prepared = state.images.iter().find(|image| image.block_id == given.block_id);
    if let Some(prepared) = prepared {
        return Ok(prepared.clone());
    }
    let address = given.image_url.as_deref().unwrap_or_default().trim();
    // Text that the model has read may have induced it to name a URL that counts the readers.
    if !sources.is_given_image(address) {
        return Err(format!(
            "the picture of block `{}` is none that was prepared, and `{address}` neither begins \
             with `{}` nor with `/blobs/`; call `search_image` or `generate_image`",
            given.block_id,
            sources.photographs()
        ));
    }
    let block = state.blocks.iter().find(|block| block.block_id == given.block_id);
    let title = block.map_or_else(String::new, |block| block.title.clone());
    Ok(ImageAsset {
        block_id: given.block_id.clone(),
        alt: given.alt.clone().unwrap_or_else(|| title.clone()),
        block_title: title,
        query: String::new(),
        image_url: address.to_owned(),
        source: given.source.unwrap_or(ImageSource::Unsplash),
        source_page: given.source_page.clone().filter(|page| is_link(page)),
        credit: given.credit.clone(),
        width: None,
        height: None,
    })
}

/// Returns the crawled video. Values that are not known are taken from the arguments.
fn video(state: &State, input: &Input, sources: &Sources) -> VideoContext {
    let id = input.video_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let id = id.map(|id| youtube::id(id).unwrap_or_else(|| id.to_owned()));
    let named = state.videos.iter().find(|video| id.as_ref() == Some(&video.id));
    let latest = || state.videos.last().map(VideoContext::from);
    let known = named.map(VideoContext::from).or_else(|| state.context.clone()).or_else(latest);
    let mut video = known.unwrap_or_default();
    if video.video_url.is_empty() {
        let address = input.video_url.as_deref().and_then(youtube::normalize);
        video.video_id = address.as_deref().and_then(youtube::id).or(id).unwrap_or_default();
        video.video_url = address.unwrap_or_default();
    }
    let given =
        || input.thumbnail_url.clone().filter(|address| sources.is_given_thumbnail(address));
    let known = video.thumbnail_url.filter(|address| sources.is_image(address));
    video.thumbnail_url = known.or_else(given);
    video
}
