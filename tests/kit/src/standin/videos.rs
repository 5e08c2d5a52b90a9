//! The videos of the Apify stand-in.
//!
//! Their speech has sentences of a few patterns, such as `We visit Tokyo Tower.`, from which the
//! stand-in models derive the content of a guide.

use serde_json::{Value, json};

/// The result of a crawl of one URL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dataset {
    /// A video.
    Video(Value),
    /// No item.
    Nothing,
    /// An item with an error.
    Broken(&'static str),
}

/// A sentence between those with content, as in real subtitles.
const FILLER: &str = "So yeah, the weather is lovely today and I am really enjoying the walk.";

/// Number of filler sentences in a long video, which exceeds 8,000 characters with them.
const LONG: usize = 130;

struct Video {
    id: &'static str,
    title: &'static str,
    location: Option<&'static str>,
    /// Sentences with content.
    said: &'static [&'static str],
    shape: Shape,
}

/// The peculiarity of a video.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Subtitles of more than 8,000 characters, with one place after them.
    Long,
    /// No `thumbnailUrl`, but a list of images in several sizes.
    Thumbnails,
    /// No peculiarity.
    Plain,
    /// No subtitles. The description has all sentences.
    Silent,
}

const VIDEOS: &[Video] = &[
    Video {
        id: "dQw4w9WgXcQ",
        title: "Tokyo food walk",
        location: Some("Tokyo"),
        said: &[
            "We visit Tokyo Tower.",
            "We visit Senso-ji Temple.",
            "We visit Yanaka Ginza.",
            "We eat Monjayaki.",
            "We shop at Nakamise Street.",
            "We take Tokyo Metro.",
        ],
        shape: Shape::Long,
    },
    Video {
        id: "kyotoTempl1",
        title: "Kyoto temples in one day",
        location: Some("Kyoto"),
        said: &[
            "We visit Fushimi Inari.",
            "We visit Kinkaku-ji.",
            "We eat Yudofu.",
            "We shop at Nishiki Market.",
            "We take City Bus.",
        ],
        shape: Shape::Thumbnails,
    },
    Video {
        id: "osakaNight1",
        title: "Osaka by night",
        location: None,
        said: &[
            "We visit Dotonbori.",
            "We visit Hidden Lantern Alley.",
            "We eat Takoyaki.",
            "We take Osaka Metro.",
        ],
        shape: Shape::Plain,
    },
    Video {
        id: "lisbonTram1",
        title: "Lisbon by tram",
        location: Some("Lisbon"),
        said: &[
            "We visit Belem Tower.",
            "We eat Pastel de Nata.",
            "We shop at Feira da Ladra.",
            "We take Tram 28.",
        ],
        shape: Shape::Silent,
    },
    Video {
        id: "homeKitchen",
        title: "Ramen at home",
        location: None,
        said: &[
            "We eat Shoyu Ramen.",
            "We eat Gyoza.",
            "We shop at the Corner Store.",
            "We remember to rest the dough.",
        ],
        shape: Shape::Plain,
    },
    Video {
        id: "nowhereIsle",
        title: "Islands on no map",
        location: Some("Nowhere"),
        said: &[
            "We visit Hidden Lagoon.",
            "We visit Hidden Harbor.",
            "We visit Fort Eternity.",
            "We eat Seaweed Soup.",
            "We take the Night Ferry.",
        ],
        shape: Shape::Plain,
    },
];

/// A sentence after the first 8,000 characters of the long video, which must not be in a guide.
const BEHIND: &str = "We visit Far Beyond Park.";

/// Returns the data of a video. Its images are served from `base_url`; YouTube has a separate host
/// for them.
pub(super) fn find(id: &str, base_url: &str) -> Dataset {
    match VIDEOS.iter().find(|video| video.id == id) {
        Some(video) => Dataset::Video(item(video, base_url)),
        None if id.starts_with("broken") => Dataset::Broken("This video is not available"),
        None => Dataset::Nothing,
    }
}

/// Returns the id in the URL of a video.
pub(super) fn id_in(url: &str) -> Option<&str> {
    let marks = ["watch?v=", "youtu.be/", "/shorts/", "/embed/"];
    let rest = marks.iter().find_map(|mark| Some(url.split_once(mark)?.1))?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|id| id.len() >= 6)
}

fn item(video: &Video, base_url: &str) -> Value {
    let Video { id, title, location, shape, .. } = video;
    let mut item = json!({
        "title": title,
        "translatedTitle": null,
        "type": "video",
        "id": id,
        "url": format!("https://www.youtube.com/watch?v={id}"),
        "viewCount": 1000,
        "date": "2025-01-01T00:00:00.000Z",
        "likes": 10,
        "location": location,
        "channelName": "Slow Steps",
        "channelUrl": "https://www.youtube.com/@slowsteps",
        "channelUsername": "slowsteps",
        "channelId": "UC1",
        "numberOfSubscribers": 5,
        "duration": "00:10:00",
        "commentsCount": 1,
        "text": description(video),
        "descriptionLinks": [],
        "subtitles": subtitles(video),
        "commentsTurnedOff": false,
        "isMonetized": null,
        "hashtags": ["#travel"],
        "formats": [],
        "isMembersOnly": false,
        "isPaidContent": false,
    });
    let picture = |name: &str| format!("{base_url}/vi/{id}/{name}.jpg");
    if *shape == Shape::Thumbnails {
        let sized = |name: &str, width: u32, height: u32| json!({"url": picture(name), "width": width, "height": height});
        item["thumbnails"] = json!([
            sized("default", 120, 90),
            sized("maxresdefault", 1280, 720),
            sized("hqdefault", 480, 360),
        ]);
    } else {
        item["thumbnailUrl"] = json!(picture("maxresdefault"));
    }
    item
}

fn description(video: &Video) -> String {
    let about = format!("{}: all places of this video are in the chapters below.", video.title);
    if video.shape == Shape::Silent { format!("{about} {}", video.said.join(" ")) } else { about }
}

fn subtitles(video: &Video) -> Value {
    let text = match video.shape {
        Shape::Silent => return json!([]),
        Shape::Long => {
            let mut lines = woven(video.said);
            lines.extend(std::iter::repeat_n(FILLER, LONG));
            lines.push(BEHIND);
            lines.join("\n")
        }
        Shape::Thumbnails | Shape::Plain => woven(video.said).join("\n"),
    };
    json!([{"srtUrl": null, "type": "auto_generated", "language": "en", "plaintext": text}])
}

/// Returns the sentences with filler between them.
fn woven(said: &[&'static str]) -> Vec<&'static str> {
    said.iter().flat_map(|sentence| [FILLER, *sentence]).collect()
}

#[cfg(test)]
mod tests {
    use super::{VIDEOS, id_in};

    #[test]
    fn ids_have_the_length_of_youtube_ids() {
        for video in VIDEOS {
            assert_eq!(video.id.len(), 11, "{}", video.id);
        }
        assert_eq!(id_in("https://youtu.be/dQw4w9WgXcQ?t=3"), Some("dQw4w9WgXcQ"));
        assert_eq!(id_in("https://www.youtube.com/shorts/dQw4w9WgXcQ"), Some("dQw4w9WgXcQ"));
        assert_eq!(id_in("https://www.youtube.com/@slowsteps"), None);
    }
}
