//! The tool output that a model sees: enough to continue, without pages, images and long texts,
//! which every later turn would have to pay for.

use serde_json::Value;
use wattle_plugin::prompt::head;

use crate::session::stored_output::{for_each_text, without_page};
use crate::tool::{CRAWL_YOUTUBE_VIDEOS, RESOLVE_SPOT_COORDINATES};
use crate::video::for_each_long_text;

/// Maximum number of characters of a video's subtitles and description, enough to know the subject.
const HEAD_CHARS: usize = 300;

/// Maximum number of characters of any other text.
const TEXT_CHARS: usize = 2_000;

/// Returns the output of a tool as the model sees it.
pub(crate) fn model_view(tool: &str, output: &Value) -> Value {
    let mut view = without_page(output);
    match tool {
        CRAWL_YOUTUBE_VIDEOS => {
            if let Some(videos) = view.get_mut("videos") {
                for_each_long_text(videos, |text| cut(text, HEAD_CHARS));
            }
        }
        // The model knows the blocks from the step before, and another field has the coordinates.
        RESOLVE_SPOT_COORDINATES => {
            if let Some(fields) = view.as_object_mut() {
                fields.retain(|key, _| key != "blocks" && key != "spot_blocks");
            }
        }
        _ => {}
    }
    for_each_text(&mut view, &mut shorten);
    view
}

/// Cuts a text. A model cannot read data in a URL.
fn shorten(text: &mut String) {
    if text.starts_with("data:") {
        "data:...".clone_into(text);
    } else {
        cut(text, TEXT_CHARS);
    }
}

fn cut(text: &mut String, chars: usize) {
    let length = head(text, chars).len();
    if length < text.len() {
        text.truncate(length);
        text.push_str("...");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::model_view;

    #[test]
    fn page_is_not_shown() {
        let output = json!({"html": "<html>", "preview_url": "/api/guide/s"});
        let view = model_view("generate_handbook_html", &output);
        assert_eq!(view, json!({"preview_url": "/api/guide/s"}));
    }

    #[test]
    fn long_texts_of_videos_are_cut() {
        let long = "\u{6771}".repeat(5_000);
        let output = json!({"count": 1, "videos": [{"id": "abcdef", "subtitles": long,
            "description": "short", "title": "t"}, null]});
        let view = model_view("crawl_youtube_videos", &output);
        assert_eq!(view["videos"][0]["subtitles"], format!("{}...", "\u{6771}".repeat(300)));
        assert_eq!(view["videos"][0]["description"], "short");
    }

    #[test]
    fn coordinates_are_shown_once() {
        let spot = json!({"block_id": "a", "location": {"lat": 1.5, "lng": 2.5}});
        let output = json!({"resolved_count": 1, "spots_with_coordinates": [spot],
            "blocks": [spot], "spot_blocks": [spot]});
        let view = model_view("resolve_spot_coordinates", &output);
        assert_eq!(view, json!({"resolved_count": 1, "spots_with_coordinates": [spot]}));
    }

    #[test]
    fn s3_33_data_and_long_texts_are_never_shown() {
        let output = json!({"images": [{"image_url": "data:image/png;base64,AAAA"}],
            "note": "x".repeat(9_000)});
        let view = model_view("generate_image", &output);
        assert_eq!(view["images"][0]["image_url"], "data:...");
        assert_eq!(view["note"].as_str().map(str::len), Some(2_003));
    }

    #[test]
    fn other_values_are_unchanged() {
        for output in [Value::Null, json!("x"), json!([1, 2.5, true])] {
            assert_eq!(model_view("crawl_youtube_videos", &output), output);
        }
    }
}
