//! Converts an item of the crawler's data set to a video.
//!
//! The service changes its items without notice, so only the id is required. Every text is cut,
//! because all later steps get the videos.

use serde_json::Value;
use wattle_plugin::prompt::head;

use crate::video::Video;
use crate::youtube;

/// Maximum number of characters of subtitles: three times the text that blocks are made from, so
/// that the limit there can be raised without another crawl.
const SUBTITLES_CHARS: usize = 24_000;

/// Maximum number of characters of a description. YouTube's own limit is 5,000.
const DESCRIPTION_CHARS: usize = 5_000;

/// Maximum number of characters of any other text.
const TEXT_CHARS: usize = 300;

/// Maximum length of a URL.
const URL_CHARS: usize = 2_000;

/// Maximum number of hashtags. YouTube shows none if there are more.
const HASHTAGS: usize = 60;

/// A parsed item of the data set.
#[derive(Debug, PartialEq)]
pub(crate) enum Item {
    /// A video.
    Video(Box<Video>),
    /// The crawler's reason why there is no video.
    Refused(String),
}

/// Parses an item. Subtitles in `language` are preferred.
pub(crate) fn read(item: &Value, language: &str) -> Item {
    match video(item, language) {
        Some(video) if item["error"].is_null() => Item::Video(Box::new(video)),
        _ => Item::Refused(reason(item)),
    }
}

fn video(item: &Value, language: &str) -> Option<Video> {
    let id = text(item, "id").filter(|id| youtube::is_id(id));
    let id = id.or_else(|| youtube::id(item["url"].as_str()?))?;
    Some(Video {
        url: youtube::address(&id),
        id,
        title: text(item, "title").unwrap_or_default(),
        channel_name: text(item, "channelName"),
        thumbnail_url: thumbnail(item),
        duration: text(item, "duration"),
        date: text(item, "date"),
        location: text(item, "location"),
        description: long(&item["text"], DESCRIPTION_CHARS),
        subtitles: subtitles(&item["subtitles"], language),
        hashtags: hashtags(&item["hashtags"]),
    })
}

/// Returns a text that is not empty.
fn text(item: &Value, name: &str) -> Option<String> {
    let text = item[name].as_str()?.trim();
    (!text.is_empty()).then(|| head(text, TEXT_CHARS).to_owned())
}

fn long(value: &Value, chars: usize) -> String {
    head(value.as_str().unwrap_or_default().trim(), chars).to_owned()
}

/// Returns the URL of the thumbnail, or else of the widest image.
fn thumbnail(item: &Value) -> Option<String> {
    let own = web_address(&item["thumbnailUrl"]);
    own.or_else(|| {
        let others = item["thumbnails"].as_array()?.iter();
        let others = others.filter_map(|other| {
            let width = other["width"].as_f64().unwrap_or_default();
            Some((width, web_address(&other["url"])?))
        });
        let wider = |best: (f64, String), other: (f64, String)| {
            if other.0 > best.0 { other } else { best }
        };
        others.reduce(wider).map(|(_, url)| url)
    })
}

fn web_address(value: &Value) -> Option<String> {
    let url = value.as_str()?.trim();
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    let is_plain = url.len() <= URL_CHARS && !url.contains(char::is_whitespace);
    (is_web && is_plain).then(|| url.to_owned())
}

/// Returns the text in the wanted language, or else the first one.
fn subtitles(value: &Value, language: &str) -> String {
    let tracks = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let says = |track: &&Value| track["plaintext"].as_str().is_some_and(|it| !it.trim().is_empty());
    let wanted = |track: &&Value| track["language"].as_str() == Some(language);
    let spoken = || tracks.iter().filter(says);
    let track = spoken().find(wanted).or_else(|| spoken().next());
    track.map(|track| long(&track["plaintext"], SUBTITLES_CHARS)).unwrap_or_default()
}

fn hashtags(value: &Value) -> Vec<String> {
    let tags = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let tags = tags.iter().filter_map(Value::as_str).map(str::trim).filter(|tag| !tag.is_empty());
    tags.take(HASHTAGS).map(|tag| head(tag, TEXT_CHARS).to_owned()).collect()
}

