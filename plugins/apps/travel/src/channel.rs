//! The state channels, the agent that talks, and the state that tools see.

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_plugin::Failure;
use wattle_plugin::chat::Agent;
use wattle_plugin::prelude::ToolContext;

use crate::block::Block;
use crate::image::plan::ImagePlan;
use crate::image::{ImageAsset, ImageSource};
use crate::video::{Video, VideoContext};

/// The input of a run: the messages of the chat page and the snapshot of the session.
pub(crate) const REQUEST: &str = "request";
/// The conversation.
pub(crate) const MESSAGES: &str = "messages";
/// Crawled videos, the newest last.
pub(crate) const VIDEOS: &str = "videos";
/// The part of the video that later steps need.
pub(crate) const CONTEXT: &str = "context";
/// All blocks.
pub(crate) const BLOCKS: &str = "blocks";
/// The blocks that are spots.
pub(crate) const SPOT_BLOCKS: &str = "spot_blocks";
/// Prepared images.
pub(crate) const IMAGES: &str = "images";
/// Source of the prepared images.
pub(crate) const IMAGE_MODE: &str = "image_mode";
/// Plan of the last attempt that prepared no image.
pub(crate) const IMAGE_PLAN: &str = "image_plan";
/// The page.
pub(crate) const HTML: &str = "html";
/// The last output of every tool, without the page.
pub(crate) const TOOL_OUTPUTS: &str = "tool_outputs";

/// The nodes of the agent in `graph.toml`, and the channel with its conversation.
pub(crate) const AGENT: Agent =
    Agent { model_node: "agent", tool_node: "tools", channel: MESSAGES };

/// The state that tools see: the channels under `state` of the agent in `graph.toml`.
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
    pub(crate) image_plan: Option<ImagePlan>,
    /// See [`TOOL_OUTPUTS`].
    #[serde(deserialize_with = "or_default")]
    pub(crate) tool_outputs: Map<String, Value>,
}

impl State {
    /// Reads the state that the caller of a tool passes.
    pub(crate) fn of(context: &ToolContext) -> Result<Self, Failure> {
        context.state()
    }
}

/// Deserializes a channel. The value `null`, of a channel that was never written, is the default.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
