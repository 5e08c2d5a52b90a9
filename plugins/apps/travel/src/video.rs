//! Videos, as the crawler describes them.

mod item;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::item::{Item, read};

/// A crawled video.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Video {
    /// Id of YouTube.
    pub(crate) id: String,
    /// Its normalized address.
    pub(crate) url: String,
    /// Its title.
    pub(crate) title: String,
    /// Who made it.
    pub(crate) channel_name: Option<String>,
    /// Its picture.
    pub(crate) thumbnail_url: Option<String>,
    /// Such as `00:10:00`.
    pub(crate) duration: Option<String>,
    /// When it was published, as the crawler says it.
    pub(crate) date: Option<String>,
    /// Where it plays, as the crawler says it.
    pub(crate) location: Option<String>,
    /// Its description.
    pub(crate) description: String,
    /// Its subtitles as plain text.
    pub(crate) subtitles: String,
    /// Words of the author, such as `#tokyo`.
    pub(crate) hashtags: Vec<String>,
}

/// What later steps need to know of the video that the guide is made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VideoContext {
    /// Id of YouTube.
    pub(crate) video_id: String,
    /// Its normalized address.
    pub(crate) video_url: String,
    /// Its title.
    pub(crate) title: String,
    /// Its picture.
    pub(crate) thumbnail_url: Option<String>,
    /// Where it plays; put after a query that finds nothing.
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
