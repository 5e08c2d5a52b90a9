//! The schema of the outputs of all tools by their names, for the description of the endpoints.

use wattle_plugin::prelude::JsonSchema;

use crate::image::tool::PreparedImages;
use crate::tool::build_travel_blocks::BuiltBlocks;
use crate::tool::crawl_youtube_videos::CrawledVideos;
use crate::tool::generate_handbook_html::MadeHandbook;
use crate::tool::parse_youtube_input::ParsedInput;
use crate::tool::resolve_spot_coordinates::ResolvedSpots;

/// The outputs of tools. A tool writes all fields of its output, a client can store fewer.
#[expect(
    dead_code,
    reason = "only its schema is used: the snapshot has JSON, because a client can store any output"
)]
#[derive(JsonSchema)]
pub(crate) struct ToolOutputs {
    #[schemars(skip_serializing_if = "Option::is_none")]
    parse_youtube_input: Option<ParsedInput>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    crawl_youtube_videos: Option<CrawledVideos>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    build_travel_blocks: Option<BuiltBlocks>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    resolve_spot_coordinates: Option<ResolvedSpots>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    search_image: Option<PreparedImages>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    generate_image: Option<PreparedImages>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    generate_handbook_html: Option<MadeHandbook>,
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;
    use wattle_plugin::prelude::json;

    use super::ToolOutputs;
    use crate::tool::NAMES;

    #[test]
    fn every_tool_has_an_output() {
        let schema = json!(schema_for!(ToolOutputs));
        assert!(schema["properties"].as_object().unwrap().keys().eq(NAMES), "{schema}");
    }
}
