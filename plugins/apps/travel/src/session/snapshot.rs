//! Snapshots: the results of a session, from which a later run continues.
//!
//! Every successful step writes the snapshot, and so does the editor of the page. The last write
//! wins, column by column.

mod patch;
mod table;

use wattle_plugin::prelude::{
    Deserialize, Extra, JsonSchema, Serialize, Value, clock, json, log, sql,
};

pub(crate) use self::patch::{Refused, patch};
pub(crate) use self::table::{read, write};
use crate::block::Block;
use crate::channel::{
    BLOCKS, CONTEXT, HTML, IMAGE_MODE, IMAGE_PLAN, IMAGES, SPOT_BLOCKS, TOOL_OUTPUTS, VIDEOS,
};
use crate::html;
use crate::preview::Preview;
use crate::session::step::{Step, StepStatus};
use crate::session::stored_output;
use crate::tool::output_schema::ToolOutputs;
use crate::tool::{
    self, GENERATE_HANDBOOK_HTML, GENERATE_IMAGE, RESOLVE_SPOT_COORDINATES, SEARCH_IMAGE,
};

/// Steps after which an earlier page is outdated.
const BEFORE_HTML: [&str; 3] = [RESOLVE_SPOT_COORDINATES, SEARCH_IMAGE, GENERATE_IMAGE];

/// The results of a session. Documents that were never written are `null`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Snapshot {
    /// `video`, `videos`, `images`, `imageMode` and `imagePlan`, which the editor does not change.
    #[serde(deserialize_with = "sql::json")]
    pub(crate) context: Value,
    /// All blocks.
    #[serde(deserialize_with = "sql::json")]
    pub(crate) blocks: Value,
    /// The blocks that are spots.
    #[serde(deserialize_with = "sql::json")]
    pub(crate) spot_blocks: Value,
    /// The last output of every tool, without the page.
    #[serde(deserialize_with = "sql::json")]
    pub(crate) tool_outputs: Value,
    /// The page.
    pub(crate) html: Option<String>,
    /// `videoUrl` and `thumbnailUrl` of the page, because another video may have been crawled
    /// since.
    #[serde(deserialize_with = "sql::json")]
    pub(crate) page_video: Value,
    /// Number of pages that the tool has made.
    pub(crate) version: i64,
    /// Path of the page.
    pub(crate) preview_path: Option<String>,
    /// Time of the last change; 0 if there is none. Each write has a later time than the one
    /// before, so this is also the revision of the snapshot.
    pub(crate) updated_ms: i64,
}

/// The results of a session as the endpoints show them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateView {
    /// `video`, `videos`, `images`, `imageMode` and `imagePlan`.
    #[schemars(with = "Option<Extra>")]
    pub(crate) context: Value,
    #[schemars(with = "Option<Vec<Block>>")]
    blocks: Value,
    /// The blocks that are spots.
    #[schemars(with = "Option<Vec<Block>>")]
    spot_blocks: Value,
    /// The last output of every tool, without the page.
    #[schemars(with = "Option<ToolOutputs>")]
    tool_outputs: Value,
    /// The page.
    handbook_html: Option<String>,
    /// Number of pages that the tool has made.
    handbook_version: i64,
    /// Path of the page.
    preview_path: Option<String>,
    updated_at: Option<String>,
    /// Changes with every write.
    revision: i64,
}

impl Snapshot {
    /// Applies the writes of a step to the state.
    pub(crate) fn apply(&mut self, preview: &Preview, step: &Step) {
        for write in &step.writes {
            let value = &write.value;
            match write.channel.as_str() {
                VIDEOS => self.set_context("videos", value),
                CONTEXT => self.set_context("video", value),
                IMAGES => self.set_context("images", value),
                IMAGE_MODE => self.set_context("imageMode", value),
                IMAGE_PLAN => self.set_context("imagePlan", value),
                BLOCKS => self.blocks = value.clone(),
                SPOT_BLOCKS => self.spot_blocks = value.clone(),
                TOOL_OUTPUTS => self.merge_outputs(value),
                HTML => self.set_page(preview, step, value),
                _ => {}
            }
        }
        let is_made = step.status == StepStatus::Success;
        if is_made && BEFORE_HTML.contains(&step.tool.as_str()) {
            self.merge_outputs(&json!({ GENERATE_HANDBOOK_HTML: null }));
        }
    }

