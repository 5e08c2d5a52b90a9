//! Prompts: instructions for models, each in a file of the folder `prompts`.
//!
//! A file may have placeholders such as `{{types}}`. A value on which code and prompt must agree,
//! such as the number of blocks, is a placeholder: the code fills in the value that it checks.

/// Progress of a session, before the last message of the user.
pub(crate) const PROGRESS: &str = include_str!("../prompts/progress.md");

/// Instructions for blocks.
pub(crate) const BLOCKS: &str = include_str!("../prompts/build_travel_blocks.md");

/// The video that blocks are made from.
pub(crate) const BLOCKS_USER: &str = include_str!("../prompts/build_travel_blocks.user.md");

/// Instructions for queries of the geocoder.
pub(crate) const SPOTS: &str = include_str!("../prompts/resolve_spot_coordinates.md");

/// The spots that queries are made for.
pub(crate) const SPOTS_USER: &str = include_str!("../prompts/resolve_spot_coordinates.user.md");

/// Instructions for plans of images, for both image tools.
pub(crate) const IMAGE_PLAN: &str = include_str!("../prompts/image_plan.md");

/// Instructions for a page.
pub(crate) const HANDBOOK: &str = include_str!("../prompts/generate_handbook_html.md");

/// Errors of the last completion.
pub(crate) const REFUSED: &str = include_str!("../prompts/refused_answer.md");

#[cfg(test)]
mod tests;
