//! The request for a page.

use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::prompt::fill;

use crate::block::{Block, Location};
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

/// Returns the request for a page as a JSON document: its title, the image at its top, the blocks
/// that it describes and the images that it shows.
pub(crate) fn request(
    title: &str,
    thumbnail_url: Option<&str>,
    blocks: &[Block],
    images: &[ImageAsset],
) -> Result<String, Failure> {
    let blocks: Vec<Value> = blocks.iter().map(prompt_block).collect();
    let question = json!({
        "title": title, "thumbnail_url": thumbnail_url, "blocks": blocks, "images": images,
    });
    Ok(serde_json::to_string_pretty(&question)?)
}

/// Converts a block. The link to the map is made here, because coordinates come only from the
/// geocoder.
fn prompt_block(block: &Block) -> Value {
    let mut told = json!(block);
    if let Some(Location { lat, lng }) = block.location {
        let map =
            format!("https://www.openstreetmap.org/?mlat={lat}&mlon={lng}#map=16/{lat}/{lng}");
        told["map_url"] = json!(map);
    }
    told
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::assert_contains;

    use super::{Block, Location, Value, request, system};
    use crate::block::BlockType;

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
        let asked = request("Tokyo", None, &blocks, &[]).unwrap();
        let told: Value = serde_json::from_str(&asked).unwrap();
        assert!(told["blocks"][0].get("map_url").is_none());
        let url = "https://www.openstreetmap.org/?mlat=35.5&mlon=139.25#map=16/35.5/139.25";
        assert_eq!(told["blocks"][1]["map_url"], url);
    }
}
