//! Prompts: what models are told, each in a file of the folder `prompts`.
//!
//! A file may have placeholders such as `{{types}}`. What code and prompt must agree on, such as
//! the number of blocks, is a placeholder: the code fills in what it checks.

use wattle_plugin::Failure;

/// What stands around the name of a placeholder.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// How a session stands; before the last message of the user.
pub(crate) const PROGRESS: Prompt = Prompt(include_str!("../prompts/progress.md"));

/// From a video to blocks.
pub(crate) const BLOCKS: Prompt = Prompt(include_str!("../prompts/build_travel_blocks.md"));

/// The video.
pub(crate) const BLOCKS_USER: Prompt =
    Prompt(include_str!("../prompts/build_travel_blocks.user.md"));

/// From spots to queries for the geocoder.
pub(crate) const SPOTS: Prompt = Prompt(include_str!("../prompts/resolve_spot_coordinates.md"));

/// The spots.
pub(crate) const SPOTS_USER: Prompt =
    Prompt(include_str!("../prompts/resolve_spot_coordinates.user.md"));

/// From blocks to searches and prompts for pictures, for both image tools.
pub(crate) const IMAGE_PLAN: Prompt = Prompt(include_str!("../prompts/image_plan.md"));

/// From blocks and pictures to a page.
pub(crate) const HANDBOOK: Prompt = Prompt(include_str!("../prompts/generate_handbook_html.md"));

/// What was wrong with an answer.
pub(crate) const REFUSED: Prompt = Prompt(include_str!("../prompts/refused_answer.md"));

/// A prompt with its placeholders open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prompt(&'static str);

impl Prompt {
    /// The prompt with each placeholder replaced by its value. Values are not searched for
    /// placeholders: they may be texts of strangers.
    ///
    /// # Errors
    ///
    /// `internal` if a placeholder has no value or a value no placeholder.
    pub(crate) fn fill(self, values: &[(&str, &str)]) -> Result<String, Failure> {
        let mut filled = String::with_capacity(self.0.len());
        let mut used = Vec::new();
        let mut rest = self.0.trim_end();
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (name, after) =
                after.split_once(CLOSE).ok_or_else(|| wrong("`{{` is left open"))?;
            let (_, value) = values
                .iter()
                .find(|(known, _)| *known == name)
                .ok_or_else(|| wrong(&format!("placeholder `{name}` has no value")))?;
            filled.push_str(before);
            filled.push_str(value);
            used.push(name);
            rest = after;
        }
        filled.push_str(rest);
        match values.iter().find(|(name, _)| !used.contains(name)) {
            Some((name, _)) => Err(wrong(&format!("value `{name}` has no placeholder"))),
            None => Ok(filled),
        }
    }
}

fn wrong(why: &str) -> Failure {
    Failure::internal(format!("a prompt cannot be filled: {why}"))
}

#[cfg(test)]
mod tests;
