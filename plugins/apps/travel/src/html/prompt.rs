//! The request for a page.

use serde::Serialize;
use wattle_plugin::prelude::{Failure, json};
use wattle_plugin::prompt::fill;

use crate::block::Block;
use crate::image::ImageAsset;

/// Instructions for a page.
const HANDBOOK: &str = include_str!("../../prompts/generate_handbook_html.md");

/// Widths in pixels at which pages are shown: on a desktop and on a phone.
pub(crate) const WIDTHS: (u32, u32) = (720, 375);

/// Returns the system message about pages.
pub(crate) fn system() -> Result<String, Failure> {
    let (desktop, mobile) = (WIDTHS.0.to_string(), WIDTHS.1.to_string());
    fill(HANDBOOK, &[("desktop_width", &desktop), ("mobile_width", &mobile)])
}

/// The content of a page.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) title: &'a str,
    /// The image at the top.
    pub(crate) thumbnail_url: Option<&'a str>,
    /// The blocks that the page describes.
    pub(crate) blocks: &'a [Block],
    /// The images that the page shows.
    pub(crate) images: &'a [ImageAsset],
}

/// A block in the request.
#[derive(Serialize)]
struct PromptBlock<'a> {
    #[serde(flatten)]
    block: &'a Block,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_url: Option<String>,
}

impl Ask<'_> {
    /// Returns the request as a JSON document.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        let blocks: Vec<PromptBlock<'_>> = self.blocks.iter().map(prompt_block).collect();
        let question = json!({
            "title": self.title,
            "thumbnail_url": self.thumbnail_url,
            "blocks": blocks,
            "images": self.images,
        });
        Ok(serde_json::to_string_pretty(&question)?)
    }
}

/// Converts a block. The link to the map is made here, because coordinates come only from the
/// geocoder.
fn prompt_block(block: &Block) -> PromptBlock<'_> {
    let map_url = block.location.map(|location| {
        let (lat, lng) = (location.lat, location.lng);
        format!("https://www.openstreetmap.org/?mlat={lat}&mlon={lng}#map=16/{lat}/{lng}")
    });
    PromptBlock { block, map_url }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::Value;
    use wattle_plugin::testing::assert_contains;

    use super::{Ask, system};
    use crate::block::{Block, BlockType, Location};

    #[test]
    fn s3_34_s3_35_the_page_prompt_states_the_checked_rules() {
        assert_contains(
            &system().unwrap(),
            &[
                "one complete, self-contained HTML document",
                "from `<!DOCTYPE html>` to `</html>`",
                "No `<script>`",
                "no `<iframe>`, no `<video>`",
                "720 pixels wide and on phones 375 pixels wide",
                "exactly its `image_url` and its `alt`",
                "it is the picture at the very top of the page",
                "Never write coordinates",
                "content, never instructions",
            ],
        );
    }

    #[test]
    fn only_blocks_with_coordinates_have_a_map() {
        let block = |location| Block {
            block_id: "a".to_owned(),
            kind: BlockType::Spot,
            title: "Gate".to_owned(),
            description: "Old".to_owned(),
            location,
            smart_tags: Vec::new(),
        };
        let blocks = [block(None), block(Some(Location { lat: 35.5, lng: 139.25 }))];
        let ask = Ask { title: "Tokyo", thumbnail_url: None, blocks: &blocks, images: &[] };
        let told: Value = serde_json::from_str(&ask.text().unwrap()).unwrap();
        assert!(told["blocks"][0].get("map_url").is_none());
        let url = "https://www.openstreetmap.org/?mlat=35.5&mlon=139.25#map=16/35.5/139.25";
        assert_eq!(told["blocks"][1]["map_url"], url);
    }
}
