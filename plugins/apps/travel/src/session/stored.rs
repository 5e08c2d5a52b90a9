//! Outputs of tools as they are stored: what later steps read is in the snapshot, once, so the
//! outputs beside it have the beginning of long texts.

use wattle_plugin::prelude::Value;

use crate::text::head;

/// Characters of a video's subtitles and description: more than a model is shown of them.
const VIDEO_CHARS: usize = 1_000;

/// Characters of any other text: a description of a block has some hundred.
const TEXT_CHARS: usize = 20_000;

/// Bytes of a page in a message: a model writes a quarter of it at most.
const PAGE_BYTES: usize = 256 << 10;

/// Bytes of an output when its long texts are cut. One above it is of a client's making.
const OUTPUT_BYTES: usize = 512 << 10;

/// What stands where a text was cut.
const NOTE: &str = "... (cut)";

/// Field of a page.
const PAGE: &str = "html";

/// Fields of a video that are long.
const LONG: [&str; 2] = ["subtitles", "description"];

/// An output as messages have it, with a page if it is not too long.
pub(crate) fn of_message(output: &Value) -> Value {
    let mut output = output.clone();
    let page = output.get(PAGE).cloned();
    drop_page(&mut output);
    shorten(&mut output);
    if let (Some(fields), Some(Value::String(page))) = (output.as_object_mut(), page)
        && page.len() <= PAGE_BYTES
    {
        fields.insert(PAGE.to_owned(), Value::String(page));
    }
    if output.to_string().len() > OUTPUT_BYTES { Value::Null } else { output }
}

/// An output as steps and the snapshot have it: the page is in the snapshot.
pub(crate) fn of_step(output: &Value) -> Value {
    let mut output = output.clone();
    drop_page(&mut output);
    shorten(&mut output);
    output
}

/// Takes the page out of an output.
pub(crate) fn drop_page(output: &mut Value) {
    if let Some(fields) = output.as_object_mut() {
        fields.shift_remove(PAGE);
    }
}

/// Cuts the texts of videos.
pub(crate) fn shorten_videos(videos: &mut Value) {
    for video in videos.as_array_mut().into_iter().flatten() {
        for key in LONG {
            if let Some(text) = video.get_mut(key) {
                cut(text, VIDEO_CHARS);
            }
        }
    }
}

fn shorten(output: &mut Value) {
    if let Some(videos) = output.get_mut("videos") {
        shorten_videos(videos);
    }
    shorten_all(output);
}

fn shorten_all(value: &mut Value) {
    match value {
        Value::String(_) => cut(value, TEXT_CHARS),
        Value::Array(items) => items.iter_mut().for_each(shorten_all),
        Value::Object(fields) => fields.values_mut().for_each(shorten_all),
        _ => {}
    }
}

/// Cuts a text, once: one that was cut before is not longer than the note.
fn cut(value: &mut Value, chars: usize) {
    if let Value::String(text) = value
        && text.len() > chars + NOTE.len()
    {
        let length = head(text, chars).len();
        if length + NOTE.len() < text.len() {
            text.truncate(length);
            text.push_str(NOTE);
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{OUTPUT_BYTES, PAGE_BYTES, of_message, of_step};

    #[test]
    fn texts_of_videos_are_stored_by_their_beginning() {
        let long = "\u{6771}".repeat(24_000);
        let output = json!({"count": 1, "videos": [{"id": "v", "subtitles": long,
            "description": "d"}]});
        let stored = of_step(&output);
        let kept = format!("{}... (cut)", "\u{6771}".repeat(1_000));
        assert_eq!(stored["videos"][0]["subtitles"], kept);
        assert_eq!(stored["videos"][0]["description"], "d");
        assert_eq!(of_message(&output), stored);
        assert_eq!(of_step(&stored), stored, "once");
    }

    #[test]
    fn a_page_is_in_messages_unless_it_is_too_long() {
        let output = json!({"html": "<p>".repeat(20_000), "title": "t"});
        assert_eq!(of_message(&output), output, "it is not cut in the middle");
        assert_eq!(of_step(&output), json!({"title": "t"}));
        let output = json!({"html": "x".repeat(PAGE_BYTES + 1), "title": "t"});
        assert_eq!(of_message(&output), json!({"title": "t"}));
    }

    #[test]
    fn what_no_tool_answers_is_not_kept() {
        let output = json!(vec!["x".repeat(1_000); OUTPUT_BYTES / 1_000]);
        assert!(of_message(&output).is_null());
        assert_eq!(of_message(&json!("x")), json!("x"));
    }
}