fn reason(item: &Value) -> String {
    let words = ["/error/message", "/error", "/note", "/errorDescription"];
    let found = words.iter().find_map(|place| item.pointer(place)?.as_str());
    head(found.unwrap_or("the item is no video"), TEXT_CHARS).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Item, read};
    use crate::video::Video;

    fn video(item: Value) -> Video {
        match read(&item, "en") {
            Item::Video(video) => *video,
            Item::Refused(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn s3_15_an_item_becomes_a_video() {
        let read = video(json!({
            "title": " Tokyo food walk ", "type": "video", "id": "dQw4w9WgXcQ",
            "url": "https://youtu.be/dQw4w9WgXcQ?si=1", "date": "2025-01-01T00:00:00.000Z",
            "thumbnailUrl": "https://i.ytimg.com/vi/a/max.jpg", "location": "Tokyo",
            "channelName": "C", "duration": "00:10:00", "text": "description", "likes": 10,
            "subtitles": [
                {"language": "ja", "plaintext": "x"}, {"language": "en", "plaintext": "hi"},
            ],
            "hashtags": ["#tokyo", ""],
        }));
        let expected = Video {
            id: "dQw4w9WgXcQ".to_owned(),
            url: "https://www.youtube.com/watch?v=dQw4w9WgXcQ".to_owned(),
            title: "Tokyo food walk".to_owned(),
            channel_name: Some("C".to_owned()),
            thumbnail_url: Some("https://i.ytimg.com/vi/a/max.jpg".to_owned()),
            duration: Some("00:10:00".to_owned()),
            date: Some("2025-01-01T00:00:00.000Z".to_owned()),
            location: Some("Tokyo".to_owned()),
            description: "description".to_owned(),
            subtitles: "hi".to_owned(),
            hashtags: vec!["#tokyo".to_owned()],
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn s3_15_only_the_id_is_required() {
        let read = video(json!({"url": "https://m.youtube.com/watch?v=abcdef", "title": null,
            "subtitles": null, "text": 7, "location": " ", "hashtags": "x"}));
        let id = "abcdef".to_owned();
        let url = "https://www.youtube.com/watch?v=abcdef".to_owned();
        assert_eq!(read, Video { id, url, ..Video::default() });
    }

    #[test]
    fn s3_16_s3_18_the_thumbnail_or_the_widest_image_is_used() {
        let picture = |item: Value| {
            let mut item = item;
            item["id"] = json!("abcdef");
            video(item).thumbnail_url
        };
        let others = json!([
            {"url": "https://a/1.jpg", "width": 120}, {"url": "https://a/3.jpg", "width": 1280},
            {"url": "javascript:x", "width": 9000}, {"url": "https://a/2.jpg", "width": 640},
            {"width": 5000},
        ]);
        assert_eq!(picture(json!({"thumbnails": others})).as_deref(), Some("https://a/3.jpg"));
        let own = json!({"thumbnailUrl": "https://a/own.jpg", "thumbnails": others});
        assert_eq!(picture(own).as_deref(), Some("https://a/own.jpg"));
        let empty = json!({"thumbnailUrl": "", "thumbnails": [{"url": "https://a/0.jpg"}]});
        assert_eq!(picture(empty).as_deref(), Some("https://a/0.jpg"));
        assert_eq!(picture(json!({"thumbnails": {}})), None);
    }

    #[test]
    fn s3_17_items_that_are_not_videos_have_a_reason() {
        for (item, words) in [
            (
                json!({"url": "https://youtu.be/abcdef", "error": "Video unavailable"}),
                "Video unavailable",
            ),
            (json!({"error": {"message": "age gate"}}), "age gate"),
            (json!({"title": "a channel"}), "the item is no video"),
            (json!(null), "the item is no video"),
        ] {
            assert_eq!(read(&item, "en"), Item::Refused(words.to_owned()));
        }
    }

    #[test]
    fn s3_20_texts_are_bounded_by_characters() {
        let read = video(json!({"id": "abcdef", "title": "\u{6771}".repeat(9_000),
            "text": "\u{4eac}".repeat(9_000),
            "subtitles": [{"plaintext": "\u{1f35c}".repeat(90_000)}]}));
        assert_eq!(read.title.chars().count(), 300);
        assert_eq!(read.description.chars().count(), 5_000);
        assert_eq!(read.subtitles.chars().count(), 24_000);
    }
}
