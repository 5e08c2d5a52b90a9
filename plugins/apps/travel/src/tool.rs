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
