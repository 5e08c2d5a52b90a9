//! Snapshots: what has been made so far, so that a later run can go on from it.
//!
//! Written after every successful step, and by the editor of the page. Whoever writes last is
//! right, column by column.

mod patch;
mod table;

use wattle_plugin::prelude::{Failure, Value, json};

pub(crate) use self::patch::patch;
pub(crate) use self::table::{read, write};
use crate::channel::{
    BLOCKS, CONTEXT, HTML, IMAGE_MODE, IMAGES, SPOT_BLOCKS, TOOL_OUTPUTS, VIDEOS,
};
use crate::session::step::Step;
use crate::{time, tool};

/// The tool whose pages count as versions.
const HTML_TOOL: &str = "generate_handbook_html";

/// Steps after which an earlier page shows what is no longer so.
const BEFORE_HTML: [&str; 3] = ["resolve_spot_coordinates", "search_image", "generate_image"];

/// What has been made so far. Documents that were never written are `null`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// `video`, `videos`, `images` and `imageMode`: what the editor of the page does not touch.
    pub(crate) context: Value,
    /// All blocks.
    pub(crate) blocks: Value,
    /// Those that are spots.
    pub(crate) spot_blocks: Value,
    /// The last output of every tool, without the page.
    pub(crate) tool_outputs: Value,
    /// The page.
    pub(crate) html: Option<String>,
    /// How often the tool has made one.
    pub(crate) version: i64,
    /// Where the page can be looked at.
    pub(crate) preview_path: Option<String>,
    /// When something last changed; 0 for never.
    pub(crate) updated_ms: i64,
}

impl Snapshot {
    /// Takes over what a step wrote to the state.
    pub(crate) fn apply(&mut self, session_id: &str, step: &Step) {
        for write in &step.writes {
            let value = &write.value;
            match write.channel.as_str() {
                VIDEOS => self.set_context("videos", value),
                CONTEXT => self.set_context("video", value),
                IMAGES => self.set_context("images", value),
                IMAGE_MODE => self.set_context("imageMode", value),
                BLOCKS => self.blocks = value.clone(),
                SPOT_BLOCKS => self.spot_blocks = value.clone(),
                TOOL_OUTPUTS => self.merge_outputs(value),
                HTML => self.set_page(session_id, step, value),
                _ => {}
            }
        }
        if BEFORE_HTML.contains(&step.tool.as_str()) {
            self.merge_outputs(&json!({ HTML_TOOL: null }));
        }
    }

    fn set_context(&mut self, key: &str, value: &Value) {
        if !self.context.is_object() {
            self.context = json!({});
        }
        self.context[key] = value.clone();
    }

    /// An output of `null` is one that no longer holds.
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
                    known.insert(name.clone(), output.clone());
                }
            }
        }
    }

    fn set_page(&mut self, session_id: &str, step: &Step, page: &Value) {
        let Some(page) = page.as_str() else {
            self.html = None;
            return;
        };
        self.html = Some(page.to_owned());
        let told = step.output.as_ref().and_then(|output| output["preview_url"].as_str());
        self.preview_path = Some(told.map_or_else(|| preview_path(session_id), str::to_owned));
        if step.tool == HTML_TOOL {
            self.version += 1;
        }
    }

    /// The tools whose outputs hold, in the order of a guide.
    pub(crate) fn finished(outputs: &Value) -> Vec<&'static str> {
        tool::NAMES.into_iter().filter(|name| !outputs[*name].is_null()).collect()
    }

    /// Address of the video's picture.
    pub(crate) fn thumbnail(&self) -> Option<&str> {
        self.context["video"]["thumbnailUrl"].as_str()
    }

    /// Address of the video.
    pub(crate) fn video_url(&self) -> Option<&str> {
        self.context["video"]["videoUrl"].as_str()
    }

    /// What a run is given.
    pub(crate) fn for_run(&self) -> Value {
        json!({
            "context": self.context, "blocks": self.blocks, "spotBlocks": self.spot_blocks,
            "toolOutputs": self.tool_outputs, "handbookHtml": self.html,
        })
    }

    /// The snapshot as the endpoints show it.
    pub(crate) fn view(&self) -> Result<Value, Failure> {
        let mut view = self.for_run();
        view["handbookVersion"] = json!(self.version);
        view["previewPath"] = json!(self.preview_path);
        let updated = (self.updated_ms > 0).then_some(self.updated_ms);
        view["updatedAt"] = json!(updated.map(time::text).transpose()?);
        Ok(view)
    }
}

/// Where the page of a session can be looked at.
pub(crate) fn preview_path(session_id: &str) -> String {
    format!("/api/guide/{session_id}")
}

#[cfg(test)]
mod tests;
