//! Videos, as the crawler describes them.

mod item;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_plugin::prelude::Value;

pub(crate) use self::item::{Item, read};

/// Fields of a video with long texts.
const LONG: [&str; 2] = ["subtitles", "description"];

/// A crawled video.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Video {
    /// Id at YouTube.
    pub(crate) id: String,
    /// Normalized URL.
    pub(crate) url: String,
    pub(crate) title: String,
    /// Name of the channel that published it.
    pub(crate) channel_name: Option<String>,
    /// URL of the thumbnail.
    pub(crate) thumbnail_url: Option<String>,
    /// Duration, such as `00:10:00`.
    pub(crate) duration: Option<String>,
    /// Date of publication, as the crawler reports it.
    pub(crate) date: Option<String>,
    /// Location, as the crawler reports it.
    pub(crate) location: Option<String>,
    pub(crate) description: String,
    /// Subtitles as plain text.
    pub(crate) subtitles: String,
    /// Hashtags of the author, such as `#tokyo`.
    pub(crate) hashtags: Vec<String>,
}

/// The part of the guide's video that later steps need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VideoContext {
    /// Id at YouTube.
    pub(crate) video_id: String,
    /// Normalized URL.
    pub(crate) video_url: String,
    pub(crate) title: String,
    /// URL of the thumbnail.
    pub(crate) thumbnail_url: Option<String>,
    /// Location, which is added to a query that finds nothing.
    pub(crate) location: Option<String>,
}

impl From<&Video> for VideoContext {
    fn from(video: &Video) -> Self {
        Self {
            video_id: video.id.clone(),
            video_url: video.url.clone(),
            title: video.title.clone(),
            thumbnail_url: video.thumbnail_url.clone(),
            location: video.location.clone(),
        }
    }
}

/// Calls a function with each long text in a list of videos.
pub(crate) fn for_each_long_text(videos: &mut Value, mut change: impl FnMut(&mut String)) {
    for video in videos.as_array_mut().into_iter().flatten() {
        for key in LONG {
            if let Some(Value::String(text)) = video.get_mut(key) {
                change(text);
            }
        }
    }
}
