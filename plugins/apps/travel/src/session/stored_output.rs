//! Outputs of tools as they are stored. The snapshot has what later steps read, so the other stored
//! outputs have only the beginning of long texts.

use wattle_plugin::prelude::Value;
use wattle_plugin::prompt::head;

use crate::video::for_each_long_text;

/// Maximum number of characters of a video's subtitles and description: more than a model reads of
/// them.
const VIDEO_CHARS: usize = 1_000;

/// Maximum number of characters of any other text. Descriptions of blocks have some hundred.
const TEXT_CHARS: usize = 20_000;

/// Maximum size of a page in a message, in bytes. A model writes at most a quarter of it.
const PAGE_BYTES: usize = 256 << 10;

/// Maximum size of an output with shortened texts, in bytes. Only a client can make a larger one.
const OUTPUT_BYTES: usize = 512 << 10;

/// Suffix of a text that was cut.
const NOTE: &str = "... (cut)";

/// Field with a page.
const PAGE: &str = "html";

/// Returns an output as messages have it, with a page if it is not too long.
pub(crate) fn of_message(output: &Value) -> Value {
    let mut stored = of_step(output);
    if let (Some(fields), Some(Value::String(page))) = (stored.as_object_mut(), output.get(PAGE))
        && page.len() <= PAGE_BYTES
    {
        fields.insert(PAGE.to_owned(), page.as_str().into());
    }
    if stored.to_string().len() > OUTPUT_BYTES { Value::Null } else { stored }
}

/// Returns an output as steps and the snapshot have it, without the page, which the snapshot
/// stores.
pub(crate) fn of_step(output: &Value) -> Value {
    let mut output = without_page(output);
    if let Some(videos) = output.get_mut("videos") {
        shorten_videos(videos);
    }
    for_each_text(&mut output, &mut |text| cut(text, TEXT_CHARS));
    output
}

/// Returns an output as the state has it, where the page has a channel of its own.
pub(crate) fn without_page(output: &Value) -> Value {
    let mut output = output.clone();
    drop_page(&mut output);
    output
}

/// Removes the page from an output.
pub(crate) fn drop_page(output: &mut Value) {
    if let Some(fields) = output.as_object_mut() {
        fields.shift_remove(PAGE);
    }
}

/// Cuts the texts of videos.
pub(crate) fn shorten_videos(videos: &mut Value) {
    for_each_long_text(videos, |text| cut(text, VIDEO_CHARS));
}

/// Calls a function with each text in a document.
pub(crate) fn for_each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| for_each_text(field, change)),
        _ => {}
    }
}

/// Cuts a text. A text that was cut before is not cut again.
fn cut(text: &mut String, chars: usize) {
    let length = head(text, chars).len();
    if length + NOTE.len() < text.len() {
        text.truncate(length);
        text.push_str(NOTE);
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{OUTPUT_BYTES, PAGE_BYTES, of_message, of_step};

    #[test]
    fn long_texts_of_videos_are_cut() {
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
    fn page_is_in_messages_unless_it_is_too_long() {
        let output = json!({"html": "<p>".repeat(20_000), "title": "t"});
        assert_eq!(of_message(&output), output, "it is not cut in the middle");
        assert_eq!(of_step(&output), json!({"title": "t"}));
        let output = json!({"html": "x".repeat(PAGE_BYTES + 1), "title": "t"});
        assert_eq!(of_message(&output), json!({"title": "t"}));
    }

    #[test]
    fn oversized_output_is_not_stored() {
        let output = json!(vec!["x".repeat(1_000); OUTPUT_BYTES / 1_000]);
        assert!(of_message(&output).is_null());
        assert_eq!(of_message(&json!("x")), json!("x"));
    }
}
