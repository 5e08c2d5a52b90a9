//! The tools, in the order in which a guide is made.

pub(crate) mod answer;
pub(crate) mod build_travel_blocks;
pub(crate) mod crawl_youtube_videos;
pub(crate) mod generate_handbook_html;
pub(crate) mod generate_image;
pub(crate) mod parse_youtube_input;
pub(crate) mod resolve_spot_coordinates;
pub(crate) mod search_image;
pub(crate) mod view;

/// Prompt after a refused completion of any task.
pub(crate) const REFUSED: &str = include_str!("../prompts/refused_answer.md");

/// Marker that ends untrusted text in a prompt.
pub(crate) const MATERIAL_END: &str = ">>>";

/// Names of the tools, in the order of a guide.
pub(crate) const NAMES: [&str; 7] = [
    "parse_youtube_input",
    "crawl_youtube_videos",
    "build_travel_blocks",
    "resolve_spot_coordinates",
    "search_image",
    "generate_image",
    "generate_handbook_html",
];

#[cfg(test)]
mod tests {
    use wattle_plugin::prompt::fill;

    use super::REFUSED;
    use crate::testing::says;

    #[test]
    fn s3_45_a_refused_answer_is_repeated_with_its_reasons() {
        let told = fill(REFUSED, &[("reasons", "- a\n- b")]).unwrap();
        assert!(told.contains("reasons:\n- a\n- b\n"), "{told}");
        says(&told, &["Answer again, whole, with all of them corrected."]);
    }
}
