//! Prompts: instructions for models, each in a file of the folder `prompts`.
//!
//! A file may have placeholders such as `{{types}}`. What code and prompt must agree on, such as
//! the number of blocks, is a placeholder: the code fills in what it checks.

/// How a session stands; before the last message of the user.
pub(crate) const PROGRESS: &str = include_str!("../prompts/progress.md");

/// From a video to blocks.
pub(crate) const BLOCKS: &str = include_str!("../prompts/build_travel_blocks.md");

/// The video.
pub(crate) const BLOCKS_USER: &str = include_str!("../prompts/build_travel_blocks.user.md");

/// From spots to queries for the geocoder.
pub(crate) const SPOTS: &str = include_str!("../prompts/resolve_spot_coordinates.md");

/// The spots.
pub(crate) const SPOTS_USER: &str = include_str!("../prompts/resolve_spot_coordinates.user.md");

/// From blocks to searches and prompts for pictures, for both image tools.
pub(crate) const IMAGE_PLAN: &str = include_str!("../prompts/image_plan.md");

/// From blocks and pictures to a page.
pub(crate) const HANDBOOK: &str = include_str!("../prompts/generate_handbook_html.md");

/// What was wrong with an answer.
pub(crate) const REFUSED: &str = include_str!("../prompts/refused_answer.md");

#[cfg(test)]
mod tests;
