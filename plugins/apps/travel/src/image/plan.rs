//! Plans of images: a query for the search, and a prompt for the generation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_plugin::Failure;
use wattle_plugin::llm::Task;
use wattle_plugin::prompt::{fill, head};

use crate::block::Block;
use crate::tool::REFUSED;

/// Instructions for plans of images, for both image tools.
const IMAGE_PLAN: &str = include_str!("../../prompts/image_plan.md");

/// Makes queries and prompts for images from blocks.
pub(crate) const TASK: Task = Task::new("handbook_image_query_planning")
    .max_output_tokens(4_096)
    .timeout_ms(35_000)
    .retries(2)
    .refusal(REFUSED);

/// Minimum number of characters of a query, a prompt and an alternative text.
const MIN_CHARS: [(&str, usize); 3] = [("query", 3), ("prompt", 10), ("alt", 3)];

/// Maximum number of characters of a query.
const QUERY_CHARS: usize = 120;

/// Maximum number of characters of a prompt.
const PROMPT_CHARS: usize = 1_500;

/// Maximum number of characters of an alternative text.
const ALT_CHARS: usize = 300;

/// Maximum number of characters of a block's description in the request.
const DESCRIPTION_CHARS: usize = 600;

/// What the model answers.
#[derive(Debug, Deserialize, JsonSchema)]
struct Plan {
    /// One for each block.
    images: Vec<Item>,
}

/// The picture of one block.
#[derive(Debug, Deserialize, JsonSchema)]
struct Item {
    /// The block, as it was given.
    block_id: String,
    /// What to search for, at least 3 characters.
    query: String,
    /// What to paint, at least 10 characters.
    prompt: String,
    /// What it shows, at least 3 characters.
    alt: String,
}

/// The plan of all images. One that was paid for and gave no image is saved, and the next attempt
/// uses it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ImagePlan {
    /// Model that made the plan, as `provider:model (attempts=n)`.
    pub(crate) model: String,
    /// One plan for each block.
    pub(crate) pictures: Vec<Planned>,
}

/// The plan of one block's image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) block_id: String,
    pub(crate) block_title: String,
    /// Search query.
    pub(crate) query: String,
    /// Prompt for an image model.
    pub(crate) prompt: String,
    /// Alternative text.
    pub(crate) alt: String,
}

/// Plans an image for each block, in order. `guide` is the title of the guide.
pub(crate) fn plan(guide: Option<&str>, targets: &[&Block]) -> Result<ImagePlan, Failure> {
    let told = |block: &&Block| {
        json!({
            "block_id": block.block_id,
            "type": block.kind,
            "title": block.title,
            "description": head(&block.description, DESCRIPTION_CHARS),
            "smart_tags": block.smart_tags,
        })
    };
    let blocks: Vec<_> = targets.iter().map(told).collect();
    let user = serde_json::to_string_pretty(&json!({ "title": guide, "blocks": blocks }))?;
    let system = fill(IMAGE_PLAN, &[])?;
    let checked = TASK.document(&system, &user, |plan: Plan| check(&plan, targets))?;
    Ok(ImagePlan { model: checked.origin(), pictures: checked.value })
}

impl ImagePlan {
    /// Returns true if the plan is for these blocks.
    pub(crate) fn fits(&self, targets: &[&Block]) -> bool {
        let planned = self.pictures.iter().map(|it| (&it.block_id, &it.block_title));
        planned.eq(targets.iter().map(|block| (&block.block_id, &block.title)))
    }
}

impl Item {
    fn planned(&self, title: &str) -> Planned {
        Planned {
            block_id: self.block_id.clone(),
            block_title: title.to_owned(),
            query: head(self.query.trim(), QUERY_CHARS).to_owned(),
            prompt: head(self.prompt.trim(), PROMPT_CHARS).to_owned(),
            alt: head(self.alt.trim(), ALT_CHARS).to_owned(),
        }
    }

    fn too_short(&self) -> impl Iterator<Item = String> {
        let texts = [&self.query, &self.prompt, &self.alt];
        MIN_CHARS.into_iter().zip(texts).filter_map(|((name, chars), text)| {
            let is_short = text.trim().chars().count() < chars;
            let sentence = || {
                format!("`{name}` of block `{}` needs at least {chars} characters", self.block_id)
            };
            is_short.then(sentence)
        })
    }
}

/// Returns the images of a plan in the order of their blocks. The errors are one sentence each.
fn check(plan: &Plan, targets: &[&Block]) -> Result<Vec<Planned>, Vec<String>> {
    let mut wrong = Vec::new();
    for block in targets {
        let id = &block.block_id;
        match plan.images.iter().filter(|item| item.block_id == *id).count() {
            1 => {}
            0 => wrong.push(format!("block `{id}` has no item")),
            many => wrong.push(format!("block `{id}` has {many} items instead of one")),
        }
    }
    for item in &plan.images {
        if targets.iter().all(|block| block.block_id != item.block_id) {
            wrong.push(format!("there is no block `{}`; take the ids as given", item.block_id));
        }
        wrong.extend(item.too_short());
    }
    let planned = targets.iter().filter_map(|block| {
        let item = plan.images.iter().find(|item| item.block_id == block.block_id)?;
        Some(item.planned(&block.title))
    });
    if wrong.is_empty() { Ok(planned.collect()) } else { Err(wrong) }
}

#[cfg(test)]
pub(crate) mod tests;