    fn set_context(&mut self, key: &str, value: &Value) {
        if !self.context.is_object() {
            self.context = json!({});
        }
        self.context[key] = value.clone();
    }

    /// Merges outputs by tool. An output of `null` removes the stored one.
    fn merge_outputs(&mut self, outputs: &Value) {
        if !self.tool_outputs.is_object() {
            self.tool_outputs = json!({});
        }
        let fields = outputs.as_object().into_iter().flatten();
        if let Value::Object(known) = &mut self.tool_outputs {
            for (name, output) in fields {
                if output.is_null() {
                    known.shift_remove(name);
                } else {
                    known.insert(name.clone(), stored_output::of_step(output));
                }
            }
        }
    }

    /// Stores a page after cleaning it again: the tool may be of the version with which its thread
    /// began, and the current version removes more.
    fn set_page(&mut self, preview: &Preview, step: &Step, page: &Value) {
        let Some(page) = page.as_str() else {
            (self.html, self.page_video) = (None, Value::Null);
            return;
        };
        let output = step.output.as_ref();
        let of_video = |key: &str| output.map_or(Value::Null, |output| output[key].clone());
        let video = json!({ "videoUrl": of_video("videoUrl"),
            "thumbnailUrl": of_video("thumbnailUrl") });
        let (thumbnail, url) = (video["thumbnailUrl"].as_str(), video["videoUrl"].as_str());
        match html::page(page, thumbnail, url, &preview.sources) {
            Ok(page) => (self.html, self.page_video) = (Some(page), video),
            Err(error) => {
                log::error!("a page is not kept: {error}");
                return;
            }
        }
        self.preview_path = Some(preview.path.clone());
        if step.tool == GENERATE_HANDBOOK_HTML {
            self.version += 1;
        }
    }

    /// Returns the tools with an output, in the order of a guide.
    pub(crate) fn finished(outputs: &Value) -> Vec<&'static str> {
        tool::NAMES.into_iter().filter(|name| !outputs[*name].is_null()).collect()
    }

    /// Returns the URL of the image of the page's video.
    pub(crate) fn thumbnail(&self) -> Option<&str> {
        self.video()["thumbnailUrl"].as_str()
    }

    /// Returns the URL of the page's video.
    pub(crate) fn video_url(&self) -> Option<&str> {
        self.video()["videoUrl"].as_str()
    }

    /// Returns the video that the page was made from; without a page, that of the guide.
    fn video(&self) -> &Value {
        if self.page_video.is_object() { &self.page_video } else { &self.context["video"] }
    }

    /// Returns the snapshot as a run gets it.
    pub(crate) fn for_run(&self) -> Value {
        json!({
            "context": self.context, "blocks": self.blocks, "spotBlocks": self.spot_blocks,
            "toolOutputs": self.tool_outputs, "handbookHtml": self.html,
        })
    }

    /// Returns the snapshot as the endpoints show it.
    pub(crate) fn view(&self) -> StateView {
        let updated = (self.updated_ms > 0).then_some(self.updated_ms);
        StateView {
            context: self.context.clone(),
            blocks: self.blocks.clone(),
            spot_blocks: self.spot_blocks.clone(),
            tool_outputs: self.tool_outputs.clone(),
            handbook_html: self.html.clone(),
            handbook_version: self.version,
            preview_path: self.preview_path.clone(),
            updated_at: updated.map(clock::utc),
            revision: self.updated_ms,
        }
    }
}

#[cfg(test)]
mod tests;
