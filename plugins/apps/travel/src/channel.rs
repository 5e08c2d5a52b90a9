//! The state channels, and what tools see of them.

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_plugin::Failure;
use wattle_plugin::prelude::ToolContext;

use crate::block::Block;
use crate::image::plan::Kept;
use crate::image::{ImageAsset, ImageSource};
use crate::video::{Video, VideoContext};

/// What a run starts with: the messages of the chat page and the snapshot of the session.
pub(crate) const REQUEST: &str = "request";
/// The conversation.
pub(crate) const MESSAGES: &str = "messages";
/// Crawled videos, the newest last.
pub(crate) const VIDEOS: &str = "videos";
/// What later steps need to know of the video.
pub(crate) const CONTEXT: &str = "context";
/// All blocks.
pub(crate) const BLOCKS: &str = "blocks";
/// The blocks that are spots.
pub(crate) const SPOT_BLOCKS: &str = "spot_blocks";
/// Prepared pictures.
pub(crate) const IMAGES: &str = "images";
/// Where the prepared pictures come from.
pub(crate) const IMAGE_MODE: &str = "image_mode";
/// What the pictures are to show, as long as there are none.
pub(crate) const IMAGE_PLAN: &str = "image_plan";
/// The page.
pub(crate) const HTML: &str = "html";
/// The last output of every tool, without the page.
pub(crate) const TOOL_OUTPUTS: &str = "tool_outputs";

/// What tools see of the state: the channels under `state` of the agent in `graph.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// See [`VIDEOS`].
    #[serde(deserialize_with = "or_default")]
    pub(crate) videos: Vec<Video>,
    /// See [`CONTEXT`].
    pub(crate) context: Option<VideoContext>,
    /// See [`BLOCKS`].
    #[serde(deserialize_with = "or_default")]
    pub(crate) blocks: Vec<Block>,
    /// See [`IMAGES`].
    #[serde(deserialize_with = "or_default")]
    pub(crate) images: Vec<ImageAsset>,
    /// See [`IMAGE_MODE`].
    pub(crate) image_mode: Option<ImageSource>,
    /// See [`IMAGE_PLAN`].
    pub(crate) image_plan: Option<Kept>,
    /// See [`TOOL_OUTPUTS`].
    #[serde(deserialize_with = "or_default")]
    pub(crate) tool_outputs: Map<String, Value>,
}

impl State {
    /// Reads what the caller of a tool shows it.
    pub(crate) fn of(context: &ToolContext) -> Result<Self, Failure> {
        context.state()
    }
}

/// A channel that was never written is `null`.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
