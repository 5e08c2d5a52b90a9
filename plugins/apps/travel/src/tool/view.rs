//! What a model sees of a tool's output: enough to go on with, without pages, pictures and long
//! texts, which it would pay for in every later turn.

use serde_json::Value;

use crate::text::head;

/// Characters of a video's subtitles and description: enough to know what it is about.
const HEAD_CHARS: usize = 300;

/// Characters of any other text.
const TEXT_CHARS: usize = 2_000;

/// Key of a page in an output.
const PAGE: &str = "html";

/// What the model sees of an output of any tool.
pub(crate) fn model_view(tool: &str, output: &Value) -> Value {
    let mut view = without_page(output);
    match tool {
        "crawl_youtube_videos" => shorten_videos(&mut view),
        // It knows the blocks from the step before, and the coordinates stand beside them.
        "resolve_spot_coordinates" => drop_keys(&mut view, &["blocks", "spot_blocks"]),
        _ => {}
    }
    shorten(&mut view);
    view
}

/// An output as it is kept in the state, where the page has a channel of its own.
pub(super) fn without_page(output: &Value) -> Value {
    let mut output = output.clone();
    drop_keys(&mut output, &[PAGE]);
    output
}

fn drop_keys(value: &mut Value, keys: &[&str]) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

fn shorten_videos(output: &mut Value) {
    let videos = output.get_mut("videos").and_then(Value::as_array_mut);
    for video in videos.into_iter().flatten() {
        for key in ["subtitles", "description"] {
            if let Some(text) = video.get_mut(key) {
                cut(text, HEAD_CHARS);
            }
        }
    }
}

/// Cuts all texts. Data in an address is nothing that a model can read.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("data:") => "data:...".clone_into(text),
        Value::String(_) => cut(value, TEXT_CHARS),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

fn cut(value: &mut Value, chars: usize) {
    if let Value::String(text) = value {
        let length = head(text, chars).len();
        if length < text.len() {
            text.truncate(length);
            text.push_str("...");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::model_view;

    #[test]
    fn a_page_is_not_shown() {
        let output = json!({"html": "<html>", "preview_url": "/api/guide/s"});
        let view = model_view("generate_handbook_html", &output);
        assert_eq!(view, json!({"preview_url": "/api/guide/s"}));
    }

    #[test]
    fn long_texts_of_videos_are_shown_by_their_beginning() {
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
    fn what_is_no_object_stays() {
        for output in [Value::Null, json!("x"), json!([1, 2.5, true])] {
            assert_eq!(model_view("crawl_youtube_videos", &output), output);
        }
    }
}
