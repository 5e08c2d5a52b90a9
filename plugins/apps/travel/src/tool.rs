//! The tools, in the order in which a guide is made.

pub(crate) mod build_travel_blocks;
pub(crate) mod crawl_youtube_videos;
pub(crate) mod generate_handbook_html;
pub(crate) mod generate_image;
pub(crate) mod output;
pub(crate) mod output_schema;
pub(crate) mod parse_youtube_input;
pub(crate) mod resolve_spot_coordinates;
pub(crate) mod search_image;
pub(crate) mod view;

/// Prompt after a refused completion of any task.
pub(crate) const REFUSED: &str = include_str!("../prompts/refused_answer.md");

/// Marker that ends untrusted text in a prompt.
pub(crate) const MATERIAL_END: &str = ">>>";

pub(crate) const PARSE_YOUTUBE_INPUT: &str = "parse_youtube_input";
pub(crate) const CRAWL_YOUTUBE_VIDEOS: &str = "crawl_youtube_videos";
pub(crate) const BUILD_TRAVEL_BLOCKS: &str = "build_travel_blocks";
pub(crate) const RESOLVE_SPOT_COORDINATES: &str = "resolve_spot_coordinates";
pub(crate) const SEARCH_IMAGE: &str = "search_image";
pub(crate) const GENERATE_IMAGE: &str = "generate_image";
pub(crate) const GENERATE_HANDBOOK_HTML: &str = "generate_handbook_html";

/// Names of the tools, in the order of a guide.
pub(crate) const NAMES: [&str; 7] = [
    PARSE_YOUTUBE_INPUT,
    CRAWL_YOUTUBE_VIDEOS,
    BUILD_TRAVEL_BLOCKS,
    RESOLVE_SPOT_COORDINATES,
    SEARCH_IMAGE,
    GENERATE_IMAGE,
    GENERATE_HANDBOOK_HTML,
];

#[cfg(test)]
mod tests {
    use wattle_plugin::prompt::fill;
    use wattle_plugin::testing::assert_contains;

    use super::REFUSED;

    #[test]
    fn s3_45_a_refused_answer_is_repeated_with_its_reasons() {
        let told = fill(REFUSED, &[("reasons", "- a\n- b")]).unwrap();
        assert!(told.contains("reasons:\n- a\n- b\n"), "{told}");
        assert_contains(&told, &["Answer again, whole, with all of them corrected."]);
    }
}
